package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// shards is how many shards there are.
const shards = 3

// server is the coordinator, its disk and what happens to both.
type server struct {
	w      *world
	log    *shardtest.Log
	router *coordinator.Router
	// life counts the starts; what belongs to an earlier one is dead.
	life int
	up   bool
	// names counts the member ids that were made.
	names int
	// pausedUntil is how long the process stands still, slowUntil how long the disk
	// does, full whether it is nearly full.
	pausedUntil, slowUntil time.Duration
	full                   bool
	// turnAt is when each shard has its next turn, as far as that is arranged.
	turnAt  [shards]time.Duration
	syncing bool
	// left is how many of all requests belong to lives that have ended.
	left int
}

// noTurn is the time of a turn that is not arranged.
const noTurn = time.Duration(1<<63 - 1)

func newServer(w *world) *server {
	return &server{w: w, log: shardtest.NewLog()}
}

// gone is a context that has ended: nobody waits here, a full inbox refuses.
var gone = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// clock is what the coordinator takes for the time.
func (s *server) clock() (now, wall group.Time) {
	ms := group.Time(s.w.now.Milliseconds())
	return ms, epoch + ms
}

// config has small limits, so that they are reached.
func (s *server) config() shard.Config {
	return shard.Config{
		Group: group.Config{
			InitialRebalanceDelay: 1000, MaxSize: 100, MaxMetadata: 4096, OffsetsRetention: 7 * 24 * 3_600_000, PendingMax: 100,
		},
		Clock:           s.clock,
		DiskLow:         func() bool { return s.full },
		ExpireInterval:  20_000,
		CheckpointBytes: 3000, CheckpointInterval: 6000,
		InboxMax: 16, BatchMax: 5, BatchBytesMax: 2000, SweepMax: 2,
	}
}

// start begins a new life of the process, on what the last one has left. Its shards
// are loaded one after the other, in any order.
func (s *server) start() {
	s.life++
	s.up = true
	s.pausedUntil, s.slowUntil, s.syncing = 0, 0, false
	s.router = coordinator.NewRouter(s.config(), shards, s.log)
	s.log.Hold()
	s.w.logf("start %d", s.life)
	for _, n := range s.w.rnd.Perm(shards) {
		s.turnAt[n] = noTurn
		s.load(uint32(n), s.w.some(100))
	}
}

// load loads a shard after a time.
func (s *server) load(n uint32, after time.Duration) {
	life := s.life
	s.w.after(after, func() {
		if s.life != life || !s.up {
			return
		}
		s.w.logf("load %d", n)
		if err := s.router.Load(context.Background(), n); err != nil {
			s.w.h.Problem("load: %v", err)
			return
		}
		s.arrange(n, s.w.now)
	})
}

// submit gives a request to the coordinator.
func (s *server) submit(x *call) {
	if !s.up || x.life != s.life {
		return
	}
	if s.w.now < s.pausedUntil { // It stays in the socket.
		s.w.at(s.pausedUntil, func() { s.submit(x) })
		return
	}
	if j, ok := x.ev.(*group.Join); ok {
		s.names++
		j.NewID = fmt.Sprintf("id-%d", s.names)
	}
	s.w.logf("submit %d", x.id)
	x.submitted = true
	s.router.Submit(gone, x.group, x.ev, x)
	s.arrange(coordinator.ShardFor(x.group, shards), s.w.now+s.w.some(1))
}

// arrange makes a turn of a shard happen at a time, if none comes sooner.
func (s *server) arrange(n uint32, at time.Duration) {
	at = max(at, s.pausedUntil, s.w.now)
	if at >= s.turnAt[n] {
		return
	}
	s.turnAt[n] = at
	life := s.life
	s.w.at(at, func() {
		if s.life == life && s.up && s.turnAt[n] == at {
			s.turnAt[n] = noTurn
			s.turn(n)
		}
	})
}

// turn does a turn of a shard.
func (s *server) turn(n uint32) {
	if s.w.now < s.pausedUntil {
		s.arrange(n, s.pausedUntil)
		return
	}
	sh := s.router.Shard(n)
	if sh == nil {
		return
	}
	now, _ := s.clock()
	next, again := sh.RunOnce(now)
	s.w.logf("turn %d: %d %v", n, next, again)
	switch {
	case again:
		s.arrange(n, s.w.now+s.w.some(1))
	case next < group.Time(noTurn/time.Millisecond):
		s.arrange(n, time.Duration(next)*time.Millisecond)
	}
	s.sync()
}

// sync lets the disk take some of what it was given, some time later.
func (s *server) sync() {
	if s.syncing || s.log.Pending() == 0 {
		return
	}
	s.syncing = true
	life := s.life
	s.w.at(max(s.slowUntil, s.w.now+s.w.some(20)), func() {
		if s.life != life {
			return
		}
		s.syncing = false
		s.w.logf("synced %d", s.log.Sync(1+s.w.rnd.IntN(4)))
		s.sync()
	})
}

// trouble is what happens by itself, again and again.
func (s *server) trouble() {
	w := s.w
	if w.over {
		return
	}
	switch {
	case !s.up:
	case w.fault("crash"):
		s.crash(s.log.Pending())
	case w.fault("stop"):
		s.stop()
	case w.fault("pause"):
		s.pausedUntil = w.now + w.some(15_000)
		w.logf("stands still until %v", s.pausedUntil)
	case w.fault("slow"):
		s.slowUntil = w.now + w.some(12_000)
		w.logf("slow disk until %v", s.slowUntil)
	case w.fault("full"):
		s.full = !s.full
		w.logf("full disk %v", s.full)
	case w.fault("fail"):
		s.fail()
	case w.fault("move"):
		s.move(uint32(w.rnd.IntN(shards)))
	case w.rnd.IntN(100) == 0:
		s.trim()
	}
	w.after(w.some(200), s.trouble)
}

// heal ends what troubles last.
func (s *server) heal() {
	s.pausedUntil, s.slowUntil, s.full = s.w.now, s.w.now, false
	if s.up {
		for n := range uint32(shards) {
			s.arrange(n, s.w.now)
		}
		s.sync()
	}
}

// crash ends the process at once. Of what the disk was given and had not confirmed,
// up to so many of the oldest writes are on it.
func (s *server) crash(keepMax int) {
	keep := s.w.rnd.IntN(keepMax + 1)
	s.w.logf("crash with %d of %d writes", keep, s.log.Pending())
	s.w.crashes++
	s.down(s.log.Crash(keep))
}

// fail makes the disk fail: what was not confirmed fails, and the process ends. Some
// of it may be on the disk all the same.
func (s *server) fail() {
	left := s.log.Crash(s.w.rnd.IntN(s.log.Pending() + 1))
	s.w.logf("the disk fails")
	s.w.crashes++
	s.log.Fail(errors.New("the disk has failed"))
	s.down(left)
}

// stop ends the process in good order.
func (s *server) stop() {
	s.w.logf("stop")
	s.log.Release()
	for n := range uint32(shards) {
		if sh := s.router.Shard(n); sh != nil {
			if err := sh.Stop(context.Background()); err != nil {
				s.w.h.Problem("stop: %v", err)
			}
		}
	}
	s.down(s.log.Crash(0))
}

// leaveAll notes that nothing will be done any more about what is not answered yet.
func (s *server) leaveAll() {
	for _, x := range s.w.calls[s.left:] {
		x.leave()
	}
	s.left = len(s.w.calls)
}

// down leaves a log behind and starts again later. What was under way is lost.
func (s *server) down(log *shardtest.Log) {
	s.leaveAll()
	s.up, s.log, s.router = false, log, nil
	s.life++
	s.w.after(s.w.some(3000), func() {
		s.start()
		s.w.after(s.w.some(500), func() { s.w.audit(fmt.Sprintf("of life %d", s.life)) })
	})
}

// move takes a shard away for some time, as another process would that owns it.
func (s *server) move(n uint32) {
	if s.router.Shard(n) == nil {
		return
	}
	s.w.logf("lose %d", n)
	for s.log.Sync(100) > 0 {
	}
	if err := s.router.Lose(context.Background(), n); err != nil {
		s.w.h.Problem("lose: %v", err)
	}
	s.load(n, s.w.some(5000))
}

// trim cuts the history of a shard.
func (s *server) trim() {
	n := uint32(s.w.rnd.IntN(shards))
	sh := s.router.Shard(n)
	if sh == nil {
		return
	}
	_, wall := s.clock()
	_, cut, err := sh.Trim(context.Background(), shard.Keep{Since: wall - group.Time(s.w.rnd.IntN(20_000)), Excess: s.w.rnd.Int64N(2000)})
	s.w.logf("trim %d: %d bytes, %v", n, cut, err)
	if err != nil {
		s.w.h.Problem("trim: %v", err)
	}
	s.sync()
}
