package protocol

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// requestsText has one block per request: a line "key name versions flexible
// versions", then its fields, each indented below the struct it belongs to:
// "name type [versions] [null versions] [tag number versions]".
//
//go:embed requests.txt
var requestsText string

// versions is an inclusive range; the zero value of a schema's text is all.
type versions struct{ min, max int16 }

func (v versions) has(version int16) bool { return v.min <= version && version <= v.max }

var (
	allVersions = versions{0, 1<<15 - 1}
	noVersions  = versions{0, -1}
)

// parseVersions reads "3", "3+", "3-7" or "none".
func parseVersions(s string) (versions, error) {
	if s == "none" {
		return noVersions, nil
	}
	from, to, isRange := strings.Cut(s, "-")
	from, open := strings.CutSuffix(from, "+")
	lo, err := strconv.ParseInt(from, 10, 16)
	if err != nil {
		return noVersions, fmt.Errorf("versions %q: %w", s, err)
	}
	v := versions{int16(lo), int16(lo)}
	if open {
		v.max = allVersions.max
	} else if isRange {
		hi, err := strconv.ParseInt(to, 10, 16)
		if err != nil {
			return noVersions, fmt.Errorf("versions %q: %w", s, err)
		}
		v.max = int16(hi)
	}
	return v, nil
}

// schema is one request in all its versions.
type schema struct {
	key      int16
	name     string
	valid    versions
	flexible versions
	fields   []*schemaField
}

type schemaField struct {
	name     string
	typ      string // without "[]"
	array    bool
	versions versions
	nullable versions
	tagged   versions
	tag      uint32
	fields   []*schemaField // of a struct
}

// parseSchemas reads the whole text. It is our own file, but a broken one should
// say where.
func parseSchemas(text string) (map[int16]*schema, error) {
	schemas := map[int16]*schema{}
	var current *schema
	var open []*schemaField // the chain of fields above the next line
	for n, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		var err error
		if depth == 0 {
			current, err = parseRequestLine(words)
			if err == nil {
				schemas[current.key] = current
			}
			open = open[:0]
		} else {
			var f *schemaField
			f, err = parseFieldLine(words)
			if err == nil && (current == nil || depth > len(open)+1) {
				err = fmt.Errorf("field without a parent")
			}
			if err == nil {
				open = open[:depth-1]
				if depth == 1 {
					current.fields = append(current.fields, f)
				} else {
					parent := open[depth-2]
					parent.fields = append(parent.fields, f)
				}
				open = append(open, f)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("requests.txt line %d: %w", n+1, err)
		}
	}
	return schemas, nil
}

func parseRequestLine(words []string) (*schema, error) {
	if len(words) != 5 || words[3] != "flexible" {
		return nil, fmt.Errorf("not a request line")
	}
	key, err := strconv.ParseInt(words[0], 10, 16)
	if err != nil {
		return nil, err
	}
	s := &schema{key: int16(key), name: words[1]}
	if s.valid, err = parseVersions(words[2]); err != nil {
		return nil, err
	}
	s.flexible, err = parseVersions(words[4])
	return s, err
}

func parseFieldLine(words []string) (*schemaField, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("not a field line")
	}
	f := &schemaField{name: words[0], versions: allVersions, nullable: noVersions, tagged: noVersions}
	f.typ, f.array = strings.CutPrefix(words[1], "[]")
	rest := words[2:]
	var err error
	for len(rest) > 0 && err == nil {
		switch {
		case rest[0] == "null" && len(rest) > 1:
			f.nullable, err = parseVersions(rest[1])
			rest = rest[2:]
		case rest[0] == "tag" && len(rest) > 2:
			var tag uint64
			if tag, err = strconv.ParseUint(rest[1], 10, 32); err == nil {
				f.tag = uint32(tag)
				f.tagged, err = parseVersions(rest[2])
			}
			rest = rest[3:]
		default:
			f.versions, err = parseVersions(rest[0])
			rest = rest[1:]
		}
	}
	return f, err
}
