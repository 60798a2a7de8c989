package group

import (
	"cmp"
	"slices"
)

// due lowers the bound of the deadlines to one that was armed.
func (l *membership) due(at Time) { l.bound = min(l.bound, at) }

// arm starts a member's session timer. It only moves what the member itself
// stores, unless the new deadline is nearer than any other.
func (l *membership) arm(x *member, now Time, timeout int32) {
	x.heard, x.armed = now, timeout
	l.due(now + Time(timeout))
}

func (l *membership) armJoin(at Time) {
	l.joinDeadline = at
	l.due(at)
}

func (l *membership) armSync(at Time) {
	l.syncDeadline = at
	l.due(at)
}

// NextDeadline returns a lower bound of the time at which the machine wants its
// next Tick, and false if it wants none.
func (m *Machine) NextDeadline() (Time, bool) {
	if m.live == nil || m.live.bound == never {
		return 0, false
	}
	return m.live.bound, true
}

// The kinds of deadlines, in the order in which equal ones expire.
const (
	sessionTimer = iota
	pendingTimer
	joinTimer
	syncTimer
)

// timer is a deadline that is due.
type timer struct {
	at     Time
	kind   int
	id     string
	member *member
}

// stepTick handles the deadlines that are due, by time and then by member. One
// that a handler arms anew waits for the next Tick, even if it is due at once, so
// that requests come between.
func (m *Machine) stepTick(now Time, ev *Tick) {
	if m.live == nil {
		return
	}
	if ev.Late > 0 {
		m.postpone(now, ev.Late)
	}
	if m.live.bound > now {
		return
	}
	for _, t := range m.live.sortedDue(now) {
		m.fire(now, t)
	}
	m.live.bound = m.live.earliest()
}

// postpone moves the session deadlines, as nobody could be heard while the process
// was stopped: one that has passed begins now. None exceeds a full timeout.
func (m *Machine) postpone(now, late Time) {
	l := m.live
	for _, x := range l.members {
		passed := max(now-x.heard-Time(x.armed), 0)
		x.heard = min(x.heard+passed+late, now)
	}
	for _, id := range sortedIDs(l.pending) {
		l.pending[id] = max(l.pending[id], now) + late
	}
	m.note(T6, "", "the process was stopped, sessions are extended")
	l.bound = l.earliest()
}

// sortedDue lists the deadlines that are due in the order in which they expire.
func (l *membership) sortedDue(now Time) []timer {
	var due []timer
	for _, x := range l.members {
		if at := x.sessionDeadline(); at <= now {
			due = append(due, timer{at, sessionTimer, x.id, x})
		}
	}
	for id, at := range l.pending {
		if at <= now {
			due = append(due, timer{at: at, kind: pendingTimer, id: id})
		}
	}
	if l.joinDeadline <= now {
		due = append(due, timer{at: l.joinDeadline, kind: joinTimer})
	}
	if l.syncDeadline <= now {
		due = append(due, timer{at: l.syncDeadline, kind: syncTimer})
	}
	slices.SortFunc(due, func(a, b timer) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
	})
	return due
}

// earliest is the exact bound of the deadlines.
func (l *membership) earliest() Time {
	first := min(l.joinDeadline, l.syncDeadline)
	for _, x := range l.members {
		first = min(first, x.sessionDeadline())
	}
	return min(first, sortedFirst(l.pending))
}

// sortedFirst is the earliest time in a map.
func sortedFirst(pending map[string]Time) Time {
	first := never
	for _, at := range pending {
		first = min(first, at)
	}
	return first
}

// sortedIDs lists the keys of a map in order.
func sortedIDs(pending map[string]Time) []string {
	ids := make([]string, 0, len(pending))
	for id := range pending {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// fire handles a deadline, unless one before it in the same Tick moved it.
func (m *Machine) fire(now Time, t timer) {
	l := m.live
	switch t.kind {
	case sessionTimer:
		if l.find(t.id) == t.member && t.member.sessionDeadline() == t.at {
			m.expireSession(now, t.member)
		}
	case pendingTimer:
		if l.pending[t.id] == t.at && l.takePending(t.id) {
			m.expirePending(now, t.id)
		}
	case joinTimer:
		if l.joinDeadline == t.at {
			if l.initial {
				m.endWindow(now)
			} else {
				m.note(T4, "", "the join phase's time is up")
				m.completeJoin(now)
			}
		}
	case syncTimer:
		if l.syncDeadline == t.at {
			m.expireSync(now)
		}
	}
}

// expireSession removes a member that was not heard for its session timeout, or a
// new one that was parked for too long.
func (m *Machine) expireSession(now Time, x *member) {
	if x.isNew {
		m.note(T2, x.id, "new member waited too long for the join phase to end")
	} else {
		m.note(T1, x.id, "session timeout")
	}
	m.expel(x)
	switch m.live.state {
	case Stable, CompletingRebalance:
		m.startRound(now, x.id, "session timeout")
	case PreparingRebalance:
		m.maybeComplete(now)
	}
}

// expirePending forgets an id that never joined. Unlike its leaving this ends a
// join phase that waited for it even during the initial delay.
func (m *Machine) expirePending(now Time, id string) {
	m.note(T3, id, "id handed out was not used in time")
	if l := m.live; l.state == PreparingRebalance && l.everybodyIn() {
		m.completeJoin(now)
	}
}

// expireSync removes every member that did not sync within the rebalance timeout
// of its generation, absent static ones too (KAFKA-12890).
func (m *Machine) expireSync(now Time) {
	l := m.live
	l.syncDeadline = never
	for _, x := range slices.Clone(l.members) {
		if x.unsynced {
			m.note(T5, x.id, "no sync within the rebalance timeout")
			m.expel(x)
		}
	}
	m.startRound(now, "", "members did not sync in time")
}
