package group

// membership is the soft state of a group's membership.
type membership struct {
	state      State
	generation int32
}

// exists tells whether the group is known.
func (m *Machine) exists() bool {
	return m.live != nil || m.snap != nil || !m.off.empty()
}

// state is the state of the group: Dead if it is unknown, Empty if it has
// offsets only.
func (m *Machine) state() State {
	switch {
	case m.live != nil:
		return m.live.state
	case m.exists():
		return Empty
	}
	return Dead
}

// protocolType is the group's protocol type, "" if it never had a member.
func (m *Machine) protocolType() string { return "" }

// emptySince is the wall time at which the group became Empty, false if it is
// not Empty or the time is not known.
func (m *Machine) emptySince() (Time, bool) { return 0, false }

// hasPending tells whether member ids were handed out that have not joined yet.
func (m *Machine) hasPending() bool { return false }

// checkMember says whether a request of a member is the current one's: none,
// UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION, in Kafka's order.
func (m *Machine) checkMember(memberID string, instanceID *string, generation int32) Code {
	return UnknownMemberID
}

// renewSession re-arms the session timer of a member that was heard.
func (m *Machine) renewSession(now Time, memberID string) {}

// subscribedTo tells whether the members subscribe to a topic, as far as that is
// known: it never is for protocol types other than "consumer".
func (m *Machine) subscribedTo(topic string) (subscribed, known bool) { return false, false }

// deleteGroup removes the group with all it has.
func (m *Machine) deleteGroup() {
	m.record(Record{Kind: RecordGroupDeleted})
	m.live = nil
}

func (m *Machine) stepJoin(now Time, ev *Join)           {}
func (m *Machine) stepSync(now Time, ev *Sync)           {}
func (m *Machine) stepHeartbeat(now Time, ev *Heartbeat) {}
func (m *Machine) stepLeave(now Time, ev *Leave)         {}
func (m *Machine) stepTick(now Time, ev *Tick)           {}
func (m *Machine) stepDescribe(ev *Describe)             {}
func (m *Machine) stepList(ev *List)                     {}
func (m *Machine) stepLoaded(now Time)                   {}
func (m *Machine) stepLost()                             {}
