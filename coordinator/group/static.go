package group

// joinReplacing is the join, without a member id, of a static member that the
// group knows under an old id: the process behind the instance id was restarted
// (KIP-345). It takes over the place and fences the old id.
func (m *Machine) joinReplacing(now Time, ev *Join, x *member) {
	l := m.live
	if l.state == Stable && ev.DiskLow {
		m.note(J24, x.id, "static member not replaced, disk space is low")
		m.reply(ev.Req, CoordinatorNotAvailable, m.replacingReply(l.leader.id, ""))
		return
	}
	old, leader := x.id, l.leader.id
	m.releaseJoin(x, FencedInstanceID, old)
	m.releaseSync(x, FencedInstanceID)
	l.rename(x, ev.NewID)
	m.env.by.MemberID = x.id
	// The timer runs on the old timeout until the first heartbeat, and the member
	// is not new any more, as in Kafka.
	x.isNew = false
	l.arm(x, now, x.sessionTimeout)
	l.update(x, ev)
	switch l.state {
	case PreparingRebalance:
		m.note(J23, x.id, "static member replaced in a join phase, was "+old)
		m.parkJoin(x, ev.Req)
		m.maybeComplete(now)
	case CompletingRebalance:
		m.note(J22, x.id, "static member replaced between join and sync, was "+old)
		m.parkJoin(x, ev.Req)
		m.startRound(now, x.id, "static member replaced")
	case Stable:
		if *l.vote() != *l.protocol {
			m.note(J21, x.id, "static member replaced and the protocol changes, was "+old)
			m.parkJoin(x, ev.Req)
			m.startRound(now, x.id, "static member replaced by one with other protocols")
			return
		}
		m.note(J20, x.id, "static member replaced, was "+old)
		m.snapshot()
		m.replyReplaced(ev, x, leader)
	}
}

// replyReplaced answers a replacement that starts no round. A leader that cannot
// be told to skip the assignment (KIP-814) must not know that it leads: it gets
// the old leader's id.
func (m *Machine) replyReplaced(ev *Join, x *member, oldLeader string) {
	if !ev.CanSkipAssignment {
		m.reply(ev.Req, None, m.replacingReply(oldLeader, x.id))
		return
	}
	leads := x == m.live.leader
	r := m.joinReply(x, leads)
	r.SkipAssignment = leads
	m.reply(ev.Req, None, r)
}

// replacingReply is an answer with the group's generation and no members.
func (m *Machine) replacingReply(leader, id string) *JoinReply {
	l := m.live
	return &JoinReply{
		Generation:   l.generation,
		ProtocolType: l.protocolType,
		ProtocolName: l.protocol,
		Leader:       leader,
		MemberID:     id,
	}
}
