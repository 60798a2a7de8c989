package group

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// checkAlways ends every step with [Machine.Check]. Builds with the tag invariants
// set it.
var checkAlways = false

// Check returns the first invariant that does not hold. It looks at everything
// and is meant for tests and builds that can afford it.
func (m *Machine) Check() error {
	if err := m.off.check(); err != nil {
		return fmt.Errorf("group %q: %w", m.id, err)
	}
	if err := m.pend.check(); err != nil {
		return fmt.Errorf("group %q: %w", m.id, err)
	}
	l := m.live
	if l == nil {
		return nil // unknown, offsets only, or not loaded yet
	}
	for _, check := range []func() error{
		func() error { return m.checkState() },
		func() error { return l.checkMembers() },
		func() error { return l.checkIndexes() },
		func() error { return l.checkDeadlines() },
	} {
		if err := check(); err != nil {
			return fmt.Errorf("group %q, %v at generation %d: %w", m.id, l.state, l.generation, err)
		}
	}
	return nil
}

// checkState compares what the state says with what there is.
func (m *Machine) checkState() error {
	l := m.live
	switch {
	case l.state == Dead:
		return errors.New("a live group is Dead")
	case l.state == Empty && (len(l.members) > 0 || l.protocol != nil):
		return errors.New("an Empty group has members or a protocol")
	case l.state == Empty && m.snap == nil && len(l.pending) == 0:
		return errors.New("an Empty group has nothing")
	case l.state == Empty && m.snap != nil && (len(m.snap.Members) > 0 || m.snap.Generation != l.generation):
		return errors.New("the snapshot of an Empty group is another one's")
	case l.state != Empty && l.protocolType == nil:
		return errors.New("no protocol type")
	case (l.state == CompletingRebalance || l.state == Stable) && (l.protocol == nil || len(l.members) == 0):
		return errors.New("a generation without protocol or members")
	case l.state != PreparingRebalance && (l.initial || l.joining > 0):
		return errors.New("a join phase's facts outside it")
	case l.recovered && m.snap == nil:
		return errors.New("recovered from nothing")
	case m.snap != nil && m.snap.Ceiling < m.snap.Generation:
		return errors.New("the ceiling is below the generation")
	case m.snap != nil && (l.state == CompletingRebalance || l.state == Stable) && l.generation > m.snap.Ceiling:
		return errors.New("the generation is not reserved")
	case l.state == Stable:
		return m.checkStable()
	}
	return nil
}

// checkStable compares a Stable group with its snapshot: every member was in the
// leader's list and is in the snapshot with its assignment (design rule 6).
func (m *Machine) checkStable() error {
	l := m.live
	if m.snap == nil || m.snap.Generation != l.generation || m.snap.Leader != l.leader.id ||
		*m.snap.Protocol != *l.protocol || len(m.snap.Members) != len(l.members) {
		return errors.New("the group is Stable, but the snapshot is another one's")
	}
	for i, x := range l.members {
		s := &m.snap.Members[i]
		if s.MemberID != x.id || !slices.Equal(s.Assignment, x.assignment) || !sameProtocols(s.Protocols, x.protocols) {
			return fmt.Errorf("member %s is not as in the snapshot", x.id)
		}
	}
	return nil
}

// checkMembers looks at each member and at what is counted of them.
func (l *membership) checkMembers() error {
	joining, unsynced := 0, 0
	for _, x := range l.members {
		if x.joining {
			joining++
		}
		if x.unsynced {
			unsynced++
		}
		switch {
		case x.joining && l.state != PreparingRebalance, x.syncing && l.state != CompletingRebalance:
			return fmt.Errorf("member %s has a request parked in the wrong state", x.id)
		case x.syncing && (x.unsynced || x == l.leader):
			return fmt.Errorf("member %s has a sync parked that it owes or that decides", x.id)
		case x.isNew && !x.joining:
			return fmt.Errorf("new member %s has no join parked", x.id)
		case x.assignment != nil && l.state != Stable:
			return fmt.Errorf("member %s has an assignment outside Stable", x.id)
		case x.unsynced && l.state != CompletingRebalance && l.state != Stable:
			return fmt.Errorf("member %s owes a sync outside a generation", x.id)
		}
	}
	if joining != l.joining || unsynced != l.unsynced {
		return fmt.Errorf("%d joining and %d unsynced, counted %d and %d", joining, unsynced, l.joining, l.unsynced)
	}
	if (l.leader == nil) != (len(l.members) == 0) || l.leader != nil && !slices.Contains(l.members, l.leader) {
		return errors.New("the leader is not a member")
	}
	return nil
}

// checkIndexes compares what is found with what there is.
func (l *membership) checkIndexes() error {
	var want tally
	for _, x := range l.members {
		want.add(x.protocols)
		if l.find(x.id) != x || x.instance != nil && l.findInstance(*x.instance) != x {
			return fmt.Errorf("member %s is not found", x.id)
		}
		if _, pending := l.pending[x.id]; pending {
			return fmt.Errorf("member %s is pending", x.id)
		}
	}
	if l.byID != nil && len(l.byID) != len(l.members) {
		return errors.New("the index has members that are gone")
	}
	if !maps.Equal(want.counts(), l.protocols.counts()) {
		return errors.New("protocols are miscounted")
	}
	if l.pending != nil && len(l.pending) == 0 {
		return errors.New("an empty map of pending ids is kept")
	}
	return nil
}

func (t *tally) counts() map[string]int {
	counts := make(map[string]int, len(t.list))
	for _, p := range t.list {
		counts[p.name] = p.members
	}
	return counts
}

// checkDeadlines sees to it that no request waits for ever.
func (l *membership) checkDeadlines() error {
	switch {
	case l.bound > l.earliest():
		return errors.New("the bound is later than a deadline")
	case (l.state == PreparingRebalance) != (l.joinDeadline != never):
		return errors.New("join deadline without a join phase, or the reverse")
	case (l.unsynced > 0) != (l.syncDeadline != never):
		return errors.New("sync deadline without anybody to wait for, or the reverse")
	case l.state == CompletingRebalance && l.unsynced == 0:
		return errors.New("the leader has synced and the group is not Stable")
	}
	return nil
}
