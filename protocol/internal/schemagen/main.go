// Command schemagen writes protocol/requests.txt from the message definitions
// inside a kafka-clients jar:
//
//	go run ./protocol/internal/schemagen kafka-clients-4.4.0.jar > protocol/requests.txt
//
// It is run by hand when Rollcall moves to a newer Kafka.
package main

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// message is what a definition file says of a request.
type message struct {
	APIKey           *int16   `json:"apiKey"`
	Type             string   `json:"type"`
	Listeners        []string `json:"listeners"`
	Name             string   `json:"name"`
	ValidVersions    string   `json:"validVersions"`
	FlexibleVersions string   `json:"flexibleVersions"`
	Fields           []field  `json:"fields"`
	CommonStructs    []field  `json:"commonStructs"`
}

type field struct {
	Name             string  `json:"name"`
	Type             string  `json:"type"`
	Versions         string  `json:"versions"`
	NullableVersions string  `json:"nullableVersions"`
	Tag              *int    `json:"tag"`
	TaggedVersions   string  `json:"taggedVersions"`
	Fields           []field `json:"fields"`
}

// internalKeys are requests that only brokers and controllers send.
var internalKeys = []int16{34, 38, 39, 40, 41, 64, 80, 81, 83, 84, 85, 86, 87, 94}

var comment = regexp.MustCompile(`(?m)^\s*//.*$`)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: schemagen kafka-clients.jar")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(jar string, out io.Writer) error {
	messages, err := load(jar)
	if err != nil {
		return err
	}
	slices.SortFunc(messages, func(a, b message) int { return int(*a.APIKey) - int(*b.APIKey) })
	fmt.Fprintf(out, "# Layouts of the requests that clients send, by schemagen from %s.\n", path.Base(jar))
	for _, m := range messages {
		fmt.Fprintf(out, "%d %s %s flexible %s\n", *m.APIKey, strings.TrimSuffix(m.Name, "Request"), m.ValidVersions, m.FlexibleVersions)
		common := map[string][]field{}
		for _, s := range m.CommonStructs {
			common[s.Name] = s.Fields
		}
		writeFields(out, "  ", m.Fields, common)
	}
	return nil
}

// load reads the definitions of all requests that a broker takes from clients.
func load(jar string) ([]message, error) {
	z, err := zip.OpenReader(jar)
	if err != nil {
		return nil, fmt.Errorf("open jar: %w", err)
	}
	defer func() { _ = z.Close() }() // it was only read
	var messages []message
	for _, f := range z.File {
		if !strings.HasPrefix(f.Name, "common/message/") || !strings.HasSuffix(f.Name, "Request.json") {
			continue
		}
		m, err := parse(f)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.Name, err)
		}
		if m.Type == "request" && m.APIKey != nil && m.ValidVersions != "none" &&
			slices.Contains(m.Listeners, "broker") && !slices.Contains(internalKeys, *m.APIKey) {
			messages = append(messages, m)
		}
	}
	return messages, nil
}

func parse(f *zip.File) (m message, err error) {
	r, err := f.Open()
	if err != nil {
		return m, err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(comment.ReplaceAll(b, nil), &m)
}

func writeFields(out io.Writer, indent string, fields []field, common map[string][]field) {
	for _, f := range fields {
		elem, array := strings.CutPrefix(f.Type, "[]")
		inner := f.Fields
		if inner == nil {
			inner = common[elem]
		}
		typ := f.Type
		if inner != nil {
			typ = "struct"
			if array {
				typ = "[]struct"
			}
		}
		line := indent + f.Name + " " + typ
		if f.Versions != "0+" {
			line += " " + f.Versions
		}
		if f.NullableVersions != "" {
			line += " null " + f.NullableVersions
		}
		if f.Tag != nil {
			line += fmt.Sprintf(" tag %d %s", *f.Tag, f.TaggedVersions)
		}
		fmt.Fprintln(out, line)
		writeFields(out, indent+"  ", inner, common)
	}
}
