package shard

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// never is a time that does not come.
const never = group.Time(math.MaxInt64)

// timerMax is the longest time, in milliseconds, that Run sleeps.
const timerMax = 3_600_000

// stallMin is how long, in milliseconds, a shard must have stood still for
// deadlines to be postponed (design rule 13).
const stallMin = 1000

// Shard owns the groups of one shard. Make one with [New], read its log with
// [Shard.Load], then let [Shard.Run] or a simulator's [Shard.RunOnce] work.
type Shard struct {
	n   uint32
	cfg Config
	log Log

	in  inbox
	out outbox
	// wake wakes Run; it has room for one.
	wake chan struct{}
	// running is set while Run does its work.
	running atomic.Bool

	// turn is the right to step machines. Everything below belongs to who has it.
	turn   sync.Mutex
	env    *group.Env
	groups map[string]*entry
	// order has the entries of groups, so that going over all of them does not
	// depend on the map.
	order []*entry
	// deadlines is a heap of the entries that want a Tick.
	deadlines deadlines
	// gone are entries whose group does not exist but whose end is not durable or
	// not folded yet.
	gone []*entry

	// queue was taken from the inbox; the items before head are done. until is
	// the time before which everything that arrived is in it. more tells that there
	// may be something in the inbox although the turn is over.
	queue []item
	head  int
	until group.Time
	more  bool

	// now is the latest time that a machine has seen.
	now group.Time
	// seen is when the last turn began, wakeAt when it wanted the next one.
	seen, wakeAt group.Time
	// armed is when the timer of Run fires.
	armed group.Time
	// stall is the last time that the shard stood still.
	stall stall
	// ticked is the event of every Tick, to save allocating one.
	ticked group.Tick
	// diskLow and turnStats are those of the turn.
	diskLow   bool
	turnStats Turn

	// request is the last ReqID given out.
	request group.ReqID
	// parked are the requests that machines hold.
	parked map[group.ReqID]origin

	// seq is the next sequence number, epoch that of the log's owner.
	seq, epoch uint64
	// cur gathers the records of the turn.
	cur *batch
	// timeoutAt is a lower bound of the time at which a reply has waited too long.
	timeoutAt group.Time

	fold fold
	// folded is what was last handed to Log.Checkpoint, for the trimmer.
	folded atomic.Uint64
	sweeps []*sweep
	// expireAt is when offsets expire next.
	expireAt group.Time
}

// stall is a time during which the shard stood still.
type stall struct {
	// end is when it was noticed; length is an upper bound, in milliseconds.
	end, length group.Time
}

// entry is a group of the shard.
type entry struct {
	id string
	m  *group.Machine
	// need is the sequence number that must be durable before a reply about the
	// group leaves: that after its last record, 0 if it has made none here.
	need uint64
	// deadline is when the group is looked at next: at or before its machine's
	// NextDeadline. It counts only while slot is not -1.
	deadline group.Time
	// slot is the place in deadlines, place that in Shard.order.
	slot, place int32
	// folding says what the checkpoint lacks of the group.
	folding foldState
	// gone: the group does not exist. listed: the entry is in Shard.gone.
	gone, listed bool
}

// origin is where an event comes from and who waits for the reply.
type origin struct {
	req   group.ReqID
	sink  Sink
	fetch bool
	// sweep collects the reply instead of a sink.
	sweep *sweep
}

// New returns the shard of a number, in state Loading.
func New(cfg Config, n uint32, log Log) *Shard {
	cfg = cfg.withDefaults()
	s := &Shard{
		n:         n,
		cfg:       cfg,
		log:       log,
		wake:      make(chan struct{}, 1),
		env:       &group.Env{Config: cfg.Group},
		groups:    make(map[string]*entry),
		parked:    make(map[group.ReqID]origin),
		stall:     stall{end: -1},
		wakeAt:    never,
		armed:     never,
		timeoutAt: never,
		expireAt:  never,
	}
	s.in.max = cfg.InboxMax
	s.fold.at = never
	s.cur = s.newBatch(0)
	return s
}

// State tells where the shard is in its life.
func (s *Shard) State() State { return s.in.current() }

// wall is the Unix time of what does not come from the inbox.
func (s *Shard) wall() group.Time {
	_, wall := s.cfg.Clock()
	return wall
}

// Submit gives an event to the machine of group id; the reply goes to sink. It
// blocks while the inbox is full; if ctx ends first, or the shard is not active,
// the reply comes at once with the code for that. The event and all that it
// points to belong to the shard from then on. A nil sink is for events that want
// no answer.
func (s *Shard) Submit(ctx context.Context, id string, ev group.Event, sink Sink) {
	it := item{id: id, ev: ev, sink: sink}
	if code := s.offer(ctx, &it); code != group.None && sink != nil {
		if _, ok := ev.(*group.Heartbeat); ok && code == group.CoordinatorLoading {
			code = group.None // As in Kafka: a member need not know about the load.
		}
		sink.Reply(group.Reply{Code: code})
	}
}

// Each steps an event made by mk on each group that exists, some at a time, and
// gives the replies to done when the records that they depend on are durable.
// code says why there are none, if there are none.
func (s *Shard) Each(ctx context.Context, mk func() group.Event, done func(shard uint32, code group.Code, replies []group.Reply)) {
	sw := &sweep{shard: s.n, mk: mk, done: done}
	if code := s.offer(ctx, &item{sweep: sw}); code != group.None {
		done(s.n, code, nil)
	}
}

// offer puts an item into the inbox, or says why not.
func (s *Shard) offer(ctx context.Context, it *item) group.Code {
	help := s.running.Load() && !writes(it.ev)
	state, w, wake := s.in.put(it, s.cfg.Clock, help)
	switch {
	case state == Loading:
		return group.CoordinatorLoading
	case state == Closed:
		return group.NotCoordinator
	case help:
		s.help(it.at)
	case wake:
		s.wakeUp()
	}
	if w != nil && !s.in.wait(ctx, w) {
		return group.CoordinatorNotAvailable
	}
	return group.None
}

// writes tells whether an event is one that comes in numbers and mostly writes.
func writes(ev group.Event) bool {
	_, ok := ev.(*group.Commit)
	return ok
}

// help does a turn on the goroutine of a submitter if nobody else has the turn.
// That saves waking Run and being woken by it, which is most of what a heartbeat
// costs. Commits are left to Run: they wait for the disk anyway, and those that
// gather meanwhile share a batch.
//
// Whoever has the turn looks into the inbox once more after giving it back, so an
// event whose submitter could not help is not forgotten.
func (s *Shard) help(now group.Time) {
	if !s.turn.TryLock() {
		return
	}
	next, _ := s.doTurn(now)
	sooner := next < s.armed
	s.turn.Unlock()
	if sooner || !s.in.empty() {
		s.wakeUp()
	}
}

// wakeUp makes Run begin a turn.
func (s *Shard) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run does the shard's turns until it is stopped or lost (nil), a write fails
// (the error of the log), or ctx ends (its error). The shard must be loaded.
func (s *Shard) Run(ctx context.Context) error {
	timer := time.NewTimer(timerMax * time.Millisecond)
	defer timer.Stop()
	s.running.Store(true)
	defer s.running.Store(false)
	for {
		now, _ := s.cfg.Clock()
		s.turn.Lock()
		next, again := s.doTurn(now)
		// A timer that fires too early costs one empty turn; setting it anew for
		// each heartbeat would cost more.
		if next < s.armed || s.armed <= now {
			s.armed = min(next, now+timerMax)
			timer.Reset(time.Duration(s.armed-now) * time.Millisecond)
		}
		s.turn.Unlock()
		if err := s.failure(); err != nil {
			return s.close(err)
		}
		if s.State() == Closed {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return s.close(err)
		}
		if again || !s.in.sleep() {
			continue
		}
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
			return s.close(ctx.Err())
		}
	}
}

// close ends a shard that stops without an orderly end.
func (s *Shard) close(err error) error {
	if s.in.enter(Closed) {
		s.cfg.Listener.OnState(s.n, Closed, Load{}, err)
	}
	return err
}

// RunOnce does one turn at the given time, which must not be before that of the
// last one. It returns when the next turn is due, and whether there is more to do
// right away.
func (s *Shard) RunOnce(now group.Time) (next group.Time, again bool) {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.doTurn(now)
}

// doTurn is RunOnce for who has the turn.
func (s *Shard) doTurn(now group.Time) (next group.Time, again bool) {
	if s.State() != Active || s.out.failed.Load() {
		return never, false
	}
	now = max(now, s.seen)
	s.begin(now)
	for n := 0; s.head < len(s.queue) && n < s.cfg.BatchMax; n++ {
		it := &s.queue[s.head]
		s.head++
		s.ticks(it.at - 1)
		s.handle(it)
		*it = item{}
	}
	if s.head == len(s.queue) {
		s.ticks(s.until)
	}
	s.sweepSome(now)
	s.flush()
	s.foldSome(now)
	s.timeouts(now)
	return s.finish(now)
}

// begin starts a turn: it fetches work and notices a standstill.
func (s *Shard) begin(now group.Time) {
	s.turnStats = Turn{Inbox: len(s.queue) - s.head}
	s.more = true
	if s.head == len(s.queue) {
		s.queue, s.until, s.more = s.in.take(now, s.queue)
		s.head = 0
		s.turnStats.Inbox = len(s.queue)
	}
	s.diskLow = s.cfg.DiskLow()
	due := s.wakeAt
	if s.head < len(s.queue) {
		due = min(due, s.queue[s.head].at)
	}
	if due < now-stallMin {
		s.stall = stall{end: now, length: now - s.seen}
		s.cfg.Listener.OnStall(s.n, time.Duration(s.stall.length)*time.Millisecond)
	}
	s.seen = now
}

// finish ends a turn and says when the next one is due.
func (s *Shard) finish(now group.Time) (next group.Time, again bool) {
	if s.turnStats.Events > 0 {
		s.turnStats.Parked, s.turnStats.Groups = len(s.parked), len(s.order)
		s.cfg.Listener.OnTurn(s.n, s.turnStats)
	}
	if s.head < len(s.queue) || s.more || len(s.sweeps) > 0 || s.fold.active() {
		s.wakeAt = now
		return now, true
	}
	next = min(s.timeoutAt, s.fold.at, s.expireAt)
	if len(s.deadlines) > 0 {
		next = min(next, s.deadlines[0].deadline)
	}
	s.wakeAt = next
	return next, false
}
