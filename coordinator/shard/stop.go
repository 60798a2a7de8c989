package shard

import (
	"context"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// Stop ends the shard in good order: what is in the inbox is stepped, parked
// requests are answered with NOT_COORDINATOR, replies that wait for the disk leave
// when it has answered, and the checkpoint is brought up to date. It returns nil,
// or why waiting replies were not all let go: the error of ctx (they get
// NOT_COORDINATOR) or of the log.
func (s *Shard) Stop(ctx context.Context) error { return s.end(ctx, true) }

// Lose ends the shard because it is another process's from now on. It is like
// Stop, but writes nothing more.
func (s *Shard) Lose(ctx context.Context) error { return s.end(ctx, false) }

// end stops the shard. It does not wait for a turn, or for its own last writes, that
// hang in the log when ctx ends.
func (s *Shard) end(ctx context.Context, ours bool) error {
	ended := make(chan error, 1)
	go func() {
		s.turn.Lock()
		defer s.turn.Unlock()
		ended <- s.lastTurn(ctx, ours)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		s.in.enter(Closed)
		s.refuseHeld()
		return ctx.Err()
	}
}

// lastTurn is what end does with the turn.
func (s *Shard) lastTurn(ctx context.Context, ours bool) error {
	if !s.in.enter(Closed) {
		return s.failure()
	}
	if ours {
		s.stepRest()
		s.flush()
		s.takeRows()
	} else {
		s.refuseRest()
	}
	s.loseAll()
	if s.fold.active() && ours {
		s.endFold()
	}
	err := s.drain(ctx)
	s.cfg.Listener.OnState(s.n, Closed, Load{}, err)
	s.wakeUp()
	return err
}

// stepRest steps what is left in the inbox and ends the sweeps.
func (s *Shard) stepRest() {
	now, _ := s.cfg.Clock()
	s.diskLow = s.cfg.DiskLow()
	for {
		for ; s.head < len(s.queue); s.head++ {
			s.handle(&s.queue[s.head])
		}
		if s.queue, _, _ = s.in.take(now, s.queue); len(s.queue) == 0 {
			break
		}
		s.head = 0
	}
	for len(s.sweeps) > 0 {
		s.sweepSome(now)
	}
}

// refuseRest answers what is left in the inbox, and the sweeps, without stepping
// them.
func (s *Shard) refuseRest() {
	refuse := func(sink Sink) {
		if sink != nil {
			sink.Reply(group.Reply{Code: group.NotCoordinator})
		}
	}
	for {
		for ; s.head < len(s.queue); s.head++ {
			it := &s.queue[s.head]
			if it.sweep != nil {
				it.sink = it.sweep
			}
			refuse(it.sink)
		}
		if s.queue, _, _ = s.in.take(s.now, s.queue); len(s.queue) == 0 {
			break
		}
		s.head = 0
	}
	for _, w := range s.sweeps {
		if w.done != nil {
			refuse(w)
		}
	}
	s.sweeps = nil
}

// loseAll makes the machines answer what they hold. These answers promise nothing,
// so they need not wait.
func (s *Shard) loseAll() {
	ev := new(group.Lost)
	for _, e := range s.order {
		out := e.m.Step(s.now, ev)
		for _, r := range out.Replies {
			to, ok := s.parked[r.Req]
			invariant(ok, "a reply to a request that nobody waits for")
			delete(s.parked, r.Req)
			to.sink.Reply(r)
		}
	}
	for _, to := range s.parked {
		invariant(to.sink == nil, "a lost group answers all that it holds")
	}
}

// takeRows takes the rows of the last checkpoint; endFold hands them to the log.
func (s *Shard) takeRows() {
	if s.out.failed.Load() {
		return
	}
	for s.fold.active() {
		s.foldSome(s.now)
	}
	if len(s.fold.changed) == 0 {
		return
	}
	s.startFold()
	for _, e := range s.fold.entries {
		s.visit(e)
	}
}

// drain waits until everything that was appended is durable; what still waits
// when ctx ends gets NOT_COORDINATOR.
func (s *Shard) drain(ctx context.Context) error {
	s.out.mu.Lock()
	if len(s.out.batches) == 0 || s.out.err != nil {
		defer s.out.mu.Unlock()
		return s.out.err
	}
	idle := make(chan struct{})
	s.out.idle = idle
	s.out.mu.Unlock()
	select {
	case <-idle:
		return s.failure()
	case <-ctx.Done():
		s.refuseHeld()
		return ctx.Err()
	}
}

// refuseHeld answers what waits for the disk with NOT_COORDINATOR.
func (s *Shard) refuseHeld() {
	s.out.mu.Lock()
	var all []held
	for _, b := range s.out.batches {
		all = append(all, b.waiting[b.next:]...)
		clear(b.waiting)
		b.waiting, b.next = b.waiting[:0], 0
	}
	s.out.mu.Unlock()
	for i := range all {
		all[i].sink.Reply(group.Reply{Req: all[i].reply.Req, Code: group.NotCoordinator})
	}
}
