package shard_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// join is a JoinGroup of a member with a session of 10 s.
func join(member string) *group.Join {
	return &group.Join{
		Client: group.Client{ID: "c", Host: "/127.0.0.1"}, MemberID: member, NewID: "m" + member,
		SessionTimeout: 10_000, RebalanceTimeout: 60_000,
		ProtocolType: "consumer", Protocols: []group.Protocol{{Name: "range", Metadata: []byte{1}}},
	}
}

// synced is a SyncGroup of the leader that gives all to itself.
func synced(member string, generation int32) *group.Sync {
	return &group.Sync{MemberID: member, Generation: generation, Assignments: []group.Assignment{{MemberID: member, Bytes: []byte{1}}}}
}

// heartbeat is a Heartbeat.
func heartbeat(member string, generation int32) *group.Heartbeat {
	return &group.Heartbeat{MemberID: member, Generation: generation}
}

// stable makes a Stable group with one member and returns its id and generation. It
// runs in a bubble.
func (r *rig) stable(id string) (member string, generation int32) {
	r.t.Helper()
	j := r.submit("join "+id, id, join(""))
	for range 10 {
		if j.came() == 0 {
			r.pass(time.Second) // group.initial.rebalance.delay.ms
		}
	}
	if code := j.code(r.t); code != group.None {
		r.t.Fatalf("join: code %d", code)
	}
	body := j.reply.Body.(*group.JoinReply)
	if code := r.submit("sync "+id, id, synced(body.MemberID, body.Generation)).code(r.t); code != group.None {
		r.t.Fatalf("sync: code %d", code)
	}
	return body.MemberID, body.Generation
}

// alive tells whether a heartbeat of the member is accepted.
func (r *rig) alive(id, member string, generation int32) bool {
	r.t.Helper()
	switch code := r.submit("heartbeat", id, heartbeat(member, generation)).code(r.t); code {
	case group.None:
		return true
	case group.UnknownMemberID:
		return false
	default:
		r.t.Fatalf("heartbeat: code %d", code)
		return false
	}
}

// TestSessionExpires: a silent member goes after its session timeout, one that is
// heard does not; the heap is not asked to be exact meanwhile.
func TestSessionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		silent, g1 := r.stable("silent")
		heard, g2 := r.stable("heard")
		for range 4 {
			time.Sleep(2499 * time.Millisecond)
			if !r.alive("heard", heard, g2) {
				t.Fatal("a member that was heard has gone")
			}
		}
		if !r.alive("silent", silent, g1) {
			t.Fatal("the member has gone before its session was over")
		}
		time.Sleep(10_001 * time.Millisecond)
		if r.alive("silent", silent, g1) || r.alive("heard", heard, g2) {
			t.Error("a member was still there after its session was over")
		}
	})
}

// TestInitialDelay: a join is answered when the initial rebalance delay is over, by
// the shard's timer alone.
func TestInitialDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.Group.InitialRebalanceDelay = 3000
		r := run(t, shardtest.NewLog(), cfg)
		start := time.Now()
		j := r.submit("join", "a", join(""))
		for j.came() == 0 {
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		if got := time.Since(start); got < 3*time.Second || got > 3001*time.Millisecond {
			t.Errorf("answered after %v, want 3s", got)
		}
	})
}

// manual is a clock that a test sets.
type manual struct {
	mu  sync.Mutex
	now group.Time
}

func (c *manual) read() (now, wall group.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, 1_700_000_000_000 + c.now
}

// to moves the clock and does every turn that is due until then.
func (c *manual) to(r *rig, t group.Time) {
	for {
		now, _ := c.read()
		next, again := r.shard.RunOnce(now)
		switch {
		case again:
		case next <= t && next > now:
			c.at(next)
		case now == t:
			return
		default:
			c.at(t)
		}
	}
}

// jump moves the clock without doing what was due meanwhile, then does it.
func (c *manual) jump(r *rig, t group.Time) {
	c.at(t)
	c.to(r, t)
}

// at sets the clock only.
func (c *manual) at(t group.Time) {
	c.mu.Lock()
	c.now = t
	c.mu.Unlock()
}

// listener counts what it hears.
type listener struct {
	shard.NopListener
	mu      sync.Mutex
	stalls  []time.Duration
	notes   []string
	folds   []shard.Checkpoint
	states  []shard.State
	load    shard.Load
	parked  int
	timeout int
}

func (l *listener) OnStall(_ uint32, d time.Duration) {
	l.mu.Lock()
	l.stalls = append(l.stalls, d)
	l.mu.Unlock()
}

func (l *listener) OnNotes(_ uint32, id string, notes []group.Note) {
	l.mu.Lock()
	for _, n := range notes {
		l.notes = append(l.notes, fmt.Sprint(id, " ", n.Rule, " ", n.Reason))
	}
	l.mu.Unlock()
}

func (l *listener) OnCheckpoint(_ uint32, c shard.Checkpoint) {
	l.mu.Lock()
	l.folds = append(l.folds, c)
	l.mu.Unlock()
}

// folded returns the checkpoints so far.
func (l *listener) folded() []shard.Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.folds)
}

func (l *listener) OnState(_ uint32, s shard.State, load shard.Load, _ error) {
	l.mu.Lock()
	l.states = append(l.states, s)
	if s == shard.Active {
		l.load = load
	}
	l.mu.Unlock()
}

func (l *listener) OnTurn(_ uint32, t shard.Turn) {
	l.mu.Lock()
	l.parked = t.Parked
	l.mu.Unlock()
}

func (l *listener) OnTimeout(_ uint32, n int) {
	l.mu.Lock()
	l.timeout += n
	l.mu.Unlock()
}

// clocked is a shard whose turns and time the test has in hand, with a Stable group
// "a" whose only member was last heard at 0.
func clocked(t *testing.T) (r *rig, c *manual, l *listener, member string) {
	c, l = &manual{}, &listener{}
	cfg := config()
	cfg.Clock, cfg.Listener = c.read, l
	r = load(t, shardtest.NewLog(), cfg)
	j := r.send("join", "a", join(""))
	c.to(r, 0)
	c.to(r, 1)
	if code := j.code(t); code != group.None {
		t.Fatalf("join: code %d", code)
	}
	body := j.reply.Body.(*group.JoinReply)
	s := r.send("sync", "a", synced(body.MemberID, 1))
	h := r.send("heartbeat", "a", heartbeat(body.MemberID, 1))
	c.to(r, 1)
	if s.code(t) != group.None || h.code(t) != group.None {
		t.Fatal("not Stable")
	}
	return r, c, l, body.MemberID
}

// TestTickAfterWhatArrivedBefore (rule 13): a turn that comes late steps the
// heartbeat that arrived in time before the deadline it renews.
func TestTickAfterWhatArrivedBefore(t *testing.T) {
	r, c, l, member := clocked(t)
	c.to(r, 10_000)
	c.at(10_001) // The very last moment of its session.
	inTime := r.send("heartbeat", "a", heartbeat(member, 1))
	c.at(10_900)
	other := r.send("fetch", "b", fetch())
	c.jump(r, 10_900)
	other.code(t)
	if code := inTime.code(t); code != group.None {
		t.Errorf("heartbeat in time: code %d", code)
	}
	if len(l.stalls) != 0 {
		t.Errorf("stalls of %v, want none under a second", l.stalls)
	}
	c.at(20_002) // One too late.
	tooLate := r.send("heartbeat", "a", heartbeat(member, 1))
	c.to(r, 20_003)
	if code := tooLate.code(t); code != group.UnknownMemberID {
		t.Errorf("heartbeat too late: code %d, want %d", code, group.UnknownMemberID)
	}
}

// TestFullInboxStampsBeforeWaiting (rule 13): a heartbeat that had to wait for room
// counts from when it came.
func TestFullInboxStampsBeforeWaiting(t *testing.T) {
	c := &manual{}
	l := &listener{}
	cfg := config()
	cfg.Clock, cfg.InboxMax, cfg.Listener = c.read, 2, l
	r := load(t, shardtest.NewLog(), cfg)
	j := r.send("join", "a", join(""))
	c.to(r, 0)
	c.to(r, 1)
	member := j.reply.Body.(*group.JoinReply).MemberID
	r.send("sync", "a", synced(member, 1))
	c.to(r, 1)

	c.to(r, 10_000)
	r.send("fetch", "b", fetch())
	r.send("fetch", "b", fetch())
	a := &answer{to: "heartbeat", book: &r.book}
	through := make(chan struct{})
	go func() {
		r.shard.Submit(t.Context(), "a", heartbeat(member, 1), a)
		close(through)
	}()
	shard.AwaitLine(r.shard, 1)
	c.jump(r, 10_900)
	<-through
	if code := a.code(t); code != group.None {
		t.Errorf("code %d for a heartbeat that came in time and had to wait", code)
	}
	if len(l.stalls) != 0 {
		t.Errorf("stalls %v, want none", l.stalls)
	}
}

// TestStandstillEvictsNobody (rule 13): a process that was stopped gives members
// the time that it took from them, once.
func TestStandstillEvictsNobody(t *testing.T) {
	r, c, l, member := clocked(t)
	c.to(r, 10_000)
	c.jump(r, 30_000)
	if len(l.stalls) != 1 || l.stalls[0] < 20*time.Second {
		t.Fatalf("stalls %v, want one of 20 s or more", l.stalls)
	}
	c.at(30_100)
	h := r.send("heartbeat", "a", heartbeat(member, 1))
	c.to(r, 30_100)
	if code := h.code(t); code != group.None {
		t.Errorf("code %d after a standstill, want none", code)
	}
	c.to(r, 41_000)
	h = r.send("heartbeat", "a", heartbeat(member, 1))
	c.to(r, 41_000)
	if code := h.code(t); code != group.UnknownMemberID {
		t.Errorf("code %d after a whole session of silence, want %d", code, group.UnknownMemberID)
	}
	if len(l.stalls) != 1 {
		t.Errorf("%d stalls, want 1", len(l.stalls))
	}
}

// TestDeadGoAfterStandstill: who is really gone goes a session after it.
func TestDeadGoAfterStandstill(t *testing.T) {
	r, c, _, member := clocked(t)
	c.to(r, 10_000)
	c.jump(r, 30_000)
	c.to(r, 41_000)
	h := r.send("heartbeat", "a", heartbeat(member, 1))
	c.to(r, 41_000)
	if code := h.code(t); code != group.UnknownMemberID {
		t.Errorf("code %d, want %d", code, group.UnknownMemberID)
	}
}

// TestIdleIsNoStandstill: a shard that had nothing to do for an hour was not
// stopped.
func TestIdleIsNoStandstill(t *testing.T) {
	c, l := &manual{}, &listener{}
	cfg := config()
	cfg.Clock, cfg.Listener = c.read, l
	r := load(t, shardtest.NewLog(), cfg)
	c.to(r, 0)
	c.at(500_000)
	r.send("fetch", "a", fetch())
	c.to(r, 500_000)
	if len(l.stalls) != 0 {
		t.Errorf("stalls %v, want none", l.stalls)
	}
}

// TestDeadlineDueAtOnce: with a rebalance timeout of 0 the join phase and the sync
// phase end as soon as they begin: what one Tick makes due another handles.
func TestDeadlineDueAtOnce(t *testing.T) {
	r, c, _, _ := clocked(t)
	first := join("")
	first.RebalanceTimeout = 0
	j := r.send("join", "b", first)
	c.to(r, 1)
	if got := j.code(t); got != group.None {
		t.Fatalf("join: code %d", got)
	}
	c.to(r, 10) // It does not sync in time.
	d := r.send("describe", "b", new(group.Describe))
	c.to(r, 10)
	if body := d.reply.Body.(*group.DescribeReply); body.State != group.Empty {
		t.Errorf("group b is %s, want Empty", render(body))
	}
}

// TestExpiry: offsets expire at the first check after their retention is over.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.Group.OffsetsRetention = 60_000
		cfg.ExpireInterval = 25_000
		cfg.SweepMax = 7
		r := run(t, shardtest.NewLog(), cfg)
		for i := range 40 {
			r.submit("commit", key(i), commit(int64(i)))
		}
		time.Sleep(60 * time.Second)
		if got := r.submit("fetch", key(3), fetch()).offset(t); got != 3 {
			t.Errorf("offset %d before the check, want 3", got)
		}
		time.Sleep(16 * time.Second)
		for i := range 40 {
			if got := r.submit("fetch", key(i), fetch()).offset(t); got != -1 {
				t.Errorf("group %d: offset %d after the check, want -1", i, got)
			}
		}
	})
}
