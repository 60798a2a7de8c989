package main

import (
	"bytes"
	"container/heap"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/rollcall-mq/rollcall/compat-tests/sim/actor"
	"github.com/rollcall-mq/rollcall/compat-tests/sim/history"
	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// epoch is the Unix time at which every simulation begins, in milliseconds.
const epoch = 1_700_000_000_000

// Options says what to simulate. The same options give the same run.
type Options struct {
	Seed uint64
	// Steps ends the run after so many steps of the world.
	Steps int
	// Without has kinds of faults that do not happen.
	Without map[string]bool
	// Groups with members, and Writers of groups without.
	Groups, Writers int
}

// faults are the kinds of faults.
//
//	delay, drop, duplicate, reorder   requests and answers on their way
//	crash, stop, pause                the process is killed, stopped in good order, stands still
//	slow, full, fail                  the disk takes long, is nearly full, fails
//	move                              a shard is taken away for a while
var faults = []string{"delay", "drop", "duplicate", "reorder", "crash", "stop", "pause", "slow", "full", "fail", "move"}

// world is everything that there is in a simulation: a queue of what will happen, and
// the coordinator with its clients and its disk.
type world struct {
	o     Options
	rnd   *rand.Rand
	rates map[string]int // of each kind of fault, in 1000
	now   time.Duration
	queue events
	order uint64 // of things that happen at the same time
	steps int

	h      *history.History
	trace  bytes.Buffer
	server *server
	actors []*coroutine
	calls  []*call
	over   bool

	crashes int
}

// event is something that will happen.
type event struct {
	at    time.Duration
	order uint64
	do    func()
}

// events is a heap by time, then by order.
type events []event

// Len implements [heap.Interface].
func (q events) Len() int { return len(q) }

// Less implements [heap.Interface].
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}

// Swap implements [heap.Interface].
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements [heap.Interface].
func (q *events) Push(x any) { *q = append(*q, x.(event)) }

// Pop implements [heap.Interface].
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return e
}

// newWorld makes a world in which nothing has happened.
func newWorld(o Options) *world {
	w := &world{o: o, rnd: rand.New(rand.NewPCG(o.Seed, 1)), rates: map[string]int{}, h: &history.History{}}
	for _, f := range faults { // Each run has some kinds of faults often, others not at all.
		rate := []int{0, 2, 10, 30}[w.rnd.IntN(4)]
		if !o.Without[f] {
			w.rates[f] = rate
		}
	}
	w.server = newServer(w)
	return w
}

// logf writes a line of the trace.
func (w *world) logf(format string, args ...any) {
	fmt.Fprintf(&w.trace, "%d ", w.now.Microseconds())
	fmt.Fprintf(&w.trace, format, args...)
	w.trace.WriteByte('\n')
}

// after makes something happen later.
func (w *world) after(d time.Duration, do func()) { w.at(w.now+d, do) }

// at makes something happen at a time.
func (w *world) at(at time.Duration, do func()) {
	w.order++
	heap.Push(&w.queue, event{max(at, w.now), w.order, do})
}

// some is a time of up to so many milliseconds.
func (w *world) some(ms int) time.Duration {
	return time.Duration(w.rnd.IntN(ms*1000+1)) * time.Microsecond
}

// fault tells whether a fault happens now.
func (w *world) fault(kind string) bool {
	return w.rates[kind] > 0 && !w.over && w.rnd.IntN(1000) < w.rates[kind]
}

// run lets things happen until there is nothing left, or it is enough.
func (w *world) run(until time.Duration, steps int) {
	for len(w.queue) > 0 && w.steps < steps && w.queue[0].at <= until {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		w.steps++
		e.do()
	}
}

// Result is what a run has come to.
type Result struct {
	Seed            uint64
	Events, Commits int
	Crashes         int
	Trace           []byte
	History         *history.History
	Err             error
}

// duration is how long clients and faults go on, settling how long the coordinator has
// to answer everything after that: longer than any timeout.
const (
	duration = 150 * time.Second
	settling = 15 * time.Minute
)

// Run simulates and judges.
func Run(o Options) (r Result) {
	w := newWorld(o)
	r.Seed = o.Seed
	func() {
		defer func() {
			if p := recover(); p != nil {
				r.Err = fmt.Errorf("panic: %v", p)
				w.logf("panic: %v", p)
			}
		}()
		w.populate()
		w.run(duration, o.Steps)
		w.settle()
	}()
	for _, a := range w.actors {
		a.stop()
	}
	r.Events, r.Commits, r.Crashes = w.steps, w.h.Commits(), w.crashes
	r.Trace, r.History = w.trace.Bytes(), w.h
	r.Err = errors.Join(r.Err, w.h.Check())
	return r
}

// populate starts the clients, and the faults that come by themselves.
func (w *world) populate() {
	w.server.start()
	for i := range w.o.Groups {
		g := fmt.Sprintf("group-%d", i)
		w.spawn(func(e *coroutine) { actor.Admin(e, "admin of "+g, g, 5) })
		for j := range 2 + w.rnd.IntN(3) {
			var instance *string
			if j == 0 && w.rnd.IntN(2) == 0 {
				instance = new(string)
				*instance = actor.Static
			}
			w.spawn(func(e *coroutine) { actor.Consumer(e, fmt.Sprintf("member %d of %s", j, g), g, instance) })
			if instance != nil && w.rnd.IntN(3) == 0 { // two processes that have the same instance id
				w.spawn(func(e *coroutine) { actor.Consumer(e, fmt.Sprintf("twin %d of %s", j, g), g, instance) })
			}
		}
	}
	for i := range w.o.Writers {
		g := fmt.Sprintf("simple-%d", i/2)
		w.spawn(func(e *coroutine) { actor.Writer(e, fmt.Sprintf("writer %d of %s", i, g), g) })
		if i%2 == 0 {
			w.spawn(func(e *coroutine) { actor.Admin(e, "admin of "+g, g, 35) })
		}
	}
	w.after(w.some(1000), w.server.trouble)
}

// audit lets somebody look at all offsets.
func (w *world) audit(why string) {
	for _, g := range w.groups() {
		w.spawn(func(e *coroutine) { actor.Audit(e, "audit "+why, g) })
	}
}

// groups are the ids of all groups.
func (w *world) groups() (ids []string) {
	for i := range w.o.Groups {
		ids = append(ids, fmt.Sprintf("group-%d", i))
	}
	for i := range (w.o.Writers + 1) / 2 {
		ids = append(ids, fmt.Sprintf("simple-%d", i))
	}
	return ids
}

// settle ends the clients and looks at what is left: everything that the coordinator
// was asked in its present life it answers, and then everything that was committed is
// there, also after a last crash.
func (w *world) settle() {
	w.over = true
	w.logf("over")
	w.server.heal()
	w.run(w.now+settling, w.steps+1_000_000)
	for _, c := range w.calls {
		if c.submitted && c.life == w.server.life && !c.answered {
			w.h.Problem("request %d (%s) was never answered", c.id, describe(c.group, c.ev))
		}
	}
	w.over = false
	w.rates = map[string]int{}
	w.audit("at the end")
	w.run(w.now+time.Minute, w.steps+1_000_000)
	w.server.crash(0)
	w.run(w.now+time.Minute, w.steps+1_000_000)
	w.over = true
	w.run(w.now+settling, w.steps+1_000_000)
	w.server.leaveAll()
}

// coroutine is an actor as the exact simulation runs it: when it waits, the world goes
// on, and nothing else runs meanwhile.
type coroutine struct {
	w     *world
	rnd   *rand.Rand
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	// turn counts how often it went on, so that what was to wake it earlier does not
	// wake it from something else.
	turn  uint64
	ended bool
}

var _ actor.World = (*coroutine)(nil)

// spawn starts an actor.
func (w *world) spawn(live func(*coroutine)) {
	c := &coroutine{w: w, rnd: rand.New(rand.NewPCG(w.o.Seed, uint64(len(w.actors))+2))}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		live(c)
	})
	w.actors = append(w.actors, c)
	w.after(0, c.resume)
}

// resume lets the actor go on until it waits again.
func (c *coroutine) resume() {
	c.turn++
	_, ok := c.next()
	c.ended = !ok
}

// park waits to be resumed. A world that ends in the middle lets its actors run into
// their ends.
func (c *coroutine) park() bool { return c.yield(struct{}{}) }

// wakeAfter resumes the actor after a time, unless it goes on before.
func (c *coroutine) wakeAfter(d time.Duration) {
	turn := c.turn
	c.w.after(d, func() {
		if c.turn == turn {
			c.resume()
		}
	})
}

// Rand implements [actor.World].
func (c *coroutine) Rand() *rand.Rand { return c.rnd }

// Pace implements [actor.World].
func (c *coroutine) Pace() int { return 1 }

// Over implements [actor.World].
func (c *coroutine) Over() bool { return c.w.over }

// History implements [actor.World].
func (c *coroutine) History() *history.History { return c.w.h }

// Sleep implements [actor.World].
func (c *coroutine) Sleep(d time.Duration) {
	if c.w.over {
		return
	}
	c.wakeAfter(d)
	if !c.park() {
		c.w.over = true
	}
}

// Dial implements [actor.World].
func (c *coroutine) Dial() actor.Conn {
	if !c.w.server.up || c.w.over {
		return nil
	}
	return &conn{w: c.w, client: c, life: c.w.server.life}
}

// describe is an event in the trace.
func describe(id string, ev group.Event) string {
	switch ev := ev.(type) {
	case *group.Join:
		return fmt.Sprintf("join %s %q", id, ev.MemberID)
	case *group.Sync:
		return fmt.Sprintf("sync %s %q %d", id, ev.MemberID, ev.Generation)
	case *group.Heartbeat:
		return fmt.Sprintf("heartbeat %s %q %d", id, ev.MemberID, ev.Generation)
	case *group.Commit:
		return fmt.Sprintf("commit %s %q %d %v", id, ev.MemberID, ev.Generation, ev.Topics)
	case *group.Fetch:
		return fmt.Sprintf("fetch %s all=%v", id, ev.All)
	}
	return fmt.Sprintf("%T %s", ev, id)
}
