package oracle

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

var show = flag.Bool("show", false, "print what Rollcall answers")

// TestReplay runs every scenario against Rollcall in virtual time. Its answers are
// those of Apache Kafka, but for the differences that differences.txt has.
func TestReplay(t *testing.T) {
	all, err := Load("testdata")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d scenarios: %v", len(all), err)
	}
	known, err := LoadDifferences("differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	sorted, seen := map[string]bool{}, &rules{count: map[string]int{}}
	pattern := regexp.MustCompile(*only)
	t.Run("scenarios", func(t *testing.T) {
		for _, s := range all {
			if !pattern.MatchString(s.Name) {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				met := replay(t, s, known, seen)
				mu.Lock()
				defer mu.Unlock()
				for id := range met {
					sorted[id] = true
				}
			})
		}
	})
	if *only != "" {
		return
	}
	for _, d := range known {
		if d.Sorted && !sorted[d.ID] {
			t.Errorf("differences.txt: no scenario meets %s", d.ID)
		}
	}
	rulesAreMet(t, seen.count)
}

// beyond are the rules of the machine that no scenario can bring about.
var beyond = map[string]string{
	"J24": "it needs a full disk", "S11": "it needs a full disk", "O9": "it needs a full disk", "F1": "it needs a full disk",
	"T6":  "it needs a process that stands still",
	"M3":  "it needs a restart with another configuration",
	"M4":  "it is what a node does when it stops, after the last note",
	"O13": "deleting a topic deletes its offsets, so only a race can leave one",
	"E9":  "it needs a crash in the middle of deleting a topic",
	"F2":  resets, "F3": resets, "F4": resets, "F5": resets,
	"O14": transactions, "O15": transactions, "O16": transactions, "O17": transactions, "O18": transactions, "O19": transactions,
	"O20": transactions, "O21": transactions, "O22": transactions, "O23": transactions, "O24": transactions, "O25": transactions,
	"E10": transactions, "X7": transactions, "X8": transactions,
}

const (
	transactions = "scenarios have no transactions: coordinator/txn"
	resets       = "it is a request of Rollcall's own"
)

var ruleLine = regexp.MustCompile(`(?m)^//\t([A-Z]\d+) `)

// rulesAreMet wants each rule of the machine to be carried out by some scenario.
func rulesAreMet(t *testing.T, count map[string]int) {
	t.Helper()
	doc, err := os.ReadFile("../../coordinator/group/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	met := 0
	for _, m := range ruleLine.FindAllSubmatch(doc, -1) {
		rule := string(m[1])
		why, isBeyond := beyond[rule]
		switch {
		case count[rule] == 0 && !isBeyond:
			t.Errorf("no scenario carries out rule %s", rule)
		case count[rule] > 0 && isBeyond:
			t.Errorf("rule %s is met, although %s", rule, why)
		case count[rule] > 0:
			met++
		}
	}
	t.Logf("%d rules are met, %d are beyond scenarios", met, len(beyond))
}

// replay runs a scenario against Rollcall, and compares. It returns the differences
// in order that were met.
func replay(t *testing.T, s *Scenario, known []*Difference, seen *rules) map[string]bool {
	got := inProcess(t, s, seen)
	if got == nil {
		return nil
	}
	if *show {
		t.Log("\n" + s.With(got.Answers).Text())
	}
	want := make([][]string, len(s.Lines))
	for i := range s.Lines {
		want[i] = s.Lines[i].Answers
	}
	here := slices.DeleteFunc(slices.Clone(known), func(d *Difference) bool { return !slices.Contains(d.In, s.Name) })
	c := Compare(s, want, got.Answers, here)
	if c.Wrong != "" {
		t.Errorf("not what Apache Kafka answers:\n%s", c.Wrong)
	}
	for _, d := range here {
		if !d.Sorted && !c.Met[d.ID] && c.Wrong == "" {
			t.Errorf("differences.txt: %s is not met here", d.ID)
		}
	}
	return got.Sorted
}

// inProcess runs a scenario in a bubble of its own.
func inProcess(t *testing.T, s *Scenario, seen *rules) (got *Result) {
	synctest.Test(t, func(t *testing.T) {
		b := startRollcall(t, configured(s), seen)
		var err error
		got, err = Run(t.Context(), s, b, "r-", nil)
		b.stop()
		if err != nil {
			t.Error(err)
		}
	})
	return got
}
