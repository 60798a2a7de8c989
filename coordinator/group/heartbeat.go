package group

// stepHeartbeat is Heartbeat (Kafka's classicGroupHeartbeatToClassicGroup, with
// design rule 5). It is by far the most frequent event and allocates nothing.
func (m *Machine) stepHeartbeat(now Time, ev *Heartbeat) {
	x, code := m.current(ev.MemberID, ev.InstanceID)
	if code != None {
		m.note(H1, ev.MemberID, "member or instance id not known")
		m.reply(ev.Req, code, nil)
		return
	}
	l := m.live
	switch {
	case l.stale(ev.Generation):
		m.note(H2, x.id, "heartbeat of an older generation in a rebalance")
		m.reply(ev.Req, RebalanceInProgress, nil)
		return
	case ev.Generation != l.generation:
		m.note(H3, x.id, "heartbeat of another generation")
		m.reply(ev.Req, IllegalGeneration, nil)
		return
	case l.state == PreparingRebalance:
		m.note(H4, x.id, "heartbeat in a join phase")
		m.reply(ev.Req, RebalanceInProgress, nil)
	case l.state == CompletingRebalance:
		m.note(H5, x.id, "heartbeat between join and sync")
		m.reply(ev.Req, None, nil)
	default:
		m.note(H6, x.id, "heartbeat")
		m.reply(ev.Req, None, nil)
	}
	l.arm(x, now, x.sessionTimeout)
}
