package group

import (
	"fmt"
	"strings"
	"testing"
)

// pendingActions is all that can happen to the pending offsets of one partition that
// two transactions write to. What is written says who wrote, so there are not many states.
var pendingActions = []string{
	"commit - t-0=1",
	"txn-commit - a/1 t-0=2",
	"txn-commit - b/1 t-0=3",
	"resolve a/1 commit",
	"resolve a/1 abort",
	"resolve b/1 commit",
	"resolve b/1 abort",
	"delete-offsets t-0",
	"crash",
	"checkpoint",
	"delete",
	"expire",
}

// runPending carries out actions and holds each state against the oracle.
func runPending(t *testing.T, actions []string) *world {
	s := newScript(t)
	s.silent = true
	o := newOffsetOracle(t, s)
	s.world.observe = o.observe
	for _, line := range actions {
		gone := line == "expire" && o.expire(s.world.m, wallStart)
		name, rest, _ := strings.Cut(line, " ")
		(&command{s: s, name: name, args: args(rest)}).run()
		if got := hardState(s.world.m); got != o.String() {
			t.Fatalf("%s\noffsets are\n%s\nshould be\n%s", strings.Join(actions, "\n"), got, o)
		}
		if gone && s.world.m.exists() {
			t.Fatalf("%s\nthe group should be gone", strings.Join(actions, "\n"))
		}
	}
	return s.world
}

// fingerprint is all that decides what a group with offsets only does next.
func (w *world) fingerprint() string {
	m := w.m
	var b strings.Builder
	fmt.Fprintf(&b, "%skept=%t", hardState(m), m.kept)
	for _, x := range m.off.topics {
		fmt.Fprintf(&b, " %s stored=%t dirty=%t", x.name, x.stored, x.dirty)
	}
	if m.pend != nil {
		for _, x := range m.pend.txns {
			fmt.Fprintf(&b, " %s stored=%t dirty=%t", formatTxn(&x.txn), x.stored, x.dirty)
		}
	}
	// What a crash would load: the rows, and whether anything came behind them.
	rows := New(&Env{}, "g")
	_ = w.stored.restore(rows)
	fmt.Fprintf(&b, " rows=%q behind=%t", hardState(rows), w.folded < len(w.records))
	return b.String()
}

// Every state that the pending offsets of a partition can get into: in each, what is
// committed and pending is what reading the log in order gives, the world's checks hold,
// and the expiry removes the group when it should. Without -explore there are fewer kinds
// of actions.
func TestExplorePending(t *testing.T) {
	actions := pendingActions[:9]
	if *exploreAll {
		actions = pendingActions
	}
	seen := map[string]bool{}
	for level := [][]string{nil}; len(level) > 0; {
		var next [][]string
		for _, path := range level {
			for _, action := range actions {
				longer := append(append(make([]string, 0, len(path)+1), path...), action)
				if state := runPending(t, longer).fingerprint(); !seen[state] {
					seen[state] = true
					next = append(next, longer)
				}
			}
		}
		level = next
	}
	t.Logf("%d states", len(seen))
}

// When everything has ended and been deleted, the machine holds nothing and the
// checkpoint has no rows.
func TestPendingLeavesNothing(t *testing.T) {
	w := runPending(t, []string{
		"commit - t-0=1", "txn-commit - a/1 t-0=2", "txn-commit - b/1 t-0=3", "checkpoint",
		"resolve b/1 commit", "resolve a/1 commit", "txn-commit - a/2 t-0=2", "resolve a/2 abort", "delete", "checkpoint",
	})
	if len(w.stored) != 0 || w.m.pend != nil || !w.step(t, &ExpireOffsets{}).Gone {
		t.Errorf("%d rows are left, pending %v, exists %t", len(w.stored), w.m.pend, w.m.exists())
	}
}
