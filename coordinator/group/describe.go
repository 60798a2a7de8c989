package group

import "cmp"

// stepDescribe is one group of DescribeGroups.
func (m *Machine) stepDescribe(ev *Describe) {
	if !m.exists() {
		m.note(D1, "", "describe of an unknown group")
		m.reply(ev.Req, GroupIDNotFound, &DescribeReply{State: Dead})
		return
	}
	m.note(D2, "", "describe")
	r := &DescribeReply{State: m.state(), ProtocolType: m.protocolType()}
	if m.live != nil {
		if r.State == Stable {
			r.Protocol = *m.live.protocol
		}
		r.Members = m.describeMembers()
	}
	m.reply(ev.Req, None, r)
}

// describeMembers lists the members. Metadata is shown in Stable only; outside it
// the assignment is the last known one, as in Kafka.
func (m *Machine) describeMembers() []DescribedMember {
	l := m.live
	members := make([]DescribedMember, len(l.members))
	var last map[string][]byte
	if l.state != Stable && m.snap != nil && !l.forgotten {
		last = make(map[string][]byte, len(m.snap.Members))
		for i := range m.snap.Members {
			last[m.snap.Members[i].MemberID] = m.snap.Members[i].Assignment
		}
	}
	for i, x := range l.members {
		members[i] = DescribedMember{
			MemberID:   x.id,
			InstanceID: x.instance,
			ClientID:   x.clientID,
			ClientHost: x.clientHost,
			Assignment: x.assignment,
		}
		if l.state == Stable {
			members[i].Metadata = l.metadata(x)
		} else {
			members[i].Assignment = last[cmp.Or(x.stored, x.id)]
		}
	}
	return members
}

// stepList is the group's line in ListGroups.
func (m *Machine) stepList(ev *List) {
	if !m.exists() {
		m.note(D3, "", "list of an unknown group")
		m.reply(ev.Req, GroupIDNotFound, &ListReply{GroupID: m.id, State: Dead})
		return
	}
	m.note(D4, "", "list")
	r := &ListReply{GroupID: m.id, ProtocolType: m.protocolType(), State: m.state(), Offsets: m.off.count}
	if m.live != nil {
		r.Members = len(m.live.members)
	}
	m.reply(ev.Req, None, r)
}
