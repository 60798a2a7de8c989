package group

// stepExpireOffsets removes offsets that were kept long enough, and the group if
// nothing is left of it (ClassicGroup.offsetExpirationCondition, KIP-211).
func (m *Machine) stepExpireOffsets(ev *ExpireOffsets) {
	state := m.state()
	since, sinceKnown := m.emptySince()
	var rule Rule
	switch {
	case state == Dead:
		m.reply(ev.Req, None, nil)
		return
	case state == Empty && (m.protocolType() == "" || !sinceKnown):
		// Never had members, or nobody knows since when it has none: each offset
		// counts from its commit.
		rule = X1
	case state == Empty:
		rule = X2
	case state == Stable && m.protocolType() == "consumer":
		rule = X3
	default:
		rule = X4
	}
	switch {
	case rule != X4:
		m.expire(ev, rule, since)
	case !m.off.empty():
		m.note(rule, "", "offsets do not expire in this state")
	}
	switch {
	case state != Empty || !m.off.empty():
	case !m.pend.empty():
		m.note(X8, "", "empty group kept, it has pending offsets")
	default:
		m.removeGroup()
		m.noteFrom(X6, state, "", "empty group removed, it has no offsets")
	}
	m.reply(ev.Req, None, nil)
}

// expire removes the offsets that the rule lets go.
func (m *Machine) expire(ev *ExpireOffsets, rule Rule, since Time) {
	// No subtraction of two arbitrary times: neither can overflow.
	limit := ev.Wall - m.env.Config.OffsetsRetention
	var gone deletion
	explicit, pending := false, false
	for _, t := range m.off.topics {
		if rule == X3 && m.maySubscribe(t.name) {
			continue
		}
		for i := range t.entries {
			e := &t.entries[i]
			base := e.commit
			if rule == X2 {
				base = since
			}
			expired := base <= limit
			if at := e.expire(); at != -1 {
				expired = at <= ev.Wall
			}
			switch {
			case !expired:
			case m.pend.has(t.name, e.partition):
				pending = true
			default:
				gone.add(t.name, e.partition)
				explicit = explicit || e.expire() != -1
			}
		}
	}
	if pending {
		m.note(X7, "", "offsets do not expire, others are pending")
	}
	if len(gone.topics) == 0 {
		return
	}
	m.recordDeletion(&gone)
	m.note(rule, "", "offsets expired")
	if explicit {
		m.note(X5, "", "offsets expired at their own time")
	}
}
