package oracle

import (
	"flag"
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
	sorted := map[string]bool{}
	pattern := regexp.MustCompile(*only)
	t.Run("scenarios", func(t *testing.T) {
		for _, s := range all {
			if !pattern.MatchString(s.Name) {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				met := replay(t, s, known)
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
}

// replay runs a scenario against Rollcall, and compares. It returns the differences
// in order that were met.
func replay(t *testing.T, s *Scenario, known []*Difference) map[string]bool {
	got := inProcess(t, s)
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
func inProcess(t *testing.T, s *Scenario) (got *Result) {
	synctest.Test(t, func(t *testing.T) {
		b := startRollcall(t, configured(s))
		var err error
		got, err = Run(t.Context(), s, b, "r-", nil)
		b.stop()
		if err != nil {
			t.Error(err)
		}
	})
	return got
}
