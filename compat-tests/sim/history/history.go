// Package history keeps what clients of a coordinator asked and were told, and
// judges it: no acknowledged commit is lost, commits and fetches of a group are
// linearizable, no partition has two owners in a generation, no member of an older
// generation commits. It knows what a client can see and nothing of how Rollcall
// works, so that every simulation, and a real process, is held against the same.
package history

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
)

// Never is the end of an operation whose outcome is not known: the answer was lost,
// or leaves open whether anything was done.
const Never = int64(1) << 62

// None is the offset of a partition that has none.
const None int64 = -1

// Kind says what an operation on offsets does.
type Kind string

// The kinds of operations.
const (
	Commit Kind = "commit"
	Fetch  Kind = "fetch"
	// Delete takes away the offsets of some partitions (OffsetDelete, a deleted topic).
	Delete Kind = "delete"
	// Forget takes away all that the group has (DeleteGroups).
	Forget Kind = "forget"
)

// Slot is a partition of a topic.
type Slot struct {
	Topic     string
	Partition int32
}

// Offset is a committed offset, or one to commit.
type Offset struct {
	Slot
	Offset int64
}

// Op is one request about the offsets of a group.
type Op struct {
	Client string
	Group  string
	Kind   Kind
	// Offsets are those to commit, those that were fetched, or the slots to delete.
	Offsets []Offset
	// Generation is that of the member that commits, -1 without one.
	Generation int32
	// Begin and End are places in the order of all that happened: before the request
	// was sent, and after its answer came.
	Begin, End int64
	// Refused: it has certainly changed nothing. Maybe: it has changed something by
	// its end, or never will.
	Refused, Maybe bool
}

// done tells whether the answer says that the operation was done.
func (o *Op) done() bool { return o.End != Never && !o.Refused && !o.Maybe }

// Open tells whether nothing is known yet of what became of the operation.
func (o *Op) Open() bool { return o.End == Never && !o.Refused }

// Claim is a member that was told, by the answer to its SyncGroup, what it owns.
type Claim struct {
	Group string
	// Member is the member id; Owner is the instance id of a static member, else
	// the member id, too.
	Member, Owner string
	Generation    int32
	// Round is what the leader wrote into every assignment of the generation.
	Round string
	Slots []Slot
	// Joined and At are when the member asked to join, and when it was told of this.
	Joined, At int64
}

// Lead is a member that was told that it leads a generation, and of whom.
type Lead struct {
	Group, Member string
	Generation    int32
	// Members are the ids of the dynamic members, which no other process has.
	Members []string
	// Joined and At are when it asked to join and when it was told.
	Joined, At int64
}

// Reset is a time in which a group may have been deleted, so that its generations
// may begin anew.
type Reset struct {
	Group    string
	From, To int64
}

// History is what happened, in the order in which clients saw it. Its methods may
// be called by any goroutine.
type History struct {
	mu    sync.Mutex
	clock int64

	Ops      []*Op
	Claims   []Claim
	Leads    []Lead
	Resets   []*Reset
	Problems []string
	// Off keeps nothing, for runs that are about something else.
	Off bool
	// Undecided counts the groups that [History.Check] could judge partition by
	// partition only.
	Undecided int
}

// tick returns the next place in the order. h.mu is held.
func (h *History) tick() int64 {
	h.clock++
	return h.clock
}

// Now returns a place in the order.
func (h *History) Now() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tick()
}

// Begin notes an operation that is about to be sent.
func (h *History) Begin(o Op) *Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.Begin, o.End = h.tick(), Never
	if o.Kind == Commit {
		for i := range o.Offsets { // an offset that says whose it is
			o.Offsets[i].Offset = o.Begin
		}
	}
	if !h.Off {
		h.Ops = append(h.Ops, &o)
	}
	return &o
}

// Again notes a copy of an operation that somebody on the way has made.
func (h *History) Again(o *Op) *Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := *o
	c.Client, c.Begin, c.End, c.Refused, c.Maybe = o.Client+" (copy)", h.tick(), Never, false, false
	h.Ops = append(h.Ops, &c)
	return &c
}

// Done notes that an operation was done, to or with these offsets.
func (h *History) Done(o *Op, offsets []Offset) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.Offsets, o.End = offsets, h.tick()
}

// Refuse notes that an operation has changed nothing.
func (h *History) Refuse(o *Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.Refused, o.End = true, h.tick()
}

// Claim notes what a member was told that it owns.
func (h *History) Claim(c Claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.At = h.tick(); h.Off {
		return
	}
	h.Claims = append(h.Claims, c)
}

// Leave notes that an operation will do nothing from now on: whoever was to do it is
// no more.
func (h *History) Leave(o *Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.Maybe, o.Refused, o.End = o.Kind != Fetch, o.Kind == Fetch, h.tick()
}

// Lead notes that a member was told that it leads.
func (h *History) Lead(l Lead) {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(l.Members)
	if l.At = h.tick(); h.Off {
		return
	}
	h.Leads = append(h.Leads, l)
}

// Reset notes that a group may be deleted from now on, until [History.Settled].
func (h *History) Reset(group string) *Reset {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &Reset{Group: group, From: h.tick(), To: Never}
	if !h.Off {
		h.Resets = append(h.Resets, r)
	}
	return r
}

// Settled notes that the group exists again, for sure.
func (h *History) Settled(r *Reset) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.To = h.tick()
}

// Problem notes something that must not be, seen by who was told it.
func (h *History) Problem(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Problems = append(h.Problems, fmt.Sprintf(format, args...))
}

// Commits is how many commits were acknowledged.
func (h *History) Commits() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.Ops {
		if o.Kind == Commit && o.done() {
			n++
		}
	}
	return n
}

// Save writes the history to a file, for somebody to read after a failure.
func (h *History) Save(file string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	enc := json.NewEncoder(f)
	put := func(kind string, v any) {
		if err == nil {
			err = enc.Encode(map[string]any{kind: v})
		}
	}
	for _, o := range h.Ops {
		put("op", o)
	}
	for i := range h.Leads {
		put("lead", h.Leads[i])
	}
	for i := range h.Claims {
		put("claim", h.Claims[i])
	}
	for _, r := range h.Resets {
		put("reset", r)
	}
	for _, p := range h.Problems {
		put("problem", p)
	}
	return err
}
