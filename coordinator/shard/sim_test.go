package shard_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// sim is a shard with clients, a clock and a disk on one goroutine, driven by a
// seed alone.
type sim struct {
	t    *testing.T
	seed uint64
	rnd  *rand.Rand
	r    *rig
	c    *manual
	book hash.Hash // of every reply that left
	sent int
	// members are the clients of each group.
	members map[string][]*client
	// next is the next offset to commit in a group; it only grows.
	next map[string]int64
	// seen is the highest offset that a client was told of, deleting the groups
	// whose deletion was asked for and never acknowledged to be undone.
	seen     map[string]int64
	deleting map[string]bool
	// txns are the transactions of each group's producer.
	txns map[string]*simTxn
}

// simTxn is the present transaction of a producer that writes its group's offsets, and
// of its coordinator: what that has decided it sends until it is answered.
type simTxn struct {
	group.Transaction
	// offset is what the group has acknowledged as pending, 0 if nothing.
	offset int64
	phase  int // 0 none, 1 staging, 2 decided, 3 ending
}

// client is one member.
type client struct {
	group, id  string
	generation int32
	leader     bool
	members    []string
	phase      int // 0 out, 1 joining, 2 joined, 3 syncing, 4 in
}

// simReply is the sink of one request of the simulation.
type simReply struct {
	s    *sim
	n    int
	then func(r group.Reply)
	done bool
}

// Reply implements shard.Sink.
func (a *simReply) Reply(r group.Reply) {
	if a.done {
		a.s.t.Fatalf("seed %d: request %d was answered twice", a.s.seed, a.n)
	}
	a.done = true
	fmt.Fprintf(a.s.book, "%d %d %s\n", a.n, r.Code, render(r.Body))
	if a.then != nil {
		a.then(r)
	}
}

// newSim returns a simulation whose disk does nothing by itself.
func newSim(t *testing.T, seed uint64) *sim {
	s := &sim{
		t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 1)), c: &manual{}, book: sha256.New(),
		members: map[string][]*client{}, next: map[string]int64{}, seen: map[string]int64{}, deleting: map[string]bool{},
		txns: map[string]*simTxn{},
	}
	s.start(shardtest.NewLog())
	return s
}

// start loads a shard whose folds are small, frequent and long.
func (s *sim) start(log *shardtest.Log) {
	cfg := config()
	cfg.Clock = s.c.read
	cfg.CheckpointBytes, cfg.CheckpointInterval, cfg.SweepMax, cfg.BatchMax = 700, 2000, 1, 3
	cfg.Group.OffsetsRetention, cfg.ExpireInterval = 60_000, 5000
	s.r = load(s.t, log, cfg)
	log.Hold()
}

// restart crashes the shard with some of what was handed to the disk on it and
// goes on with what is left. Requests that were under way are never answered.
func (s *sim) restart() {
	s.start(s.r.log.Crash(s.rnd.IntN(s.r.log.Pending() + 1)))
	for _, id := range slices.Sorted(maps.Keys(s.txns)) {
		if x := s.txns[id]; x.phase != 0 {
			x.phase = 2
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.members)) {
		for _, c := range s.members[id] {
			switch c.phase {
			case 1:
				c.phase = 0
			case 3:
				c.phase = 4 // It goes on with heartbeats, as if the answer had come.
			}
		}
	}
}

// send submits an event.
func (s *sim) send(id string, ev group.Event, then func(r group.Reply)) {
	s.sent++
	s.r.shard.Submit(s.t.Context(), id, ev, &simReply{s: s, n: s.sent, then: then})
}

// act lets one client do something.
func (s *sim) act() {
	id := fmt.Sprintf("group-%d", s.rnd.IntN(6))
	switch p := s.rnd.IntN(100); {
	case p < 25:
		s.commit(id, &group.Commit{Generation: -1, Retention: -1})
	case p < 38:
		s.fetch(id)
	case p < 40:
		s.transact(id)
	case p < 42 && !s.deleting[id]:
		s.deleting[id] = true
		s.send(id, new(group.DeleteGroup), nil)
	case p < 45:
		s.send(id, new(group.Describe), nil)
	case p < 48 && len(s.members[id]) < 3:
		c := &client{group: id}
		s.members[id] = append(s.members[id], c)
	default:
		if n := len(s.members[id]); n > 0 {
			s.move(s.members[id][s.rnd.IntN(n)])
		}
	}
}

// commit commits the next offset of a group.
func (s *sim) commit(id string, ev *group.Commit) {
	s.next[id]++
	offset := s.next[id]
	ev.Topics = []group.CommitTopic{{Name: "t", Partitions: []group.CommitPartition{
		{Partition: 0, Offset: offset, LeaderEpoch: -1},
		{Partition: int32(1 + s.rnd.IntN(5)), Offset: offset, LeaderEpoch: -1},
	}}}
	s.send(id, ev, func(r group.Reply) {
		if r.Code == group.None {
			s.seen[id] = max(s.seen[id], offset)
		}
	})
}

// transact lets a transaction of a group go on. One whose offset was not acknowledged
// is aborted.
func (s *sim) transact(id string) {
	x := s.txns[id]
	if x == nil {
		x = &simTxn{Transaction: group.Transaction{ID: id, ProducerID: 1, Epoch: 1}}
		s.txns[id] = x
	}
	switch x.phase {
	case 0:
		s.next[id]++
		offset := s.next[id]
		x.Number, x.offset, x.phase = x.Number+1, 0, 1
		s.send(id, &group.TxnCommit{Txn: x.Transaction, Generation: -1, Topics: []group.CommitTopic{{Name: "t", Partitions: []group.CommitPartition{
			{Partition: 0, Offset: offset, LeaderEpoch: -1},
			{Partition: int32(1 + s.rnd.IntN(5)), Offset: offset, LeaderEpoch: -1},
		}}}}, func(r group.Reply) {
			if x.phase = 2; r.Code == group.None {
				x.offset = offset
			}
		})
	case 2:
		x.phase = 3
		s.send(id, &group.Resolve{Txn: x.Transaction, Commit: x.offset > 0}, func(r group.Reply) {
			if x.phase = 2; r.Code == group.None {
				x.phase = 0
				s.seen[id] = max(s.seen[id], x.offset)
			}
		})
	}
}

// fetch reads the offset of a group.
func (s *sim) fetch(id string) {
	s.send(id, fetch(), func(r group.Reply) {
		if r.Code != group.None {
			return
		}
		if offset := r.Body.(*group.FetchReply).Topics[0].Partitions[0].Offset; offset > 0 {
			s.seen[id] = max(s.seen[id], offset)
		}
	})
}

// move lets a member go on with its life.
func (s *sim) move(c *client) {
	out := func() { *c = client{group: c.group} }
	switch c.phase {
	case 0:
		c.phase = 1
		ev := join(c.id)
		ev.NewID = fmt.Sprintf("m-%d", s.sent)
		s.send(c.group, ev, func(r group.Reply) {
			j, _ := r.Body.(*group.JoinReply)
			if r.Code != group.None {
				out()
				return
			}
			c.phase, c.id, c.generation, c.leader = 2, j.MemberID, j.Generation, j.Leader == j.MemberID
			c.members = nil
			for _, m := range j.Members {
				c.members = append(c.members, m.MemberID)
			}
		})
	case 2:
		c.phase = 3
		ev := &group.Sync{MemberID: c.id, Generation: c.generation}
		for _, m := range c.members {
			ev.Assignments = append(ev.Assignments, group.Assignment{MemberID: m, Bytes: []byte(m)})
		}
		s.send(c.group, ev, func(r group.Reply) { s.after(c, r, 4) })
	case 4:
		switch s.rnd.IntN(8) {
		case 0:
			s.send(c.group, &group.Leave{Members: []group.LeaveMember{{MemberID: c.id}}}, nil)
			out()
		case 1: // It is restarted.
			out()
		case 2, 3, 4:
			s.commit(c.group, &group.Commit{MemberID: c.id, Generation: c.generation, Retention: -1})
		default:
			s.send(c.group, heartbeat(c.id, c.generation), func(r group.Reply) { s.after(c, r, c.phase) })
		}
	}
}

// after moves a client to a phase, or back to joining.
func (s *sim) after(c *client, r group.Reply, phase int) {
	switch r.Code {
	case group.None:
		c.phase = phase
	case group.RebalanceInProgress:
		c.phase = 0
	default:
		*c = client{group: c.group}
	}
}

// step lets some things happen: requests, time, turns, the disk.
func (s *sim) step() {
	for range 1 + s.rnd.IntN(4) {
		s.act()
	}
	now, _ := s.c.read()
	if s.rnd.IntN(3) == 0 {
		now += group.Time(s.rnd.IntN(900))
	}
	s.c.at(now)
	s.r.shard.RunOnce(now)
	s.r.log.Sync(s.rnd.IntN(3))
	if s.rnd.IntN(60) == 0 {
		s.restart()
	}
}

// checkCrash crashes the disk with so many of the pending writes on it, loads it
// and looks for everything that a client was told of.
func (s *sim) checkCrash(keep int) {
	log := s.r.log.Crash(keep)
	cfg := config()
	cfg.Clock = s.c.read
	r := load(s.t, log, cfg)
	now, _ := s.c.read()
	for _, id := range slices.Sorted(maps.Keys(s.seen)) {
		if s.deleting[id] {
			continue
		}
		a := r.send("fetch", id, fetch())
		r.shard.RunOnce(now)
		if got := a.offset(s.t); got < s.seen[id] {
			s.t.Fatalf("seed %d, request %d: %s has offset %d after a crash with %d of %d writes kept, a client was told %d",
				s.seed, s.sent, id, got, keep, s.r.log.Pending(), s.seen[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.txns)) {
		x := s.txns[id]
		if x.phase < 2 || x.offset == 0 || s.deleting[id] {
			continue
		}
		r.send("resolve", id, &group.Resolve{Txn: x.Transaction, Commit: true})
		a := r.send("fetch", id, &group.Fetch{RequireStable: true, Topics: fetch().Topics})
		r.shard.RunOnce(now)
		if got := a.offset(s.t); got < x.offset {
			s.t.Fatalf("seed %d, request %d: %s has offset %d after a crash with %d of %d writes kept and the end of a transaction that had %d pending",
				s.seed, s.sent, id, got, keep, s.r.log.Pending(), x.offset)
		}
	}
}

// TestSimCrash crashes at every boundary of what was appended: everything that was
// released is there after the restart.
func TestSimCrash(t *testing.T) {
	for seed := range uint64(50) {
		s := newSim(t, seed)
		crashes := 0
		for range 300 {
			s.step()
			for keep := range s.r.log.Pending() + 1 {
				s.checkCrash(keep)
				crashes++
			}
		}
		if crashes < 300 || len(s.seen) == 0 || len(s.r.log.Rows(0)) == 0 {
			t.Errorf("seed %d: the simulation does not do enough: %d crashes, %d offsets seen, %d rows", seed, crashes, len(s.seen), len(s.r.log.Rows(0)))
		}
	}
}

// noOffsets is what a group without offsets looks like. After a restart it need not
// exist: a group that never became Stable is not in the log.
const noOffsets = `0 {"Topics":[]}`

// hard is the offsets of every group, and whether it exists.
func (s *sim) hard(r *rig) map[string]string {
	now, _ := s.c.read()
	all := map[string]string{}
	for i := range 6 {
		id := fmt.Sprintf("group-%d", i)
		a := r.send("fetch "+id, id, &group.Fetch{All: true})
		r.turnsAt(now)
		r.log.Sync(1 << 20)
		d := r.send("describe "+id, id, new(group.Describe))
		r.turnsAt(now)
		r.log.Sync(1 << 20)
		all[id] = fmt.Sprint(a.code(s.t), " ", render(a.reply.Body))
		stable := &group.Fetch{RequireStable: true, Topics: []group.FetchTopic{{Name: "t", Partitions: []int32{0, 1, 2, 3, 4, 5}}}}
		b := r.send("fetch stable "+id, id, stable)
		r.turnsAt(now)
		r.log.Sync(1 << 20)
		b.code(s.t)
		for _, p := range b.reply.Body.(*group.FetchReply).Topics[0].Partitions {
			if p.Code != group.None {
				all[id] += fmt.Sprintf(" t-%d pending", p.Partition)
			}
		}
		if a.code(s.t) == group.None && d.code(s.t) == group.GroupIDNotFound {
			all[id] = "unknown group"
		}
	}
	return all
}

// TestSimRecovery: a shard that is loaded has what the one before it had, with
// folds at any time in between.
func TestSimRecovery(t *testing.T) {
	for seed := range uint64(50) {
		s := newSim(t, seed)
		for i := range 300 {
			s.step()
			if i%10 != 0 {
				continue
			}
			s.r.log.Sync(1 << 20)
			want := s.hard(s.r)
			cfg := config()
			cfg.Clock = s.c.read
			got := s.hard(load(t, s.r.log.Crash(0), cfg))
			maps.DeleteFunc(got, func(id, state string) bool { return state == "unknown group" && want[id] == noOffsets })
			maps.DeleteFunc(want, func(id, _ string) bool { return got[id] == "" })
			if !maps.Equal(got, want) {
				t.Fatalf("seed %d, request %d: loaded\n%v\nwant\n%v", seed, s.sent, got, want)
			}
		}
	}
}

// TestSimDeterminism: the same events give the same bytes, in the log, in the
// checkpoint and in the replies.
func TestSimDeterminism(t *testing.T) {
	for seed := range uint64(5) {
		var logs [2]*shardtest.Log
		var books [2][]byte
		for i := range 2 {
			s := newSim(t, seed)
			for range 400 {
				s.step()
			}
			s.r.log.Release()
			logs[i], books[i] = s.r.log, s.book.Sum(nil)
		}
		if !bytes.Equal(books[0], books[1]) {
			t.Errorf("seed %d: replies differ", seed)
		}
		same := func(a, b shardtest.Batch) bool { return a.First == b.First && bytes.Equal(a.Value, b.Value) }
		if !slices.EqualFunc(logs[0].Batches(0), logs[1].Batches(0), same) {
			t.Errorf("seed %d: change logs differ", seed)
		}
		if !maps.EqualFunc(logs[0].Rows(0), logs[1].Rows(0), bytes.Equal) {
			t.Errorf("seed %d: checkpoints differ", seed)
		}
	}
}
