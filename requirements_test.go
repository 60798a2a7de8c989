package rollcall_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	requirementRow = regexp.MustCompile(`(?m)^\| ([BS][0-9.]+) \| [^|]+ \| ([^|]+) \|$`)
	testFunc       = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w*)\(`)
	playedCase     = regexp.MustCompile(`(?m)^\t\t\{"(\w+)[^"]*", \w+\},$`)
)

// shownBy collects what docs/requirements.md may name: test functions, the files that
// they play or read, and TestX/Y for the cases of a file that has one table of them.
func shownBy(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch {
		case strings.Contains(path, "testdata"), strings.HasPrefix(path, "docs"):
			names[filepath.Base(path)] = true
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			funcs := testFunc.FindAllSubmatch(text, -1)
			for _, f := range funcs {
				names[string(f[1])] = true
			}
			for _, c := range playedCase.FindAllSubmatch(text, -1) {
				for _, f := range funcs {
					names[string(f[1])+"/"+string(c[1])] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestTidyRequirements compares docs/requirements.md with the tests that there are.
func TestTidyRequirements(t *testing.T) {
	content, err := os.ReadFile("docs/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	names, seen := shownBy(t), map[string]bool{}
	for _, row := range requirementRow.FindAllStringSubmatch(string(content), -1) {
		if seen[row[1]] {
			t.Errorf("%s has two rows", row[1])
		}
		seen[row[1]] = true
		for name := range strings.SplitSeq(row[2], ", ") {
			if !names[name] {
				t.Errorf("%s is shown by %s, which is not there", row[1], name)
			}
		}
	}
	if rows := strings.Count(string(content), "\n| ") - 1; len(seen) != rows {
		t.Errorf("%d of %d rows are understood", len(seen), rows)
	}
}
