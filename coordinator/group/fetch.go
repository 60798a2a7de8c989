package group

// stepFetch is OffsetFetch for one group. It asks nothing of the group: not that
// it exists, not that the partitions do. Who requires stable offsets is not told
// those of partitions where a transaction has one pending (KIP-447).
func (m *Machine) stepFetch(_ Time, ev *Fetch) {
	if ev.All {
		m.note(O12, "", "offset fetch of all")
		m.reply(ev.Req, None, m.fetchAll(ev.RequireStable))
		return
	}
	m.note(O11, "", "offset fetch")
	m.reply(ev.Req, None, m.fetchListed(ev))
}

// fetchListed answers the partitions of the request, in its order and as often as
// it names them.
func (m *Machine) fetchListed(ev *Fetch) *FetchReply {
	total := 0
	for i := range ev.Topics {
		total += len(ev.Topics[i].Partitions)
	}
	all := make([]FetchedPartition, total)
	body := &FetchReply{Topics: make([]FetchedTopic, len(ev.Topics))}
	refused := false
	for i := range ev.Topics {
		want := &ev.Topics[i]
		n := len(want.Partitions)
		body.Topics[i] = FetchedTopic{Name: want.Name, ID: want.ID, Partitions: all[:n:n]}
		t := m.off.find(want.Name)
		for j, partition := range want.Partitions {
			if ev.RequireStable && m.pend.has(want.Name, partition) {
				all[j] = unstable(partition)
				refused = true
				continue
			}
			all[j] = m.fetched(t, partition, want.ID)
		}
		all = all[n:]
	}
	if refused {
		m.note(O20, "", "offsets are pending")
	}
	return body
}

// fetched returns what is committed for a partition of t, which may be nil, if it
// was committed for the topic that is asked for.
func (m *Machine) fetched(t *topicOffsets, partition int32, id TopicID) FetchedPartition {
	none := FetchedPartition{Partition: partition, Offset: -1, LeaderEpoch: -1}
	if t == nil {
		return none
	}
	e := t.at(partition)
	if e == nil {
		return none
	}
	if stored := t.topicID(e); id != stored && id != (TopicID{}) && stored != (TopicID{}) {
		m.note(O13, "", "offset is of another topic of that name")
		return none
	}
	return e.fetched()
}

func (e *offsetEntry) fetched() FetchedPartition {
	return FetchedPartition{
		Partition:   e.partition,
		Offset:      e.offset,
		LeaderEpoch: e.leaderEpoch,
		Metadata:    e.metadata(),
	}
}

// unstable refuses a partition that has an offset pending.
func unstable(partition int32) FetchedPartition {
	return FetchedPartition{Partition: partition, Code: UnstableOffsetCommit, Offset: -1, LeaderEpoch: -1}
}

// fetchAll answers every partition that has a committed offset, in the order of
// topics and partitions.
func (m *Machine) fetchAll(requireStable bool) *FetchReply {
	all := make([]FetchedPartition, 0, m.off.count)
	body := &FetchReply{Topics: make([]FetchedTopic, 0, len(m.off.topics))}
	requireStable = requireStable && !m.pend.empty()
	refused := false
	for _, t := range m.off.topics {
		if len(t.entries) == 0 {
			continue
		}
		first := len(all)
		for i := range t.entries {
			e := &t.entries[i]
			if requireStable && m.pend.has(t.name, e.partition) {
				all = append(all, unstable(e.partition))
				refused = true
				continue
			}
			all = append(all, e.fetched())
		}
		body.Topics = append(body.Topics, FetchedTopic{Name: t.name, ID: t.id, Partitions: all[first:len(all):len(all)]})
	}
	if refused {
		m.note(O21, "", "offsets are pending")
	}
	return body
}
