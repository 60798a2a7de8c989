package group

import (
	"math"
	"strconv"
)

// stepJoin is JoinGroup. The order of the checks is Kafka's
// (GroupMetadataManager.classicGroupJoin and what it calls).
func (m *Machine) stepJoin(now Time, ev *Join) {
	m.env.by = by(ev.Client, ev.MemberID, -1)
	switch {
	case ev.MemberID != "" && !m.exists():
		m.note(J1, ev.MemberID, "join of an unknown group with a member id")
		m.refuseJoin(ev.Req, UnknownMemberID, ev.MemberID)
	case !m.admits(ev.MemberID):
		m.joinFull(now, ev)
	case !m.fits(ev):
		m.open() // a group begins even so, as in Kafka
		m.note(J3, ev.MemberID, "protocol type or protocols do not fit the group")
		m.refuseJoin(ev.Req, InconsistentProtocol, ev.MemberID)
	case ev.MemberID == "":
		m.joinNew(now, ev)
	default:
		m.joinKnown(now, ev)
	}
}

// admits is the rule about group.max.size. During a join phase the parked joins
// count, so that of a group that is too large the last to rejoin are shed.
func (m *Machine) admits(id string) bool {
	limit := m.env.Config.MaxSize
	if limit <= 0 {
		return true
	}
	switch m.state() {
	case PreparingRebalance:
		x := m.live.find(id)
		return x != nil && x.joining || m.live.joining < limit
	case CompletingRebalance, Stable:
		return m.live.find(id) != nil || len(m.live.members) < limit
	}
	return true
}

// joinFull refuses a join because of group.max.size. Whatever the id was is
// forgotten, a member too; and as nobody waits for it any more, the join phase
// may be complete (Kafka sits out the rebalance timeout).
func (m *Machine) joinFull(now Time, ev *Join) {
	l := m.live
	m.note(J2, ev.MemberID, "group.max.size reached")
	l.takePending(ev.MemberID)
	if x := l.find(ev.MemberID); x != nil {
		l.remove(x)
	}
	m.refuseJoin(ev.Req, GroupMaxSizeReached, "")
	m.maybeComplete(now)
}

// joinNew is a join without a member id.
func (m *Machine) joinNew(now Time, ev *Join) {
	l := m.open()
	if ev.InstanceID != nil {
		if x := l.findInstance(*ev.InstanceID); x != nil {
			m.joinReplacing(now, ev, x)
		} else {
			m.addMember(now, ev, ev.NewID)
		}
		return
	}
	if !ev.RequireMemberID {
		m.addMember(now, ev, ev.NewID)
		return
	}
	if limit := m.env.Config.PendingMax; limit > 0 && len(l.pending) >= limit {
		m.note(J5, "", "too many member ids handed out and not joined")
		m.refuseJoin(ev.Req, GroupMaxSizeReached, "")
		return
	}
	if l.pending == nil {
		l.pending = make(map[string]Time)
	}
	l.pending[ev.NewID] = now + Time(ev.SessionTimeout)
	l.due(l.pending[ev.NewID])
	m.note(J4, ev.NewID, "member id handed out")
	m.refuseJoin(ev.Req, MemberIDRequired, ev.NewID)
}

// joinKnown is a join with a member id.
func (m *Machine) joinKnown(now Time, ev *Join) {
	l := m.open()
	if _, pending := l.pending[ev.MemberID]; pending {
		if ev.InstanceID != nil {
			m.note(J11, ev.MemberID, "id handed out to a dynamic member used by a static one")
			m.refuseJoin(ev.Req, UnknownServerError, "")
			return
		}
		l.takePending(ev.MemberID)
		m.addMember(now, ev, ev.MemberID)
		return
	}
	x, code := m.current(ev.MemberID, ev.InstanceID)
	switch {
	case code == FencedInstanceID:
		m.note(J13, ev.MemberID, "instance id belongs to another member")
	case code == UnknownMemberID && ev.InstanceID != nil && l.findInstance(*ev.InstanceID) == nil:
		m.note(J12, ev.MemberID, "instance id not known")
	case code == UnknownMemberID:
		m.note(J14, ev.MemberID, "member id not known")
	default:
		m.rejoin(now, ev, x)
		return
	}
	m.refuseJoin(ev.Req, code, ev.MemberID)
}

// addMember adds a member and parks its join.
func (m *Machine) addMember(now Time, ev *Join, id string) {
	l := m.live
	m.env.by.MemberID = id
	x := &member{
		id:               id,
		instance:         ev.InstanceID,
		clientID:         ev.Client.ID,
		clientHost:       ev.Client.Host,
		sessionTimeout:   ev.SessionTimeout,
		rebalanceTimeout: ev.RebalanceTimeout,
		protocols:        ev.Protocols,
		isNew:            true,
	}
	l.insert(x, ev.ProtocolType)
	l.arm(x, now, newMemberTimeout)
	m.parkJoin(x, ev.Req)
	switch l.state {
	case Empty:
		m.note(J8, id, "first member")
		m.startRound(now, id, "first member")
	case PreparingRebalance:
		m.note(J9, id, "new member in a join phase")
		l.grew = l.grew || l.initial
		m.maybeComplete(now)
	case CompletingRebalance:
		m.note(J7, id, "late joiner")
		m.startRound(now, id, "new member between the leader's join and its sync")
	case Stable:
		m.note(J10, id, "new member")
		m.startRound(now, id, "new member")
	}
}

// rejoin is the join of a member of the group under its own id.
func (m *Machine) rejoin(now Time, ev *Join, x *member) {
	l := m.live
	same := sameProtocols(x.protocols, ev.Protocols)
	switch {
	case l.state == PreparingRebalance:
		m.note(J15, x.id, "member rejoins")
		l.update(x, ev)
		m.parkJoin(x, ev.Req)
		m.maybeComplete(now)
	case l.state == CompletingRebalance && same:
		m.note(J6, x.id, "unchanged join, the answer may have been lost")
		m.reply(ev.Req, None, m.joinReply(x, x == l.leader))
	case l.state == CompletingRebalance:
		m.note(J16, x.id, "protocols changed between join and sync")
		m.rejoinRound(now, ev, x, "changed protocols")
	case x == l.leader:
		m.note(J17, x.id, "leader rejoins")
		m.rejoinRound(now, ev, x, "leader rejoined")
	case !same:
		m.note(J18, x.id, "protocols changed")
		m.rejoinRound(now, ev, x, "changed protocols")
	default:
		m.note(J19, x.id, "unchanged join of a follower")
		m.reply(ev.Req, None, m.joinReply(x, false))
	}
}

// rejoinRound starts a round in which a member has already joined.
func (m *Machine) rejoinRound(now Time, ev *Join, x *member, reason string) {
	m.live.update(x, ev)
	m.parkJoin(x, ev.Req)
	m.startRound(now, x.id, because(reason, ev.Reason))
}

// parkJoin holds a member's JoinGroup until the join phase ends. One that is
// already held is answered: its client has given it up (Kafka never answers).
func (m *Machine) parkJoin(x *member, req ReqID) {
	if x.joining {
		m.note(J25, x.id, "an earlier join of the member is given up")
		m.refuseJoin(x.joinReq, RebalanceInProgress, x.id)
	} else {
		x.joining = true
		m.live.joining++
	}
	x.joinReq = req
}

// releaseJoin answers a member's parked JoinGroup, if any, with an error.
func (m *Machine) releaseJoin(x *member, code Code, id string) {
	if !x.joining {
		return
	}
	m.refuseJoin(x.joinReq, code, id)
	x.joining = false
	m.live.joining--
}

// refuseJoin answers a JoinGroup with an error.
func (m *Machine) refuseJoin(req ReqID, code Code, id string) {
	m.reply(req, code, &JoinReply{Generation: -1, MemberID: id})
}

// joinReply is the answer to a member of the current generation.
func (m *Machine) joinReply(x *member, withMembers bool) *JoinReply {
	r := &JoinReply{}
	m.fillJoinReply(r, x, withMembers)
	return r
}

func (m *Machine) fillJoinReply(r *JoinReply, x *member, withMembers bool) {
	l := m.live
	*r = JoinReply{
		Generation:   l.generation,
		ProtocolType: l.protocolType,
		ProtocolName: l.protocol,
		Leader:       l.leader.id,
		MemberID:     x.id,
	}
	if withMembers {
		r.Members = l.joinMembers()
	}
}

// joinMembers lists the members as the leader is told of them, in join order.
func (l *membership) joinMembers() []JoinMember {
	members := make([]JoinMember, len(l.members))
	for i, x := range l.members {
		members[i] = JoinMember{MemberID: x.id, InstanceID: x.instance, Metadata: l.metadata(x)}
	}
	return members
}

// by says who asked, for the records of this step.
func by(c Client, member string, generation int32) Provenance {
	return Provenance{ClientID: c.ID, Host: c.Host, Principal: c.Principal, MemberID: member, Generation: generation}
}

// generationAfter is the next generation.
func generationAfter(generation int32) int32 {
	invariant(generation < math.MaxInt32, "generation "+strconv.Itoa(int(generation))+" is the last")
	return generation + 1
}
