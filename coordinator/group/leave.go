package group

// stepLeave is LeaveGroup: a code for each member listed, and at most one round
// for all of them (GroupMetadataManager.classicGroupLeaveToClassicGroup).
func (m *Machine) stepLeave(now Time, ev *Leave) {
	codes := make([]Code, len(ev.Members))
	if !m.exists() {
		m.note(L1, "", "leave of an unknown group")
		for i := range codes {
			codes[i] = UnknownMemberID
		}
		m.reply(ev.Req, None, &LeaveReply{Codes: codes})
		return
	}
	anybody, left, reason := false, "", ""
	for i := range ev.Members {
		id, code := m.leave(&ev.Members[i])
		if codes[i] = code; code == None {
			anybody, left, reason = true, id, ev.Members[i].Reason
		}
	}
	m.reply(ev.Req, None, &LeaveReply{Codes: codes})
	if !anybody {
		return
	}
	m.env.by = by(ev.Client, left, -1)
	switch m.live.state {
	case Stable, CompletingRebalance:
		m.startRound(now, left, because("member left", reason))
	case PreparingRebalance:
		m.maybeComplete(now)
	}
}

// leave removes one member or id, and returns whose.
func (m *Machine) leave(item *LeaveMember) (string, Code) {
	if m.live == nil {
		m.note(L2, item.MemberID, "member or instance id not known")
		return "", UnknownMemberID
	}
	if item.MemberID == "" && item.InstanceID != nil {
		if x := m.live.findInstance(*item.InstanceID); x != nil {
			m.note(L5, x.id, "static member removed by its instance id")
			m.expel(x)
			return x.id, None
		}
	}
	if m.live.takePending(item.MemberID) {
		m.note(L3, item.MemberID, "id handed out is given back")
		return item.MemberID, None
	}
	x, code := m.current(item.MemberID, item.InstanceID)
	if code != None {
		m.note(L2, item.MemberID, "member or instance id not known")
		return "", code
	}
	m.note(L4, x.id, "member leaves")
	m.expel(x)
	return x.id, None
}

// expel removes a member and answers what it has parked.
func (m *Machine) expel(x *member) {
	m.releaseJoin(x, UnknownMemberID, "")
	m.releaseSync(x, UnknownMemberID)
	m.live.remove(x)
}
