package group

// deletion collects offsets to remove, in the order in which they come.
type deletion struct{ topics []OffsetsTopic }

// add adds a partition; partitions of one topic come together.
func (d *deletion) add(topic string, partition int32) {
	if n := len(d.topics); n == 0 || d.topics[n-1].Name != topic {
		d.topics = append(d.topics, OffsetsTopic{Name: topic})
	}
	last := &d.topics[len(d.topics)-1]
	last.Partitions = append(last.Partitions, OffsetsPartition{Partition: partition})
}

// recordDeletion removes what was collected, if anything.
func (m *Machine) recordDeletion(d *deletion) {
	if len(d.topics) > 0 {
		m.record(Record{Kind: RecordOffsetsDeleted, Offsets: d.topics})
	}
}

// keep lets a group that has lost its last offset, or got none, exist until the
// next run of the expiry (X6). Only a group without a snapshot needs that.
func (m *Machine) keep() {
	if !m.exists() {
		m.kept = true
	}
}

// stepDeleteOffsets is OffsetDelete (KIP-496).
func (m *Machine) stepDeleteOffsets(_ Time, ev *DeleteOffsets) {
	state := m.state()
	switch {
	case state == Dead:
		m.note(E1, "", "offset delete of an unknown group")
		m.reply(ev.Req, GroupIDNotFound, nil)
		return
	case state != Empty && m.protocolType() != "consumer":
		m.note(E2, "", "offset delete refused, the group has members")
		m.reply(ev.Req, NonEmptyGroup, nil)
		return
	}
	body := &DeleteOffsetsReply{Codes: make([][]Code, len(ev.Topics))}
	var gone deletion
	pending := map[pendingKey]bool{}
	for i := range ev.Topics {
		want := &ev.Topics[i]
		body.Codes[i] = make([]Code, len(want.Partitions))
		if state != Empty && m.maySubscribe(want.Name) {
			m.note(E3, "", "offset delete refused, topic is subscribed")
			for j := range want.Partitions {
				body.Codes[i][j] = GroupSubscribedToTopic
			}
			continue
		}
		t := m.off.find(want.Name)
		for _, partition := range want.Partitions {
			if t != nil && t.at(partition) != nil {
				gone.add(want.Name, partition)
			}
			if m.pend.has(want.Name, partition) {
				pending[pendingKey{want.Name, partition}] = true
			}
		}
	}
	m.note(E4, "", "offset delete")
	m.env.by = provenance(ev.Client)
	m.recordDeletion(&gone)
	m.recordPendingDeletion(func(e *pendingOffset) bool { return pending[e.key()] })
	m.keep()
	m.reply(ev.Req, None, body)
}

// maySubscribe tells whether the members of a consumer group subscribe to a topic;
// as long as that is not known, they do.
func (m *Machine) maySubscribe(topic string) bool {
	subscribed, known := m.subscribedTo(topic)
	return subscribed || !known
}

// provenance is that of a request that is not a member's.
func provenance(c Client) Provenance {
	return committer(c, "", -1)
}

// stepDeleteGroup is DeleteGroups for one group. Member ids that have not joined
// yet do not keep a group.
func (m *Machine) stepDeleteGroup(_ Time, ev *DeleteGroup) {
	switch m.state() {
	case Dead:
		m.note(E5, "", "delete of an unknown group")
		m.reply(ev.Req, GroupIDNotFound, nil)
	case Empty:
		from := m.state()
		m.env.by = provenance(ev.Client)
		m.removeGroup()
		m.noteFrom(E7, from, "", "group deleted on request")
		m.reply(ev.Req, None, nil)
	default:
		m.note(E6, "", "group delete refused, it has members")
		m.reply(ev.Req, NonEmptyGroup, nil)
	}
}

// removeGroup removes all offsets, in records of their own that name them, and then
// the group.
func (m *Machine) removeGroup() {
	var gone deletion
	for _, t := range m.off.topics {
		for i := range t.entries {
			gone.add(t.name, t.entries[i].partition)
		}
	}
	m.recordDeletion(&gone)
	m.recordPendingDeletion(func(*pendingOffset) bool { return true })
	m.deleteGroup()
}

// stepTopicDeleted drops the offsets of a topic that is gone, also those of a
// live group. Offsets that are known to be of a later topic of that name stay.
func (m *Machine) stepTopicDeleted(ev *TopicDeleted) {
	var gone deletion
	if t := m.off.find(ev.Name); t != nil {
		for i := range t.entries {
			e := &t.entries[i]
			if id := t.topicID(e); id == ev.ID || id == (TopicID{}) {
				gone.add(t.name, e.partition)
			}
		}
	}
	m.recordDeletion(&gone)
	pending := m.recordPendingDeletion(func(e *pendingOffset) bool {
		return e.topic == ev.Name && (e.id == ev.ID || e.id == (TopicID{}))
	})
	if pending || len(gone.topics) > 0 {
		m.keep()
		m.note(E8, "", "topic "+ev.Name+" deleted")
	}
	m.reply(ev.Req, None, nil)
}

// stepCheckTopics makes up for deletions of topics that a crash cut short.
func (m *Machine) stepCheckTopics(ev *CheckTopics) {
	var gone deletion
	for _, t := range m.off.topics {
		if len(t.entries) == 0 {
			continue
		}
		now, exists := ev.Lookup(t.name)
		for i := range t.entries {
			e := &t.entries[i]
			id := t.topicID(e)
			if !exists || id != now && id != (TopicID{}) {
				gone.add(t.name, e.partition)
			}
		}
	}
	m.recordDeletion(&gone)
	pending := m.recordPendingDeletion(func(e *pendingOffset) bool {
		now, exists := ev.Lookup(e.topic)
		return !exists || e.id != now && e.id != (TopicID{})
	})
	if pending || len(gone.topics) > 0 {
		m.keep()
		m.note(E9, "", "topics were deleted")
	}
	m.reply(ev.Req, None, nil)
}
