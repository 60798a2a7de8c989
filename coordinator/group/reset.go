package group

// stepReset sets offsets of a group at one stroke. With Fence, the members are
// removed first: every later request of theirs, commits from before the reset that
// are still under way included, gets UNKNOWN_MEMBER_ID, so that nothing they did
// before survives it. Whoever joins afterwards finds the new offsets.
func (m *Machine) stepReset(now Time, ev *Reset) {
	from := m.state()
	members := m.live != nil && len(m.live.members) > 0
	_, refused := m.countCommit(ev.Topics)
	switch {
	case ev.DiskLow:
		m.note(F1, "", "reset refused, disk almost full")
		m.reply(ev.Req, CoordinatorNotAvailable, nil)
		return
	case members && !ev.Fence:
		m.note(F2, "", "reset refused, the group has members")
		m.reply(ev.Req, NonEmptyGroup, nil)
		return
	case refused > 0:
		m.note(F3, "", "reset refused, metadata too large")
		m.reply(ev.Req, OffsetMetadataTooLarge, nil)
		return
	}
	m.env.by = provenance(ev.Client)
	if m.live != nil && (members || m.live.state != Empty) {
		m.note(F4, "", "members removed for a reset")
		m.fence(now)
	}
	m.noteFrom(F5, from, "", "offsets reset")
	m.recordReset(ev)
	m.keep()
	m.reply(ev.Req, None, nil)
}

// fence removes every member and every id that was handed out, and ends the round
// in which they were; the group is then Empty.
func (m *Machine) fence(now Time) {
	l := m.live
	l.pending = nil
	for _, x := range l.members {
		m.releaseJoin(x, UnknownMemberID, "")
		m.releaseSync(x, UnknownMemberID)
		l.forget(x)
	}
	clear(l.members)
	l.members, l.leader = l.members[:0], nil
	if l.state == PreparingRebalance {
		m.completeJoin(now)
	} else {
		m.startRound(now, "", "members removed for a reset") // it has nobody to wait for
	}
}

// recordReset stores the offsets of a reset and removes those that go: all others
// with Replace, and what transactions have staged, which would come on top of them.
func (m *Machine) recordReset(ev *Reset) {
	n, _ := m.countCommit(ev.Topics)
	set := map[string]map[int32]bool{}
	for i := range ev.Topics {
		t := &ev.Topics[i]
		if set[t.Name] == nil {
			set[t.Name] = map[int32]bool{}
		}
		for j := range t.Partitions {
			set[t.Name][t.Partitions[j].Partition] = true
		}
	}
	if ev.Replace {
		var gone deletion
		for _, t := range m.off.topics {
			for i := range t.entries {
				if p := t.entries[i].partition; !set[t.name][p] {
					gone.add(t.name, p)
				}
			}
		}
		m.recordDeletion(&gone)
	}
	m.recordPendingDeletion(func(e *pendingOffset) bool { return ev.Replace || ev.Fence || set[e.topic][e.Partition] })
	if n > 0 {
		m.record(Record{Kind: RecordOffsets, Offsets: m.commitOffsets(ev.Topics, n, -1)})
	}
}
