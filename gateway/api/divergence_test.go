package api

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// handlerFile is what a handler's header comment says.
type handlerFile struct {
	key     int16
	header  string
	differs []string // the ids in brackets
	leftOut bool     // in words
}

var (
	versionsLine = regexp.MustCompile(`, key (\d+), versions? (\d+)(?: to (\d+))?`)
	idInBrackets = regexp.MustCompile(`\[([a-z0-9-]+)\]`)
	section      = regexp.MustCompile(`^## .*\((\d+)\)$`)
)

// handlerFiles reads the header comments: the first comment behind the imports.
func handlerFiles(t *testing.T) map[string]handlerFile {
	t.Helper()
	names, err := filepath.Glob("[0-9][0-9]_*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("no handler files: %v", err)
	}
	files := make(map[string]handlerFile)
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Comments) == 0 {
			t.Errorf("%s has no header comment", name)
			continue
		}
		text := strings.Join(strings.Fields(f.Comments[0].Text()), " ")
		key, _ := strconv.Atoi(name[:2])
		h := handlerFile{key: int16(key), header: text}
		if _, list, ok := strings.Cut(text, "Differs from Kafka:"); ok {
			for _, m := range idInBrackets.FindAllStringSubmatch(list, -1) {
				h.differs = append(h.differs, m[1])
			}
		}
		h.leftOut = strings.Contains(text, "Left out:")
		files[name] = h
	}
	return files
}

// The versions in a header are those of the table.
func TestHeadersNameTheVersions(t *testing.T) {
	s := newServer()
	entries := append(s.table.Entries(), append(new(TopicHandlers).Entries(), new(TxnHandlers).Entries()...)...)
	for name, f := range handlerFiles(t) {
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Key == f.key })
		if i < 0 {
			t.Errorf("%s: key %d is not in the table", name, f.key)
			continue
		}
		e := entries[i]
		m := versionsLine.FindStringSubmatch(f.header)
		if m == nil {
			t.Errorf("%s: the header does not say %q", name, fmt.Sprintf(", key %d, versions %d to %d", e.Key, e.Min, e.Max))
			continue
		}
		if m[3] == "" {
			m[3] = m[2]
		}
		if want := []string{strconv.Itoa(int(e.Key)), strconv.Itoa(int(e.Min)), strconv.Itoa(int(e.Max))}; !slices.Equal(m[1:], want) {
			t.Errorf("%s: the header says key and versions %v, the table %v", name, m[1:], want)
		}
	}
}

// divergences reads docs/divergence.md: by API key the ids of the lines that the
// handlers decide. No id stands twice.
func divergences(t *testing.T) map[int16][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/divergence.md")
	if err != nil {
		t.Fatal(err)
	}
	ids := make(map[int16][]string)
	seen := make(map[string]bool)
	key := int16(-1)
	for i, line := range strings.Split(string(text), "\n") {
		if m := section.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			key = int16(n)
		} else if strings.HasPrefix(line, "## ") {
			key = -1
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| id ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 5 || slices.Contains(cells, "") {
			t.Errorf("docs/divergence.md:%d: %d cells, want id, Kafka, Rollcall, why, where", i+1, len(cells))
			continue
		}
		if seen[cells[0]] {
			t.Errorf("docs/divergence.md:%d: %s stands twice", i+1, cells[0])
		}
		seen[cells[0]] = true
		if cells[4] == "api" {
			ids[key] = append(ids[key], cells[0])
		}
	}
	return ids
}

// What a handler's header says it leaves out or does otherwise is in
// docs/divergence.md under its key. A header that names ids names all of its key.
func TestDivergencesAreWrittenDown(t *testing.T) {
	ids := divergences(t)
	for name, f := range handlerFiles(t) {
		for _, id := range f.differs {
			if !slices.Contains(ids[f.key], id) {
				t.Errorf("%s: %s is not in docs/divergence.md under key %d", name, id, f.key)
			}
		}
		if len(f.differs) == 0 { // in words, if at all
			if f.leftOut && len(ids[f.key]) == 0 {
				t.Errorf("%s: what is left out is not in docs/divergence.md under key %d", name, f.key)
			}
			continue
		}
		for _, id := range ids[f.key] {
			if !slices.Contains(f.differs, id) {
				t.Errorf("%s: the header does not name %s, which docs/divergence.md has", name, id)
			}
		}
	}
}
