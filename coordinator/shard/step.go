package shard

import (
	"container/heap"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// handle steps one item of the inbox.
func (s *Shard) handle(it *item) {
	if it.sweep != nil {
		s.startSweep(it.sweep)
		return
	}
	it.ev.Meta().Wall = it.wall
	from := origin{}
	if it.sink != nil {
		s.request++
		_, fetch := it.ev.(*group.Fetch)
		from = origin{req: s.request, sink: it.sink, fetch: fetch}
	}
	s.step(s.entry(it.id), it.at, it.ev, from)
}

// entry returns the entry of a group; it makes one for an unknown group.
func (s *Shard) entry(id string) *entry {
	if e := s.groups[id]; e != nil {
		return e
	}
	e := &entry{id: id, m: group.New(s.env, id), slot: -1, place: int32(len(s.order))}
	s.groups[id] = e
	s.order = append(s.order, e)
	return e
}

// forget removes an entry whose group does not exist.
func (s *Shard) forget(e *entry) {
	delete(s.groups, e.id)
	last := s.order[len(s.order)-1]
	s.order[e.place], last.place = last, e.place
	s.order[len(s.order)-1] = nil
	s.order = s.order[:len(s.order)-1]
	if e.slot >= 0 {
		heap.Remove(&s.deadlines, int(e.slot))
	}
}

// step steps one event on a group and takes what comes out of it. It never lets
// time go back, since a Tick may have been stepped late.
func (s *Shard) step(e *entry, at group.Time, ev group.Event, from origin) {
	if e.folding == folding {
		s.visit(e)
	}
	s.now = max(s.now, at)
	head := ev.Meta()
	head.Req, head.DiskLow = from.req, s.diskLow
	out := e.m.Step(s.now, ev)
	s.turnStats.Events++
	if len(out.Records) > 0 {
		s.append(e, out.Records)
	}
	answered := from.sink == nil
	for i := range out.Replies {
		if r := &out.Replies[i]; r.Req == from.req {
			answered = true
			s.reply(e, from, r)
		} else {
			to, ok := s.parked[r.Req]
			invariant(ok, "a reply to a request that nobody waits for")
			delete(s.parked, r.Req)
			s.reply(e, to, r)
		}
	}
	if !answered {
		s.parked[from.req] = from
	}
	if len(out.Notes) > 0 {
		s.cfg.Listener.OnNotes(s.n, e.id, out.Notes)
	}
	s.rearm(e)
	if e.gone = out.Gone; e.gone {
		s.bury(e)
	}
	if len(s.cur.value) >= s.cfg.BatchBytesMax {
		s.flush()
	}
}

// reply lets a reply go as soon as the records of its group are durable.
func (s *Shard) reply(e *entry, to origin, r *group.Reply) {
	switch {
	case to.sweep != nil:
		to.sweep.collect(e, r)
	case e.need <= s.out.durable.Load():
		s.release(&held{sink: to.sink, reply: *r})
	default:
		s.hold(e.need, held{sink: to.sink, reply: *r, since: s.now, fetch: to.fetch})
	}
}

// bury forgets a group that does not exist, or leaves that to the next fold if
// there is something about its end that is not on the disk.
func (s *Shard) bury(e *entry) {
	if e.folding == clean && e.need <= s.out.durable.Load() {
		if !e.listed {
			s.forget(e)
		}
		return
	}
	if !e.listed {
		e.listed = true
		s.gone = append(s.gone, e)
	}
}

// buryAll forgets the groups that have had to wait for it.
func (s *Shard) buryAll() {
	kept := s.gone[:0]
	for _, e := range s.gone {
		switch {
		case !e.gone:
			e.listed = false
		case e.folding == clean && e.need <= s.out.durable.Load():
			s.forget(e)
		default:
			kept = append(kept, e)
		}
	}
	clear(s.gone[len(kept):])
	s.gone = kept
}

// rearm makes sure that the group is looked at by its machine's next deadline. A
// deadline that has moved back is left where it is: it is read again when due.
func (s *Shard) rearm(e *entry) {
	d, ok := e.m.NextDeadline()
	switch {
	case !ok:
	case e.slot < 0:
		e.deadline = d
		heap.Push(&s.deadlines, e)
	case d < e.deadline:
		e.deadline = d
		heap.Fix(&s.deadlines, int(e.slot))
	}
}

// ticks steps a Tick on each group with a deadline up to the given time, before
// which everything that arrived has been stepped.
func (s *Shard) ticks(upto group.Time) {
	for len(s.deadlines) > 0 && s.deadlines[0].deadline <= upto {
		e := s.deadlines[0]
		d, ok := e.m.NextDeadline()
		switch {
		case !ok:
			heap.Pop(&s.deadlines)
		case d > upto:
			e.deadline = d
			heap.Fix(&s.deadlines, 0)
		default:
			s.tick(e, d, upto)
		}
	}
}

// tick steps a Tick for a deadline d that has come by the time at.
func (s *Shard) tick(e *entry, d, at group.Time) {
	heap.Pop(&s.deadlines)
	ev := &s.ticked
	*ev = group.Tick{Head: group.Head{Wall: s.wall()}}
	if d <= s.stall.end {
		ev.Late = s.stall.length
	}
	s.step(e, at, ev, origin{})
	if e.slot >= 0 && e.deadline <= at {
		// What a Tick itself makes due comes a moment later, so that this ends.
		e.deadline = at + 1
		heap.Fix(&s.deadlines, int(e.slot))
	}
}

// deadlines is a heap of entries by deadline, then by id.
type deadlines []*entry

// Len implements [heap.Interface].
func (h deadlines) Len() int { return len(h) }

// Less implements [heap.Interface].
func (h deadlines) Less(i, j int) bool {
	if h[i].deadline != h[j].deadline {
		return h[i].deadline < h[j].deadline
	}
	return h[i].id < h[j].id
}

// Swap implements [heap.Interface].
func (h deadlines) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = int32(i), int32(j)
}

// Push implements [heap.Interface].
func (h *deadlines) Push(x any) {
	e := x.(*entry)
	e.slot = int32(len(*h))
	*h = append(*h, e)
}

// Pop implements [heap.Interface].
func (h *deadlines) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.slot = -1
	return e
}
