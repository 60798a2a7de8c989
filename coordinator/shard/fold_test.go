package shard_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// TestFoldIsOfOneMoment: a fold takes several turns, but its rows are those of its
// beginning: a commit in between is in the change log behind it, not in them.
func TestFoldIsOfOneMoment(t *testing.T) {
	l := &listener{}
	cfg := config()
	cfg.CheckpointBytes, cfg.SweepMax, cfg.Listener = 100, 1, l
	r := load(t, shardtest.NewLog(), cfg)
	for i := range 5 {
		r.send("commit", key(i), commit(1))
	}
	r.shard.RunOnce(1) // Begins and takes the first group.
	for i := range 5 {
		r.send("commit", key(i), commit(2))
	}
	for len(l.folds) == 0 {
		r.shard.RunOnce(1)
	}
	if got := len(r.log.Batches(0)); got != 2 {
		t.Fatalf("%d batches, want 2", got)
	}
	old, whole := load(t, r.log.Checkpointed(), config()), load(t, r.log.Crash(0), config())
	for i := range 5 {
		a, b := old.send("fetch", key(i), fetch()), whole.send("fetch", key(i), fetch())
		old.turns()
		whole.turns()
		if a.offset(t) != 1 || b.offset(t) != 2 {
			t.Errorf("group %d: offset %d in the checkpoint and %d with the tail, want 1 and 2", i, a.offset(t), b.offset(t))
		}
	}
}

// TestFoldInterval: without much traffic changes are folded when the interval is
// over, and a quiet shard folds nothing.
func TestFoldInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listener{}
		cfg := config()
		cfg.Listener = l
		r := run(t, shardtest.NewLog(), cfg)
		r.submit("commit", "a", commit(1))
		time.Sleep(59_999 * time.Millisecond)
		synctest.Wait()
		if len(l.folded()) != 0 {
			t.Fatal("folded too early")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if len(l.folded()) != 1 || l.folded()[0].Folded != 1 || l.folded()[0].Rows != 1 {
			t.Fatalf("folds %+v, want one with one row", l.folded())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(l.folded()) != 1 {
			t.Errorf("%d folds of a quiet shard, want 1", len(l.folded()))
		}
	})
}

// TestFoldBytes bounds the tail that a restart replays.
func TestFoldBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.CheckpointBytes = 1000
		r := run(t, shardtest.NewLog(), cfg)
		for i := range 200 {
			r.submit("commit", "a", commit(int64(i)))
		}
		l := &listener{}
		cfg.Listener = l
		load(t, r.log.Crash(0), cfg)
		if l.load.Rows != 1 || l.load.Records > 1000/30 {
			t.Errorf("a restart reads %+v, want one row and few records", l.load)
		}
	})
}

// TestDeletedGroupsAreForgotten: nothing is left of a group in memory when its
// deletion is durable and folded, nor of one that was only asked about.
func TestDeletedGroupsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		for i := range 50 {
			r.submit("commit", key(i), commit(1))
		}
		for i := range 49 {
			r.submit("delete", key(i), new(group.DeleteGroup))
		}
		for i := range 50 {
			r.submit("fetch", key(100+i), fetch())
			r.submit("heartbeat", key(100+i), heartbeat("m", 1))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := shard.Known(r.shard); got != 1 {
			t.Errorf("%d groups in memory, want 1", got)
		}
		if got := len(r.log.Rows(0)); got != 1 {
			t.Errorf("%d rows in the checkpoint, want 1", got)
		}
	})
}

// TestWaitOutlivesEverything: the deletion of a group has been folded, the group
// has come back as a mere member id handed out, and has gone again without a
// record: all before the deletion is durable.
func TestWaitOutlivesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.CheckpointBytes = 1
		r := run(t, shardtest.NewLog(), cfg)
		r.submit("commit", "a", commit(7))
		r.log.Hold()
		r.submit("delete", "a", new(group.DeleteGroup))
		j := join("")
		j.RequireMemberID = true
		r.submit("join", "a", j)
		r.submit("commit b", "b", commit(1)) // Its fold looks after what has gone.
		r.submit("leave", "a", &group.Leave{Members: []group.LeaveMember{{MemberID: j.NewID}}})
		r.submit("fetch", "a", fetch())
		r.book.wantOrder(t, "commit")
		r.log.Release()
		r.book.wantOrder(t, "commit", "delete", "join", "leave", "fetch", "commit b")
	})
}
