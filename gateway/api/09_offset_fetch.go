package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// OffsetFetch, key 9, versions 1 to 10: version 2 has a null list for all topics
// and an error of the whole, 3 a throttle time, 5 a leader epoch, 6 is flexible, 7
// has RequireStable (KIP-447), 8 several groups (KIP-709), 9 a member id and epoch
// (KIP-848), 10 topic ids instead of names. Version 0 is gone, as in Kafka 4.
//
// Differs from Kafka: [fetch-member-ignored], as there are no consumer groups.

// fetchCall is one request; each of its groups is a part.
type fetchCall struct {
	call    *Call
	h       *Handlers
	parts   []fetchPart
	onePart [1]fetchPart // most requests name one group
}

// fetchPart is one group of a request.
type fetchPart struct {
	call  *Call
	group string
	ev    group.Fetch
	reply group.Reply
	// refused are the explicitly named topics that the group is not asked for.
	// They stand behind the others in the response.
	refused []group.FetchedTopic
	asked   bool
	oneAsk  [1]group.FetchTopic
}

func (h *Handlers) offsetFetch(c *Call) {
	req := c.Msg.(*kmsg.OffsetFetchRequest)
	fc := &fetchCall{call: c, h: h}
	if c.Version < 8 {
		fc.parts = fc.onePart[:]
		h.fetchOne(c, req, &fc.parts[0])
	} else {
		fc.parts = fc.onePart[:]
		if len(req.Groups) != 1 {
			fc.parts = make([]fetchPart, len(req.Groups))
		}
		for i := range req.Groups {
			h.fetchGroup(c, req, &req.Groups[i], &fc.parts[i])
		}
	}
	asked := 0
	for i := range fc.parts {
		if fc.parts[i].asked {
			asked++
		}
	}
	if asked == 0 {
		c.Respond(fc.Build())
		return
	}
	c.AwaitBuilder(asked, fc)
	for i := range fc.parts {
		if p := &fc.parts[i]; p.asked {
			h.Groups.Submit(c.Context(), p.group, &p.ev, p)
		}
	}
}

// begin makes the check of a group that comes before its topics.
func (h *Handlers) beginFetch(c *Call, req *kmsg.OffsetFetchRequest, id string, p *fetchPart) bool {
	p.call, p.group = c, id
	p.ev.RequireStable = req.RequireStable
	p.asked = h.allowed(c, OpDescribe, ResourceGroup, id)
	if !p.asked {
		p.reply.Code = group.Code(kerr.GroupAuthorizationFailed.Code)
	}
	return p.asked
}

// fetchOne reads the group of versions 1 to 7.
func (h *Handlers) fetchOne(c *Call, req *kmsg.OffsetFetchRequest, p *fetchPart) {
	if !h.beginFetch(c, req, req.Group, p) {
		return
	}
	if p.ev.All = req.Topics == nil; p.ev.All {
		return
	}
	p.ev.Topics = p.oneAsk[:0]
	if len(req.Topics) > 1 {
		p.ev.Topics = make([]group.FetchTopic, 0, len(req.Topics))
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		h.fetchTopic(c, p, group.FetchTopic{Name: t.Topic, Partitions: t.Partitions})
	}
}

// fetchGroup reads one group of versions 8 to 10.
func (h *Handlers) fetchGroup(c *Call, req *kmsg.OffsetFetchRequest, g *kmsg.OffsetFetchRequestGroup, p *fetchPart) {
	if !h.beginFetch(c, req, g.Group, p) {
		return
	}
	if p.ev.All = g.Topics == nil; p.ev.All {
		return
	}
	p.ev.Topics = p.oneAsk[:0]
	if len(g.Topics) > 1 {
		p.ev.Topics = make([]group.FetchTopic, 0, len(g.Topics))
	}
	for i := range g.Topics {
		t := &g.Topics[i]
		ask := group.FetchTopic{Name: t.Topic, ID: t.TopicID, Partitions: t.Partitions}
		if c.Version >= 10 {
			name, ok := h.Topics.ByID(t.TopicID)
			if !ok {
				p.refuse(ask, kerr.UnknownTopicID.Code)
				continue
			}
			ask.Name = name
		}
		h.fetchTopic(c, p, ask)
	}
}

// fetchTopic asks for an explicitly named topic. Whether it exists does not
// matter: offsets that are not there are -1 without an error.
func (h *Handlers) fetchTopic(c *Call, p *fetchPart, ask group.FetchTopic) {
	if !h.allowed(c, OpDescribe, ResourceTopic, ask.Name) {
		p.refuse(ask, kerr.TopicAuthorizationFailed.Code)
		return
	}
	p.ev.Topics = append(p.ev.Topics, ask)
}

func (p *fetchPart) refuse(ask group.FetchTopic, code int16) {
	p.refused = append(p.refused, emptyTopic(ask.Name, ask.ID, ask.Partitions, group.Code(code)))
}

// emptyTopic answers for partitions that have a code instead of an offset.
func emptyTopic(name string, id group.TopicID, partitions []int32, code group.Code) group.FetchedTopic {
	t := group.FetchedTopic{Name: name, ID: id, Partitions: make([]group.FetchedPartition, len(partitions))}
	for i, n := range partitions {
		t.Partitions[i] = group.FetchedPartition{Partition: n, Code: code, Offset: -1, LeaderEpoch: -1}
	}
	return t
}

// Reply implements shard.Sink.
func (p *fetchPart) Reply(r group.Reply) {
	p.reply = r
	p.call.Done()
}

// Build implements [Builder].
func (fc *fetchCall) Build() kmsg.Response {
	resp := &kmsg.OffsetFetchResponse{Version: fc.call.Version}
	if resp.Version < 8 {
		fc.buildOne(resp, &fc.parts[0])
		return resp
	}
	resp.Groups = make([]kmsg.OffsetFetchResponseGroup, len(fc.parts))
	for i := range fc.parts {
		p := &fc.parts[i]
		g := &resp.Groups[i]
		g.Group, g.ErrorCode = p.group, int16(p.reply.Code)
		if p.reply.Code == group.None {
			fc.fillGroup(g, fc.topics(p))
		}
	}
	return resp
}

// topics returns what one group answers, refused topics last.
func (fc *fetchCall) topics(p *fetchPart) []group.FetchedTopic {
	body, ok := p.reply.Body.(*group.FetchReply)
	if !ok {
		return p.refused
	}
	topics := body.Topics
	if p.ev.All {
		topics = fc.visible(topics)
	}
	if len(p.refused) == 0 {
		return topics
	}
	return append(append(make([]group.FetchedTopic, 0, len(topics)+len(p.refused)), topics...), p.refused...)
}

// visible keeps of all topics those that the client may see and, where they go by
// id, those that have one.
func (fc *fetchCall) visible(all []group.FetchedTopic) []group.FetchedTopic {
	topics := make([]group.FetchedTopic, 0, len(all))
	for _, t := range all {
		if !fc.h.allowed(fc.call, OpDescribe, ResourceTopic, t.Name) {
			continue
		}
		if fc.call.Version >= 10 {
			id, _, ok := fc.h.Topics.Lookup(t.Name)
			if !ok {
				continue
			}
			t.ID = id
		}
		topics = append(topics, t)
	}
	return topics
}

// buildOne fills the response of versions 1 to 7. Version 1 has no error of the
// whole, so each partition that was asked for has it (KAFKA-19246).
func (fc *fetchCall) buildOne(resp *kmsg.OffsetFetchResponse, p *fetchPart) {
	topics := fc.topics(p)
	if code := p.reply.Code; code != group.None {
		topics = nil
		if resp.Version >= 2 {
			resp.ErrorCode = int16(code)
			return
		}
		for _, t := range fc.call.Msg.(*kmsg.OffsetFetchRequest).Topics {
			topics = append(topics, emptyTopic(t.Topic, group.TopicID{}, t.Partitions, code))
		}
	}
	slab := make([]kmsg.OffsetFetchResponseTopicPartition, fetchedCount(topics))
	resp.Topics = make([]kmsg.OffsetFetchResponseTopic, len(topics))
	for i := range topics {
		t := &topics[i]
		n := len(t.Partitions)
		for j := range t.Partitions {
			f := &t.Partitions[j]
			slab[j] = kmsg.OffsetFetchResponseTopicPartition{
				Partition: f.Partition, Offset: f.Offset, LeaderEpoch: f.LeaderEpoch, Metadata: &f.Metadata, ErrorCode: int16(f.Code),
			}
		}
		resp.Topics[i] = kmsg.OffsetFetchResponseTopic{Topic: t.Name, Partitions: slab[:n:n]}
		slab = slab[n:]
	}
}

// fillGroup fills one group of versions 8 to 10.
func (fc *fetchCall) fillGroup(g *kmsg.OffsetFetchResponseGroup, topics []group.FetchedTopic) {
	slab := make([]kmsg.OffsetFetchResponseGroupTopicPartition, fetchedCount(topics))
	g.Topics = make([]kmsg.OffsetFetchResponseGroupTopic, len(topics))
	for i := range topics {
		t := &topics[i]
		n := len(t.Partitions)
		for j := range t.Partitions {
			f := &t.Partitions[j]
			slab[j] = kmsg.OffsetFetchResponseGroupTopicPartition{
				Partition: f.Partition, Offset: f.Offset, LeaderEpoch: f.LeaderEpoch, Metadata: &f.Metadata, ErrorCode: int16(f.Code),
			}
		}
		g.Topics[i] = kmsg.OffsetFetchResponseGroupTopic{Topic: t.Name, TopicID: t.ID, Partitions: slab[:n:n]}
		slab = slab[n:]
	}
}

func fetchedCount(topics []group.FetchedTopic) (n int) {
	for i := range topics {
		n += len(topics[i].Partitions)
	}
	return n
}
