package group

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var ruleID = regexp.MustCompile(`\b(?:[JSHLRTMDOEXF][1-9][0-9]?)\b`)

// Every rule has a cell in doc.go, a branch in the code that cites it and a script
// in whose output it is noted; and nothing cites a rule that is not there.
func TestRulesCovered(t *testing.T) {
	declared := map[string]bool{}
	for r := Rule(1); int(r) < len(ruleNames); r++ {
		declared[r.String()] = true
	}
	for i := range offsetRuleNames {
		declared[(firstOffsetRule + Rule(i)).String()] = true
	}
	inDoc, inCode, inScripts := map[string]bool{}, map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch {
		case path == "doc.go":
			collect(inDoc, `(?m)^//\t([A-Z][0-9]+) `, string(text))
		case strings.HasSuffix(path, "_test.go"), strings.HasPrefix(path, "rule"):
		case strings.HasSuffix(path, ".go"):
			for _, id := range ruleID.FindAllString(string(text), -1) {
				if !declared[id] {
					t.Errorf("%s cites %s, which is no rule", path, id)
				}
			}
			collect(inCode, `\b([A-Z][0-9]+)\b`, string(text))
		case strings.HasSuffix(path, ".txt"):
			collect(inScripts, `(?m)^note ([A-Z][0-9]+)\b`, string(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join("testdata", "offsets")); err != nil {
		for i := range offsetRuleNames {
			inScripts[offsetRuleNames[i]] = true
		}
	}
	for id := range declared {
		for where, ids := range map[string]map[string]bool{"doc.go": inDoc, "the code": inCode, "a script": inScripts} {
			if !ids[id] {
				t.Errorf("rule %s is not in %s", id, where)
			}
		}
	}
	for id := range inDoc {
		if !declared[id] {
			t.Errorf("doc.go has %s, which is not declared", id)
		}
	}
}

// collect adds what the first group of a pattern matches.
func collect(ids map[string]bool, pattern, text string) {
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		ids[match[1]] = true
	}
}

// A rule's name is the name of its constant.
func TestRuleNames(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		name string
	}{{J1, "J1"}, {J25, "J25"}, {S12, "S12"}, {H6, "H6"}, {L5, "L5"}, {R10, "R10"}, {T6, "T6"}, {M4, "M4"}, {D4, "D4"}, {O1, "O1"}, {X6, "X6"}} {
		if got := c.rule.String(); got != c.name {
			t.Errorf("rule %d is %s, want %s", c.rule, got, c.name)
		}
	}
	if got := fmt.Sprint(noRule); got != "" {
		t.Errorf("no rule is %q", got)
	}
}
