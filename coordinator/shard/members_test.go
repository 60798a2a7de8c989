package shard_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// delayed is a configuration with which members can come together.
func delayed() shard.Config {
	cfg := config()
	cfg.Group.InitialRebalanceDelay = 1000
	return cfg
}

// form lets n members join a new group in one generation and returns what they are
// told, the leader first. It runs in a bubble, with an initial delay.
func (r *rig) form(id string, n int) []*group.JoinReply {
	r.t.Helper()
	joins := make([]*answer, n)
	for i := range joins {
		j := join("")
		j.NewID = key(i)
		joins[i] = r.submit("join", id, j)
	}
	r.pass(5 * time.Second)
	told := make([]*group.JoinReply, n)
	for i, j := range joins {
		if code := j.code(r.t); code != group.None {
			r.t.Fatalf("join %d: code %d", i, code)
		}
		told[i] = j.reply.Body.(*group.JoinReply)
		if told[i].Generation != told[0].Generation || told[i].Leader != told[0].MemberID {
			r.t.Fatalf("%q is told %+v, and %q %+v", told[i].MemberID, told[i], told[0].MemberID, told[0])
		}
	}
	return told
}

// syncs lets all of a generation sync, the leader last.
func (r *rig) syncs(id string, told []*group.JoinReply) []*answer {
	r.t.Helper()
	all := make([]*answer, len(told))
	for i := len(told) - 1; i >= 0; i-- {
		ev := &group.Sync{MemberID: told[i].MemberID, Generation: told[i].Generation}
		if i == 0 {
			for _, m := range told {
				ev.Assignments = append(ev.Assignments, group.Assignment{MemberID: m.MemberID, Bytes: []byte("for " + m.MemberID)})
			}
		}
		all[i] = r.submit(fmt.Sprint("sync ", i), id, ev)
	}
	return all
}

// TestWritesOfAGroup (S1.13): four members that join and sync cost one write, ten
// minutes of their heartbeats none, and that all leave one.
func TestWritesOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), delayed())
		want := func(what string, n int) {
			t.Helper()
			if got := r.log.Appends(); got != n {
				t.Errorf("%d writes after %s, want %d", got, what, n)
			}
		}
		told := r.form("g", 4)
		want("the joins", 0)
		for _, s := range r.syncs("g", told) {
			if code := s.code(t); code != group.None {
				t.Fatalf("sync: code %d", code)
			}
		}
		want("the syncs", 1)
		for range 10 * 60 / 5 {
			r.pass(5 * time.Second)
			for _, m := range told {
				if !r.alive("g", m.MemberID, m.Generation) {
					t.Fatalf("%q is gone", m.MemberID)
				}
			}
		}
		want("the heartbeats", 1)
		leave := new(group.Leave)
		for _, m := range told {
			leave.Members = append(leave.Members, group.LeaveMember{MemberID: m.MemberID})
		}
		if code := r.submit("leave", "g", leave).code(t); code != group.None {
			t.Errorf("leave: code %d", code)
		}
		want("the last member's leave", 2)
	})
}

// TestSnapshotBeforeTheAnswer (S1.15): nobody is told an assignment before the snapshot
// with it is durable. A join that comes meanwhile starts the next round; the one before
// is answered all the same, and its members are told to rejoin at their heartbeat.
func TestSnapshotBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), delayed())
		told := r.form("g", 2)
		r.log.Hold()
		syncs := r.syncs("g", told)
		late := join("")
		late.NewID = "late"
		joined := r.submit("late join", "g", late)
		if r.log.Pending() != 1 || syncs[0].came()+syncs[1].came()+joined.came() != 0 {
			t.Fatalf("with %d writes under way, left: %q", r.log.Pending(), r.book.order())
		}
		r.log.Release()
		for i, s := range syncs {
			if code := s.code(t); code != group.None {
				t.Fatalf("sync %d: code %d", i, code)
			}
			if got, want := string(s.reply.Body.(*group.SyncReply).Assignment), "for "+told[i].MemberID; got != want {
				t.Errorf("sync %d: %q, want %q", i, got, want)
			}
			beat := r.submit("heartbeat", "g", heartbeat(told[i].MemberID, told[i].Generation))
			if code := beat.code(t); code != group.RebalanceInProgress {
				t.Errorf("heartbeat %d: code %d, want %d", i, code, group.RebalanceInProgress)
			}
		}
		if joined.came() != 0 {
			t.Error("the late joiner is told of a generation that the others have not joined")
		}
	})
}
