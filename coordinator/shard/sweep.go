package shard

import "github.com/rollcall-mq/rollcall/coordinator/group"

// sweep steps an event on every group that exists, some in each turn.
type sweep struct {
	shard uint32
	mk    func() group.Event
	// done takes the replies; nil if nobody wants them.
	done func(shard uint32, code group.Code, replies []group.Reply)

	// entries are those of the shard at the start; those before next are done.
	entries []*entry
	next    int
	replies []group.Reply
	// need is the sequence number that must be durable before the replies leave.
	need uint64
}

// Reply implements [Sink] for the end of the sweep.
func (w *sweep) Reply(r group.Reply) {
	if r.Code != group.None {
		w.replies = nil
	}
	w.done(w.shard, r.Code, w.replies)
}

// collect takes the reply of one group. One that was deleted is known until that
// is in the checkpoint, but does not exist.
func (w *sweep) collect(e *entry, r *group.Reply) {
	if r.Code == group.GroupIDNotFound {
		return
	}
	w.replies = append(w.replies, *r)
}

// startSweep begins to go over the groups that there are now.
func (s *Shard) startSweep(w *sweep) {
	w.entries = append(make([]*entry, 0, len(s.order)), s.order...)
	for _, e := range s.gone {
		w.need = max(w.need, e.need) // That it does not exist is news, too.
	}
	s.sweeps = append(s.sweeps, w)
}

// sweepSome goes on with the sweeps and begins the expiry of offsets when due.
func (s *Shard) sweepSome(now group.Time) {
	if s.expireAt <= now {
		s.expireAt = now + s.cfg.ExpireInterval
		ev := new(group.ExpireOffsets)
		s.startSweep(&sweep{mk: func() group.Event { return ev }})
	}
	for left := s.cfg.SweepMax; len(s.sweeps) > 0 && left > 0; {
		w := s.sweeps[0]
		for ; w.next < len(w.entries) && left > 0; left-- {
			e := w.entries[w.next]
			w.next++
			if !e.gone {
				s.sweepOne(now, w, e)
			}
		}
		if w.next == len(w.entries) {
			s.sweeps[0] = nil
			s.sweeps = s.sweeps[1:]
			s.endSweep(w)
		}
	}
}

// sweepOne steps the event of a sweep on one group.
func (s *Shard) sweepOne(now group.Time, w *sweep, e *entry) {
	ev := w.mk()
	ev.Meta().Wall = s.wall()
	from := origin{}
	if w.done != nil {
		s.request++
		from = origin{req: s.request, sweep: w}
	}
	s.step(e, now, ev, from)
	// Also a group that answers nothing (a deleted topic) is waited for.
	w.need = max(w.need, e.need)
}

// endSweep gives the replies of a sweep away as soon as they may leave.
func (s *Shard) endSweep(w *sweep) {
	w.entries = nil
	if w.done == nil {
		return
	}
	if w.need <= s.out.durable.Load() {
		s.release(&held{sink: w})
		return
	}
	s.hold(w.need, held{sink: w, since: s.now})
}
