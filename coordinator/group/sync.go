package group

// stepSync is SyncGroup. The order of the checks is Kafka's
// (GroupMetadataManager.classicGroupSyncToClassicGroup), with design rule 5.
func (m *Machine) stepSync(now Time, ev *Sync) {
	if m.live == nil || m.live.state == Empty {
		m.note(S1, ev.MemberID, "sync of a group without members")
		m.refuseSync(ev.Req, UnknownMemberID)
		return
	}
	l := m.live
	x, code := m.current(ev.MemberID, ev.InstanceID)
	switch {
	case code != None:
		m.note(S2, ev.MemberID, "member or instance id not known")
		m.refuseSync(ev.Req, code)
	case l.stale(ev.Generation):
		m.note(S3, x.id, "sync of an older generation in a rebalance")
		m.refuseSync(ev.Req, RebalanceInProgress)
	case ev.Generation != l.generation:
		m.note(S4, x.id, "sync of another generation")
		m.refuseSync(ev.Req, IllegalGeneration)
	case differs(ev.ProtocolType, l.protocolType) || differs(ev.ProtocolName, l.protocol):
		m.note(S5, x.id, "protocol type or name differs from the group's")
		m.refuseSync(ev.Req, InconsistentProtocol)
	case l.state == PreparingRebalance:
		m.note(S6, x.id, "sync in a join phase")
		m.refuseSync(ev.Req, RebalanceInProgress)
	case l.state == Stable:
		m.note(S10, x.id, "sync of a stable group")
		l.settleSync(x)
		m.reply(ev.Req, None, m.syncReply(x))
	case x != l.leader:
		m.note(S7, x.id, "follower waits for the leader")
		l.settleSync(x)
		m.parkSync(x, ev.Req)
	case ev.DiskLow:
		m.note(S11, x.id, "assignment not taken, disk space is low")
		m.refuseSync(ev.Req, CoordinatorNotAvailable)
	default:
		m.syncLeader(now, ev)
	}
}

// stale tells whether a request of a member carries an older generation while the
// group rebalances. It is answered REBALANCE_IN_PROGRESS, not ILLEGAL_GENERATION,
// on which many clients throw away their member id (design rule 5). A newer
// generation is one that this coordinator has lost, and never stale.
func (l *membership) stale(generation int32) bool {
	return 0 <= generation && generation < l.generation &&
		(l.state == PreparingRebalance || l.state == CompletingRebalance)
}

// differs tells whether a request names something other than the group has.
func differs(given, has *string) bool {
	return given != nil && has != nil && *given != *has
}

// syncLeader takes the leader's assignments: the group is Stable from here on.
func (m *Machine) syncLeader(now Time, ev *Sync) {
	l := m.live
	m.env.by = by(ev.Client, ev.MemberID, ev.Generation)
	rule, reason := S8, "leader's assignments taken"
	if assignor := m.env.Config.Assignors[*l.protocolType]; assignor != nil && len(ev.Assignments) == 0 {
		rule, reason = S9, "assigned by the coordinator"
		for i, bytes := range assignor.Assign(l.joinMembers()) {
			l.members[i].assignment = bytes
		}
	} else {
		// Whom the leader leaves out gets an empty assignment, and ids that are not
		// members are ignored: everybody here was in the list that the leader got,
		// since a later join would have restarted the round (design rule 6).
		for _, a := range ev.Assignments {
			if x := l.find(a.MemberID); x != nil {
				x.assignment = a.Bytes
			}
		}
	}
	l.settleSync(l.leader)
	m.transition(Stable)
	m.noteFrom(rule, CompletingRebalance, ev.MemberID, reason)
	m.snapshot()
	m.reply(ev.Req, None, m.syncReply(l.leader))
	l.arm(l.leader, now, l.leader.sessionTimeout)
	for _, x := range l.members {
		if x.syncing {
			x.syncing = false
			m.reply(x.syncReq, None, m.syncReply(x))
			l.arm(x, now, x.sessionTimeout)
		}
	}
}

// parkSync holds a follower's SyncGroup until the leader's comes. One that is
// already held is answered: its client has given it up (Kafka never answers).
func (m *Machine) parkSync(x *member, req ReqID) {
	if x.syncing {
		m.note(S12, x.id, "an earlier sync of the member is given up")
		m.refuseSync(x.syncReq, RebalanceInProgress)
	}
	x.syncing, x.syncReq = true, req
}

// releaseSync answers a member's parked SyncGroup, if any, with an error.
func (m *Machine) releaseSync(x *member, code Code) {
	if x.syncing {
		m.refuseSync(x.syncReq, code)
		x.syncing = false
	}
}

func (m *Machine) refuseSync(req ReqID, code Code) {
	m.reply(req, code, &SyncReply{})
}

func (m *Machine) syncReply(x *member) *SyncReply {
	return &SyncReply{ProtocolType: m.live.protocolType, ProtocolName: m.live.protocol, Assignment: x.assignment}
}
