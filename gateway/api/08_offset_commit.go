package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// OffsetCommit, key 8, versions 2 to 10: versions 2 to 4 have a retention time, 3
// a throttle time, 6 a leader epoch, 7 a group instance id (KIP-345), 8 is
// flexible, 9 may answer GROUP_ID_NOT_FOUND (KIP-848), 10 has topic ids instead of
// names (KIP-848). Versions 0 and 1 are gone, as in Kafka 4. Nothing is left out.

// commitCall is all that one commit needs. The response is laid out when the
// request is read; the reply only fills in codes.
type commitCall struct {
	call  *Call
	ev    group.Commit
	reply group.Reply
	resp  kmsg.OffsetCommitResponse
	// slots says where the partitions of each topic of ev are in resp; nil if ev
	// and resp are laid out alike.
	slots []commitSlot
	// byID: topics have ids instead of names.
	byID bool
	// Most requests name one topic.
	oneTopic [1]group.CommitTopic
	oneResp  [1]kmsg.OffsetCommitResponseTopic
}

// commitSlot is where a topic of the event is answered: in the n partitions of
// resp.Topics[topic] that begin with first.
type commitSlot struct{ topic, first, n int }

func (h *Handlers) offsetCommit(c *Call) {
	req := c.Msg.(*kmsg.OffsetCommitRequest)
	cc := &commitCall{call: c, resp: kmsg.OffsetCommitResponse{Version: c.Version}, byID: c.Version >= 10}
	if !h.allowed(c, OpRead, ResourceGroup, req.Group) {
		cc.mirror(req, kerr.GroupAuthorizationFailed.Code)
		c.Respond(&cc.resp)
		return
	}
	if !h.commitAll(c, req, cc) {
		h.commitSome(c, req, cc)
	}
	if len(cc.ev.Topics) == 0 {
		// Nothing is left to commit: neither the group nor the member is looked at.
		c.Respond(&cc.resp)
		return
	}
	cc.ev.Client = clientOf(c)
	cc.ev.MemberID = req.MemberID
	cc.ev.InstanceID = req.InstanceID
	cc.ev.Generation = req.Generation
	cc.ev.GroupIDNotFound = c.Version >= 9
	cc.ev.Retention = req.RetentionTimeMillis // -1 where the version has none
	c.AwaitBuilder(1, cc)
	h.Groups.Submit(c.Context(), req.Group, &cc.ev, cc)
}

// mirror lays the response out like the request, with one code everywhere.
func (cc *commitCall) mirror(req *kmsg.OffsetCommitRequest, code int16) {
	cc.resp.Topics = cc.oneResp[:0]
	if len(req.Topics) > 1 {
		cc.resp.Topics = make([]kmsg.OffsetCommitResponseTopic, 0, len(req.Topics))
	}
	slab := make([]kmsg.OffsetCommitResponseTopicPartition, partitionCount(req))
	for i := range req.Topics {
		t := &req.Topics[i]
		n := len(t.Partitions)
		for j := range t.Partitions {
			slab[j].Partition, slab[j].ErrorCode = t.Partitions[j].Partition, code
		}
		cc.resp.Topics = append(cc.resp.Topics, kmsg.OffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID, Partitions: slab[:n:n]})
		slab = slab[n:]
	}
}

func partitionCount(req *kmsg.OffsetCommitRequest) (n int) {
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	return n
}

// commitAll lays out event and response of a request whose partitions all exist.
// It returns false, having changed nothing that matters, if one does not.
func (h *Handlers) commitAll(c *Call, req *kmsg.OffsetCommitRequest, cc *commitCall) bool {
	topics := cc.oneTopic[:0]
	if len(req.Topics) > 1 {
		topics = make([]group.CommitTopic, 0, len(req.Topics))
	}
	slab := make([]group.CommitPartition, partitionCount(req))
	for i := range req.Topics {
		t := &req.Topics[i]
		name, id, partitions, code := h.commitTopic(c, cc.byID, t)
		if code != 0 || len(t.Partitions) == 0 {
			return false
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if uint32(p.Partition) >= uint32(partitions) {
				return false
			}
			slab[j] = commitPartition(p)
		}
		n := len(t.Partitions)
		topics = append(topics, group.CommitTopic{Name: name, ID: id, Partitions: slab[:n:n]})
		slab = slab[n:]
	}
	cc.ev.Topics = topics
	cc.mirror(req, 0)
	return true
}

// commitTopic finds the topic of one part of a request. code is why its
// partitions are refused, else partitions is how many there are.
func (h *Handlers) commitTopic(c *Call, byID bool, t *kmsg.OffsetCommitRequestTopic) (name string, id group.TopicID, partitions int32, code int16) {
	name = t.Topic
	if byID {
		var ok bool
		if name, ok = h.Topics.ByID(t.TopicID); !ok {
			return "", id, 0, kerr.UnknownTopicID.Code
		}
	}
	if !h.allowed(c, OpRead, ResourceTopic, name) {
		return name, id, 0, kerr.TopicAuthorizationFailed.Code
	}
	known, partitions, ok := h.Topics.Lookup(name)
	if !ok {
		return name, id, 0, kerr.UnknownTopicOrPartition.Code
	}
	return name, known, partitions, 0
}

func commitPartition(p *kmsg.OffsetCommitRequestTopicPartition) group.CommitPartition {
	out := group.CommitPartition{Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch}
	if p.Metadata != nil {
		out.Metadata = *p.Metadata
	}
	return out
}

// commitSome lays out event and response of a request with parts that are refused
// before the group is asked. Kafka answers those first, and each topic once, with
// what the group said behind them (OffsetCommitResponse.Builder.merge); a topic
// without partitions is answered only if it is refused as a whole.
func (h *Handlers) commitSome(c *Call, req *kmsg.OffsetCommitRequest, cc *commitCall) {
	b := commitMerger{resp: &cc.resp, byID: cc.byID, at: make(map[string]int)}
	cc.ev.Topics = nil
	for i := range req.Topics {
		t := &req.Topics[i]
		name, id, partitions, code := h.commitTopic(c, cc.byID, t)
		if code != 0 {
			at := b.topic(t)
			for j := range t.Partitions {
				b.add(at, t.Partitions[j].Partition, code)
			}
			continue
		}
		kept := group.CommitTopic{Name: name, ID: id}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if uint32(p.Partition) < uint32(partitions) {
				kept.Partitions = append(kept.Partitions, commitPartition(p))
			} else {
				b.add(b.topic(t), p.Partition, kerr.UnknownTopicOrPartition.Code)
			}
		}
		if len(kept.Partitions) > 0 {
			cc.ev.Topics = append(cc.ev.Topics, kept)
			b.kept = append(b.kept, t)
		}
	}
	cc.slots = b.place(cc.ev.Topics)
}

// commitMerger lays a response out as Kafka does: refused partitions in request
// order, then those that the group is asked for.
type commitMerger struct {
	resp *kmsg.OffsetCommitResponse
	byID bool
	at   map[string]int                   // name or id -> index in resp.Topics
	kept []*kmsg.OffsetCommitRequestTopic // what each topic of the event is called in the request
}

// topic returns where the response has a topic, at its end if it had not.
func (b *commitMerger) topic(t *kmsg.OffsetCommitRequestTopic) int {
	key := t.Topic
	if b.byID {
		key = string(t.TopicID[:])
	}
	at, ok := b.at[key]
	if !ok {
		at = b.newTopic(t)
		b.at[key] = at
	}
	return at
}

func (b *commitMerger) newTopic(t *kmsg.OffsetCommitRequestTopic) int {
	b.resp.Topics = append(b.resp.Topics, kmsg.OffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID})
	return len(b.resp.Topics) - 1
}

func (b *commitMerger) add(topic int, partition int32, code int16) {
	out := &b.resp.Topics[topic]
	out.Partitions = append(out.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: partition, ErrorCode: code})
}

// place appends the partitions of the event to the response. With nothing refused
// (a topic without partitions led here) Kafka does not merge topics.
func (b *commitMerger) place(topics []group.CommitTopic) []commitSlot {
	find := b.topic
	if len(b.resp.Topics) == 0 {
		find = b.newTopic
	}
	slots := make([]commitSlot, len(topics))
	for i := range topics {
		at := find(b.kept[i])
		slots[i] = commitSlot{topic: at, first: len(b.resp.Topics[at].Partitions), n: len(topics[i].Partitions)}
		for _, p := range topics[i].Partitions {
			b.add(at, p.Partition, 0)
		}
	}
	return slots
}

// Reply implements shard.Sink.
func (cc *commitCall) Reply(r group.Reply) {
	cc.reply = r
	cc.call.Done()
}

// Build implements [Builder].
func (cc *commitCall) Build() kmsg.Response {
	cc.fill()
	return &cc.resp
}

// fill puts the codes of the reply into the response.
func (cc *commitCall) fill() {
	body, each := cc.reply.Body.(*group.CommitReply)
	if !each && cc.reply.Code == group.None {
		return // every code is already 0
	}
	fill := func(i int, partitions []kmsg.OffsetCommitResponseTopicPartition) {
		for j := range partitions {
			partitions[j].ErrorCode = int16(cc.reply.Code)
			if each {
				partitions[j].ErrorCode = int16(body.Codes[i][j])
			}
		}
	}
	if cc.slots == nil {
		for i := range cc.resp.Topics {
			fill(i, cc.resp.Topics[i].Partitions)
		}
	}
	for i, s := range cc.slots {
		fill(i, cc.resp.Topics[s.topic].Partitions[s.first:s.first+s.n])
	}
}
