package shard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// TestBackpressure: a full inbox blocks who submits, in line, until a turn has made
// room; nothing overtakes.
func TestBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.InboxMax = 2
		r := load(t, shardtest.NewLog(), cfg)
		var through atomic.Int32
		for i := range 7 {
			go func() {
				r.send(fmt.Sprint(i), "a", fetch())
				through.Add(1)
			}()
			synctest.Wait()
		}
		for _, want := range []int32{2, 4, 6, 7, 7} {
			if got := through.Load(); got != want {
				t.Fatalf("%d are through, want %d", got, want)
			}
			r.shard.RunOnce(0)
			synctest.Wait()
		}
		r.book.wantOrder(t, "0", "1", "2", "3", "4", "5", "6")
	})
}

// TestBackpressureEndsWithContext: who gives up waiting for room is answered, and
// what he wanted is not done.
func TestBackpressureEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.InboxMax = 1
		r := load(t, shardtest.NewLog(), cfg)
		r.send("first", "a", fetch())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := &answer{to: "commit", book: &r.book}
		r.shard.Submit(ctx, "a", commit(1), a)
		if got := a.code(t); got != group.CoordinatorNotAvailable {
			t.Errorf("code %d, want %d", got, group.CoordinatorNotAvailable)
		}
		r.turns()
		if n := r.log.Appends(); n != 0 {
			t.Errorf("%d appends, want none", n)
		}
		r.book.wantOrder(t, "commit", "first")
	})
}

// TestLoading: while the log is read requests get COORDINATOR_LOAD_IN_PROGRESS and
// heartbeats succeed (classic-groups.md section 4; B126).
func TestLoading(t *testing.T) {
	s := shard.New(config(), 0, shardtest.NewLog())
	var book ledger
	for _, c := range []struct {
		ev   group.Event
		want group.Code
	}{
		{join(""), group.CoordinatorLoading},
		{synced("m", 1), group.CoordinatorLoading},
		{heartbeat("m", 1), group.None},
		{new(group.Leave), group.CoordinatorLoading},
		{commit(1), group.CoordinatorLoading},
		{fetch(), group.CoordinatorLoading},
		{new(group.DeleteOffsets), group.CoordinatorLoading},
		{new(group.DeleteGroup), group.CoordinatorLoading},
		{new(group.Describe), group.CoordinatorLoading},
	} {
		a := &answer{to: fmt.Sprintf("%T", c.ev), book: &book}
		s.Submit(t.Context(), "a", c.ev, a)
		if got := a.code(t); got != c.want {
			t.Errorf("%s: code %d, want %d", a.to, got, c.want)
		}
	}
	var code group.Code
	s.Each(t.Context(), func() group.Event { return new(group.List) }, func(_ uint32, c group.Code, _ []group.Reply) { code = c })
	if code != group.CoordinatorLoading {
		t.Errorf("Each: code %d, want %d", code, group.CoordinatorLoading)
	}
}

// brokenLog cannot be loaded.
type brokenLog struct{ *shardtest.Log }

var errBroken = errors.New("bad block")

func (brokenLog) Load(context.Context, uint32, func(key, value []byte) error, func(first uint64, value []byte) error) (folded, epoch uint64, err error) {
	return 0, 0, errBroken
}

// TestLoadFails: the error says which shard; its requests get NOT_COORDINATOR.
func TestLoadFails(t *testing.T) {
	s := shard.New(config(), 3, brokenLog{shardtest.NewLog()})
	if err := s.Load(t.Context()); !errors.Is(err, errBroken) || err.Error() != "load shard 3: bad block" {
		t.Errorf("error %v", err)
	}
	a := &answer{to: "fetch", book: new(ledger)}
	s.Submit(t.Context(), "a", fetch(), a)
	if got := a.code(t); got != group.NotCoordinator {
		t.Errorf("code %d, want %d", got, group.NotCoordinator)
	}
}

// TestLoadRefuses what it does not understand, instead of guessing.
func TestLoadRefuses(t *testing.T) {
	good := load(t, shardtest.NewLog(), config())
	good.send("commit", "a", commit(1))
	good.turns()
	value := good.log.Batches(0)[0].Value
	for name, change := range map[string]func(v []byte) []byte{
		"an unknown version": func(v []byte) []byte { v[0]++; return v },
		"a short head":       func(v []byte) []byte { return v[:3] },
		"a cut record":       func(v []byte) []byte { return v[:len(v)-1] },
		"bytes at the end":   func(v []byte) []byte { return append(v, 0) },
		"records missing":    func(v []byte) []byte { v[4]++; return v },
	} {
		log := shardtest.NewLog()
		s := shard.New(config(), 0, log)
		if _, _, err := log.Load(t.Context(), 0, nil, nil); err != nil {
			t.Fatal(err)
		}
		log.Append(0, 1, 0, 1, change(slices.Clone(value)), func(error) {})
		if err := s.Load(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestStopAnswersParked (B77): held joins and syncs get NOT_COORDINATOR with their
// member ids, at once; a commit in flight when it is durable.
func TestStopAnswersParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.Group.InitialRebalanceDelay = 3000
		r := run(t, shardtest.NewLog(), cfg)
		member, generation := r.stable("x")
		first, second := r.submit("join", "two", join("")), join("")
		second.NewID = "second"
		follower := r.submit("join", "two", second)
		time.Sleep(7 * time.Second)
		synctest.Wait()
		if first.code(t) != group.None || follower.code(t) != group.None {
			t.Fatal("the round of two has not ended")
		}
		sync := r.submit("sync", "two", &group.Sync{MemberID: "second", Generation: 1})
		var joins []*answer
		for i := range 50 {
			joins = append(joins, r.submit("join", key(i), join("")))
		}
		r.log.Hold()
		c := r.submit("commit", "y", commit(1))
		begin := time.Now()
		stopped := make(chan error, 1)
		go func() { stopped <- r.shard.Stop(t.Context()) }()
		synctest.Wait()
		for _, j := range joins {
			if got := j.code(t); got != group.NotCoordinator {
				t.Errorf("join: code %d, want %d", got, group.NotCoordinator)
			}
			if got := j.reply.Body.(*group.JoinReply).MemberID; got != "m" {
				t.Errorf("a parked join is answered to member %q, want m", got)
			}
		}
		if got := sync.code(t); got != group.NotCoordinator {
			t.Errorf("sync: code %d, want %d", got, group.NotCoordinator)
		}
		time.Sleep(100 * time.Millisecond)
		r.log.Release()
		if err := errors.Join(<-stopped, <-r.ended); err != nil {
			t.Fatal(err)
		}
		if got := c.code(t); got != group.None {
			t.Errorf("commit: code %d", got)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("stopping took %v", took)
		}
		// A Stable group goes on where it was.
		r2 := run(t, r.log.Crash(0), cfg)
		if !r2.alive("x", member, generation) {
			t.Error("the member is unknown after the restart")
		}
	})
}

// TestEach steps every group once, over several turns, while others go on.
func TestEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.SweepMax = 3
		r := run(t, shardtest.NewLog(), cfg)
		for i := range 20 {
			r.submit("commit", key(i), commit(1))
		}
		r.log.Hold()
		r.submit("commit", key(7), commit(2))
		var listed []string
		done := 0
		r.shard.Each(t.Context(), func() group.Event { return new(group.List) }, func(n uint32, code group.Code, replies []group.Reply) {
			done++
			if n != 0 || code != group.None {
				t.Errorf("shard %d, code %d", n, code)
			}
			for _, reply := range replies {
				listed = append(listed, reply.Body.(*group.ListReply).GroupID)
			}
		})
		synctest.Wait()
		if done != 0 {
			t.Error("the list left before a commit it may show was durable")
		}
		r.log.Release()
		synctest.Wait()
		if done != 1 || len(listed) != 20 {
			t.Errorf("done %d times with %d groups, want once with 20", done, len(listed))
		}
		slices.Sort(listed)
		if n := len(slices.Compact(listed)); n != 20 {
			t.Errorf("%d different groups, want 20", n)
		}
		// An event that answers nothing is over when its records are durable.
		id := group.TopicID{1}
		r.shard.Each(t.Context(), func() group.Event {
			return &group.CheckTopics{Lookup: func(string) (group.TopicID, bool) { return id, false }}
		},
			func(_ uint32, _ group.Code, _ []group.Reply) { done++ })
		synctest.Wait()
		if done != 2 {
			t.Errorf("done %d times, want 2", done)
		}
	})
}

// TestDiskLow: while space is short commits are refused and change nothing.
func TestDiskLow(t *testing.T) {
	var low atomic.Bool
	cfg := config()
	cfg.DiskLow = low.Load
	r := load(t, shardtest.NewLog(), cfg)
	for _, full := range []bool{false, true, false} {
		low.Store(full)
		c := r.send("commit", "a", commit(1))
		r.turns()
		want := group.None
		if full {
			want = group.CoordinatorNotAvailable
		}
		if got := c.code(t); got != want {
			t.Errorf("disk low %v: code %d, want %d", full, got, want)
		}
	}
	if n := r.log.Appends(); n != 2 {
		t.Errorf("%d appends, want 2", n)
	}
}

// TestSoak (S1.12) lets 500 groups live on one shard from many goroutines, for the
// race detector: every request gets exactly one answer, an acknowledged offset is
// read back.
func TestSoak(t *testing.T) {
	cfg := config()
	cfg.Group.InitialRebalanceDelay = 1
	cfg.InboxMax, cfg.CheckpointBytes, cfg.SweepMax = 64, 4<<10, 16
	log := shardtest.NewLog()
	s := shard.New(cfg, 0, log)
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	ask := func(id string, ev group.Event) group.Reply {
		c := make(replyChan, 2)
		s.Submit(context.Background(), id, ev, c)
		return <-c
	}
	var clients sync.WaitGroup
	for i := range 500 {
		clients.Go(func() { soak(t, ask, key(i), int64(i)) })
	}
	for range 20 {
		done := make(chan struct{})
		s.Each(t.Context(), func() group.Event { return new(group.List) }, func(uint32, group.Code, []group.Reply) { close(done) })
		<-done
	}
	clients.Wait()
	if err := errors.Join(s.Stop(context.Background()), <-ended); err != nil {
		t.Fatal(err)
	}
	r := load(t, log.Crash(0), config())
	for i := range 500 {
		a := r.send("fetch", key(i), fetch())
		r.turns()
		if got := a.offset(t); got != int64(i)+10 {
			t.Errorf("group %d: offset %d after the restart, want %d", i, got, i+10)
		}
	}
}

// replyChan is a sink with room for one reply too many.
type replyChan chan group.Reply

// Reply implements shard.Sink.
func (c replyChan) Reply(r group.Reply) { c <- r }

// soak is the life of one group with one member.
func soak(t *testing.T, ask func(id string, ev group.Event) group.Reply, id string, base int64) {
	r := ask(id, join(""))
	j, ok := r.Body.(*group.JoinReply)
	if r.Code != group.None || !ok {
		t.Errorf("join: %+v", r)
		return
	}
	if r := ask(id, synced(j.MemberID, j.Generation)); r.Code != group.None {
		t.Errorf("sync: code %d", r.Code)
	}
	for i := range int64(11) {
		c := commit(base + i)
		c.MemberID, c.Generation = j.MemberID, j.Generation
		if r := ask(id, c); r.Code != group.None {
			t.Errorf("commit: code %d", r.Code)
		}
		if r := ask(id, heartbeat(j.MemberID, j.Generation)); r.Code != group.None {
			t.Errorf("heartbeat: code %d", r.Code)
		}
		r := ask(id, fetch())
		if f, ok := r.Body.(*group.FetchReply); !ok || f.Topics[0].Partitions[0].Offset != base+i {
			t.Errorf("fetch: %+v", r)
		}
	}
}
