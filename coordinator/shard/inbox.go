package shard

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// State is where a shard is in its life.
type State uint8

// The states of a shard, in the only order in which it goes through them; a state
// may be left out.
const (
	// Loading: the log is being read; requests get COORDINATOR_LOAD_IN_PROGRESS.
	Loading State = iota
	// Active: events are stepped.
	Active
	// Closed: stopped, given up or failed; requests get NOT_COORDINATOR.
	Closed
)

// predecessors has the states that a state may follow.
var predecessors = [...][]State{
	Loading: {},
	Active:  {Loading},
	Closed:  {Loading, Active},
}

// String returns the state's name.
func (s State) String() string { return [...]string{"loading", "active", "closed"}[s] }

// item is one entry of the inbox: an event for a group, or a sweep over all.
type item struct {
	id   string
	ev   group.Event
	sink Sink
	// at and wall are when it arrived.
	at, wall group.Time
	sweep    *sweep
}

// waiter is a submitter that waits for room in the inbox.
type waiter struct {
	item item
	// room is closed when the item has moved into the inbox.
	room chan struct{}
}

// inbox is the bounded queue in front of a shard. Whoever finds it full waits in
// a line of its own and was stamped before, so that line and queue together are
// in the order of arrival.
type inbox struct {
	mu sync.Mutex
	// state is the shard's; here because it decides what may come in. It changes
	// under the lock only.
	state atomic.Uint32
	items []item
	max   int
	line  []*waiter
	// asleep is set while Run waits and has to be woken.
	asleep bool
}

// put adds an item, stamped with the time of its arrival, if the shard is active.
// w is not nil if there was no room yet. wake tells to wake Run, unless the caller
// helps.
func (b *inbox) put(it *item, clock Clock, help bool) (state State, w *waiter, wake bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if state = b.current(); state != Active {
		return state, nil, false
	}
	it.at, it.wall = clock()
	if len(b.line) > 0 || len(b.items) >= b.max {
		w = &waiter{item: *it, room: make(chan struct{})}
		b.line = append(b.line, w)
	} else {
		b.items = append(b.items, *it)
	}
	if !help {
		wake, b.asleep = b.asleep, false
	}
	return Active, w, wake
}

// wait blocks until w has moved into the inbox or ctx ends, and tells which.
func (b *inbox) wait(ctx context.Context, w *waiter) bool {
	select {
	case <-w.room:
		return true
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.line {
		if other == w {
			b.line = slices.Delete(b.line, i, i+1)
			return false
		}
	}
	return true
}

// take returns everything in the inbox and lets the line move up. The caller
// gives an empty slice to use next, and owns the returned one. Everything that
// arrived before until is in it. more tells that there is something in the inbox
// again.
func (b *inbox) take(now group.Time, empty []item) (items []item, until group.Time, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	items, b.items = b.items, empty[:0]
	n := min(len(b.line), b.max)
	for i, w := range b.line[:n] {
		b.items = append(b.items, w.item)
		close(w.room)
		b.line[i] = nil
	}
	b.line = b.line[n:]
	if len(b.line) == 0 {
		b.line = nil
	}
	if len(b.items) > 0 {
		now = min(now, b.items[0].at)
	}
	return items, now, len(b.items) > 0
}

// sleep tells whether there is nothing to do; from then on put says to wake Run.
func (b *inbox) sleep() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asleep = len(b.items) == 0 && b.current() == Active
	return b.asleep
}

// empty tells whether there is nothing to do.
func (b *inbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items) == 0
}

// enter makes the transition to a state, and tells whether it did: a shard that was
// closed while it loaded does not become active, and is closed once.
func (b *inbox) enter(to State) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(predecessors[to], b.current()) {
		return false
	}
	b.state.Store(uint32(to))
	return true
}

// current returns the state.
func (b *inbox) current() State { return State(b.state.Load()) }
