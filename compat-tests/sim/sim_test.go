package main

import (
	"bytes"
	"errors"
	"flag"
	"testing"

	"github.com/rollcall-mq/rollcall/compat-tests/sim/history"
)

var (
	seeds = flag.Uint64("seeds", 60, "how many seeds TestSim runs")
	first = flag.Uint64("first", 1, "the first of them")
)

func options(seed uint64) Options {
	return Options{Seed: seed, Steps: 1_000_000, Groups: 2, Writers: 4}
}

// TestSameSeedSameTrace: a run is the same as the one before it, byte for byte.
func TestSameSeedSameTrace(t *testing.T) {
	for seed := range uint64(5) {
		one, two := Run(options(seed)), Run(options(seed))
		if !bytes.Equal(one.Trace, two.Trace) {
			a, b := bytes.Split(one.Trace, []byte("\n")), bytes.Split(two.Trace, []byte("\n"))
			for i := range min(len(a), len(b)) {
				if !bytes.Equal(a[i], b[i]) {
					t.Fatalf("seed %d, line %d: %q, and then %q", seed, i, a[i], b[i])
				}
			}
			t.Fatalf("seed %d: %d lines, and then %d", seed, len(a), len(b))
		}
		if len(one.Trace) < 10_000 {
			t.Errorf("seed %d: the trace has only %d bytes", seed, len(one.Trace))
		}
	}
}

// TestSim runs many seeds; each must stand the judgement of package history, and
// together they must have done enough for that to mean something.
func TestSim(t *testing.T) {
	var commits, crashes, claims, leads, resets, fetches, undecided int
	for seed := *first; seed < *first+*seeds; seed++ {
		r := Run(options(seed))
		if r.Err != nil {
			t.Fatalf("%v\nagain, and smaller: make sim SEED=%d", r.Err, seed)
		}
		commits += r.Commits
		crashes += r.Crashes
		claims += len(r.History.Claims)
		leads += len(r.History.Leads)
		resets += len(r.History.Resets)
		undecided += r.History.Undecided
		for _, o := range r.History.Ops {
			if o.Kind == history.Fetch && o.End != history.Never {
				fetches++
			}
		}
	}
	if undecided > int(*seeds) {
		t.Errorf("%d groups were judged partition by partition only", undecided)
	}
	t.Logf("%d seeds: %d commits, %d fetches, %d crashes, %d assignments, %d generations", *seeds, commits, fetches, crashes, claims, leads)
	for what, got := range map[string]int{
		"commits": commits / 100, "fetches": fetches / 100, "crashes": crashes / 5, "assignments": claims / 5, "generations": leads / 3, "deletions": resets / 3,
	} {
		if got < int(*seeds) {
			t.Errorf("the simulation does not do enough: few %s", what)
		}
	}
}

// TestShrink: what a failure does not need is left out.
func TestShrink(t *testing.T) {
	needs := func(o Options) Result {
		r := Result{Events: min(o.Steps, 7000)}
		if r.Events >= 500 && o.Groups > 0 && !o.Without["crash"] {
			r.Err = errors.New("found")
		}
		return r
	}
	o := options(3)
	small, r := shrink(o, needs(o), needs)
	if want := "-seed 3 -steps 500 -groups 1 -writers 0 -without delay,drop,duplicate,reorder,stop,pause,slow,full,fail,move"; small.flags() != want || r.Err == nil {
		t.Errorf("shrinks to %s, want %s", small.flags(), want)
	}
}
