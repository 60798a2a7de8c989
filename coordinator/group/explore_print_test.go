package group

import (
	"crypto/sha256"
	"slices"
)

// fingerprint is what two states have in common that can do the same.
type fingerprint [16]byte

// printer renders a world without what cannot matter: ids are numbered in the order
// in which they occur, generations count from the present one, deadlines are armed
// or not, of ids handed out only the number counts, and metadata is not there, since
// a join may come with the same or with other metadata in any state.
type printer struct {
	w   *xworld
	buf []byte
	ids []string
}

func (p *printer) print(w *xworld, lim xlimits) fingerprint {
	p.w, p.buf, p.ids = w, p.buf[:0], p.ids[:0]
	crash := w.crashes < lim.crashes
	p.byte(byte(w.crashes))
	p.flags(w.m.kept, w.m.live != nil, w.m.snap != nil)
	if w.m.live != nil {
		p.membership(w.m.live)
		if w.m.snap != nil {
			p.snapshot(w.m.snap, crash)
		}
		p.told(crash)
	}
	sum := sha256.Sum256(p.buf)
	return fingerprint(sum[:16])
}

func (p *printer) byte(b ...byte) { p.buf = append(p.buf, b...) }

func (p *printer) flags(flags ...bool) {
	b := byte(0)
	for i, f := range flags {
		if f {
			b |= 1 << i
		}
	}
	p.byte(b)
}

func (p *printer) id(id string) {
	i := slices.Index(p.ids, id)
	if i < 0 {
		i = len(p.ids)
		p.ids = append(p.ids, id)
	}
	p.byte(byte(i), id[0])
}

func (p *printer) membership(l *membership) {
	p.byte(byte(l.state), byte(len(l.pending)), byte(len(l.members)))
	p.flags(l.grew, l.initial, l.recovered, l.joinDeadline != never, l.syncDeadline != never, l.generation > 0)
	if l.initial {
		p.byte(byte(l.window/1000), byte(l.budget/1000))
	}
	for _, x := range l.members {
		p.id(x.id)
		p.flags(x == l.leader, x.isNew, x.unsynced, x.joining, x.syncing)
	}
}

// snapshot prints how far the ceiling is, and what a crash would leave if there may
// be one.
func (p *printer) snapshot(s *Membership, crash bool) {
	l := p.w.m.live
	if !l.recovered { // else the next generation is beyond the ceiling, wherever that is
		p.byte(byte(s.Ceiling-l.generation) + 100)
	}
	if !crash {
		return
	}
	p.flags(l.generation > s.Generation)
	p.byte(byte(len(s.Members)))
	for i := range s.Members {
		x := &s.Members[i]
		p.id(x.MemberID)
		p.flags(x.MemberID == s.Leader)
	}
}

// told prints which ids were told a generation that is ahead of the present one, or
// would be after a crash, and whether the ceiling covers it; by how much does not
// matter.
func (p *printer) told(crash bool) {
	snap, l := p.w.m.snap, p.w.m.live
	for i := range p.ids {
		for _, t := range p.w.told {
			if t.id == p.ids[i] && snap != nil {
				p.flags(t.generation > l.generation, crash && t.generation > snap.Generation, t.generation > snap.Ceiling)
			}
		}
	}
}
