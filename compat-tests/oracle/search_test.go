package oracle

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	search   = flag.Bool("search", false, "look for differences by random scenarios")
	seed     = flag.Uint64("seed", 1, "the seed of the first one")
	lists    = flag.Int("lists", 200, "how many")
	slotsRun = flag.Int("slots", 14, "how many slots of three seconds each has")
	atATime  = flag.Int("at-a-time", 200, "how many run on the broker at a time")
)

// copies is how often a difference has to show, with the same answers of Kafka's:
// some choices, as of a new leader, it makes at random.
const copies = 8

// TestSearch runs random scenarios against Apache Kafka, in real time, and against
// Rollcall, in virtual time. What it finds it makes short and keeps in testdata.
func TestSearch(t *testing.T) {
	if !*search {
		t.Skip("looks for differences with -search, as make oracle-search does")
	}
	k, err := startKafka(t.Context(), t.TempDir(), *port, Defaults)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.script(context.WithoutCancel(t.Context()), "kill") }()
	known, err := LoadDifferences("differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	h := &hunt{t: t, kafka: k, seen: map[string]int{}, rules: rules{count: map[string]int{}}}
	for _, d := range known {
		if d.Search {
			h.allowed = append(h.allowed, d)
		}
	}
	start, late := time.Now(), 0
	found := make(chan trial, *lists)
	go h.runAll(found)
	for tr := range found {
		if tr.kafka == nil {
			late++
			continue
		}
		h.check(tr)
	}
	t.Logf("%d scenarios from seed %d on in %v; %d too late to tell, %d where Kafka chose otherwise; differences: %v",
		*lists, *seed, time.Since(start).Round(time.Second), late, h.random, h.seen)
}

// trial is a scenario with what Kafka answered; nil if it was too late.
type trial struct {
	s               *Scenario
	kafka, rollcall [][]string
}

type hunt struct {
	t       *testing.T
	kafka   *kafka
	allowed []*Difference
	runs    atomic.Int64
	// bubble is held while a bubble runs.
	bubble sync.Mutex
	rules  rules
	// seen counts differences of the same kind.
	seen   map[string]int
	random int
}

// runAll runs the scenarios on Kafka, many at a time.
func (h *hunt) runAll(found chan<- trial) {
	defer close(found)
	places := make(chan struct{}, *atATime)
	var wg sync.WaitGroup
	for i := range *lists {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			s := Generate(*seed+uint64(i), *slotsRun)
			tr := trial{s: s, rollcall: h.rollcall(s)}
			tr.kafka = h.ask(s, tr.rollcall)
			found <- tr
		})
	}
	wg.Wait()
}

// rollcall runs a scenario in the process.
func (h *hunt) rollcall(s *Scenario) [][]string {
	h.bubble.Lock()
	defer h.bubble.Unlock()
	if got := inProcess(h.t, s, &h.rules); got != nil {
		return got.Answers
	}
	return make([][]string, len(s.Lines))
}

// ask runs a scenario on Kafka; nil if it was too late.
func (h *hunt) ask(s *Scenario, rollcall [][]string) [][]string {
	got, err := Run(h.t.Context(), s, h.kafka, fmt.Sprintf("s%d-", h.runs.Add(1)), rollcall)
	if err != nil {
		if !errors.Is(err, ErrLate) {
			h.t.Log(err)
		}
		return nil
	}
	return got.Answers
}

// compare tells what is wrong, and at which line.
func (h *hunt) compare(s *Scenario, kafka, rollcall [][]string) (wrong string, line int) {
	for i := range s.Lines {
		var c = Comparison{Met: map[string]bool{}}
		if wrong := c.step(kafka[i], rollcall[i], h.allowed); wrong != "" {
			return wrong, i
		}
	}
	return "", 0
}

// check compares a trial, and follows a difference up.
func (h *hunt) check(tr trial) {
	wrong, line := h.compare(tr.s, tr.kafka, tr.rollcall)
	if wrong == "" {
		return
	}
	s := &Scenario{Name: tr.s.Name, Lines: slices.Clone(tr.s.Lines[:line+1])}
	kind := kindOf(wrong)
	if h.seen[kind] > 2 {
		h.seen[kind]++
		return
	}
	answers := h.differs(s, copies)
	if answers == nil {
		h.random++
		return
	}
	h.seen[kind]++
	h.t.Logf("found: %s\n%s\n%s", kind, wrong, s.Text())
	if short, said := h.shrink(s, answers); h.differs(short, copies) != nil {
		s, answers = short, said
	}
	text := s.With(answers).Text()
	h.t.Errorf("seed %d: Kafka answers otherwise\n%s\n%s", *seed, wrong, text)
	if err := os.WriteFile(filepath.Join("testdata", s.Name+".txt"), []byte(text), 0o644); err != nil {
		h.t.Error(err)
	}
}

// kindOf is a difference without its particulars: the requests and codes.
func kindOf(wrong string) string {
	var kind []string
	for _, line := range strings.Split(wrong, "\n") {
		for _, w := range strings.Fields(line) {
			if apis[w] != nil || strings.HasPrefix(w, "ErrorCode=") || strings.HasPrefix(w, "State=") || strings.HasSuffix(w, ":") {
				kind = append(kind, w)
			}
		}
	}
	return strings.Join(kind, " ")
}

// differs runs a scenario on Kafka some times. If Kafka always says the same, and
// Rollcall says something else, it returns what Kafka says.
func (h *hunt) differs(s *Scenario, times int) [][]string {
	rollcall := h.rollcall(s)
	all := make([][][]string, times)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i] = h.ask(s, rollcall) })
	}
	wg.Wait()
	for _, a := range all {
		if a == nil || fmt.Sprint(a) != fmt.Sprint(all[0]) {
			return nil
		}
	}
	if wrong, _ := h.compare(s, all[0], rollcall); wrong == "" {
		return nil
	}
	return all[0]
}

// shrink leaves out what the difference does not need.
func (h *hunt) shrink(s *Scenario, answers [][]string) (*Scenario, [][]string) {
	for size := max(len(s.Lines)/4, 1); size > 0; size /= 2 {
		var tries []*Scenario
		var froms []int
		for from := 1; from+size <= len(s.Lines); from += size { // line 0 names the seed
			tries, froms = append(tries, s.without(from, size)), append(froms, from)
		}
		results := h.tryAll(tries)
		all := s
		for i := len(tries) - 1; i >= 0; i-- { // from behind, so that places stay
			if results[i] != nil {
				all = all.without(froms[i], size)
			}
		}
		if r := h.differs(all, 3); r != nil {
			s, answers = all, r
			continue
		}
		for i := range tries {
			if results[i] != nil {
				s, answers = tries[i], results[i]
				break
			}
		}
	}
	return s, answers
}

// without leaves out lines; slots that go take no time.
func (s *Scenario) without(from, n int) *Scenario {
	c := &Scenario{Name: s.Name, Lines: slices.Delete(slices.Clone(s.Lines), from, from+n)}
	slots := 0
	for i := range c.Lines {
		at, ok := strings.CutPrefix(c.Lines[i].Text, "at ")
		d, err := time.ParseDuration(at)
		switch {
		case !ok || err != nil:
		case d.Milliseconds()%slot != 0: // the end of what is sent in a slot
			c.Lines[i].Text = fmt.Sprintf("at %dms", slots*slot+sendPart)
		default:
			slots++
			c.Lines[i].Text = fmt.Sprintf("at %dms", slots*slot)
		}
	}
	return c
}

// tryAll asks which of the scenarios still differ, all at once.
func (h *hunt) tryAll(tries []*Scenario) [][][]string {
	results := make([][][]string, len(tries))
	var wg sync.WaitGroup
	for i, s := range tries {
		wg.Go(func() { results[i] = h.differs(s, 3) })
	}
	wg.Wait()
	return results
}
