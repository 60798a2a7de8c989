package group

// snapshot makes the live membership durable. It is called when a generation
// becomes Stable, when the group becomes Empty, and when a static member is
// replaced in Stable (design rule 9).
func (m *Machine) snapshot() {
	l := m.live
	s := &Membership{
		ProtocolType: m.protocolType(),
		Generation:   l.generation,
		Ceiling:      m.ceiling(l.generation),
		Protocol:     l.protocol,
		Since:        l.since,
	}
	if m.snap != nil {
		s.Ceiling = max(s.Ceiling, m.snap.Ceiling)
	}
	if l.leader != nil {
		s.Leader = l.leader.id
		s.Members = make([]MemberSnapshot, len(l.members))
	}
	for i, x := range l.members {
		x.stored = ""
		s.Members[i] = MemberSnapshot{
			MemberID:         x.id,
			InstanceID:       x.instance,
			ClientID:         x.clientID,
			ClientHost:       x.clientHost,
			SessionTimeout:   x.sessionTimeout,
			RebalanceTimeout: x.rebalanceTimeout,
			Protocols:        x.protocols,
			Assignment:       x.assignment,
		}
	}
	m.record(Record{Kind: RecordMembership, Membership: s})
}

// stepLoaded makes soft state from the snapshot. A group with members goes on as
// Stable, each with a full session; one without is Empty; parked requests, ids
// handed out and a round that was under way are lost.
func (m *Machine) stepLoaded(now Time) {
	m.live = nil
	s := m.snap
	if s == nil {
		return
	}
	l := m.open()
	l.generation, l.protocol, l.since = s.Generation, s.Protocol, s.Since
	if s.ProtocolType != "" {
		l.protocolType = &s.ProtocolType
	}
	if len(s.Members) == 0 {
		l.subscribe()
		m.note(M2, "", "loaded without members")
		return
	}
	invariant(l.protocol != nil, "a snapshot with members names no protocol")
	l.state, l.recovered = Stable, true
	for i := range s.Members {
		x := restore(&s.Members[i])
		l.insert(x, s.ProtocolType)
		l.arm(x, now, x.sessionTimeout)
	}
	if x := l.find(s.Leader); x != nil {
		l.leader = x
	}
	l.subscribe()
	m.note(M1, "", "loaded with members")
	if limit := m.env.Config.MaxSize; limit > 0 && len(l.members) > limit {
		m.note(M3, "", "larger than group.max.size")
		m.startRound(now, "", "larger than group.max.size")
	}
}

func restore(s *MemberSnapshot) *member {
	return &member{
		id:               s.MemberID,
		instance:         s.InstanceID,
		clientID:         s.ClientID,
		clientHost:       s.ClientHost,
		sessionTimeout:   s.SessionTimeout,
		rebalanceTimeout: s.RebalanceTimeout,
		protocols:        s.Protocols,
		assignment:       s.Assignment,
	}
}

// stepLost ends the ownership: what is parked is answered NOT_COORDINATOR.
func (m *Machine) stepLost() {
	if m.live == nil {
		return
	}
	m.note(M4, "", "the coordinator moves or stops")
	for _, x := range m.live.members {
		m.releaseJoin(x, NotCoordinator, x.id)
		m.releaseSync(x, NotCoordinator)
	}
	m.live = nil
}
