package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// OffsetDelete, key 47, version 0 (KIP-496). Nothing is left out.

type offsetDeleteCall struct {
	call  *Call
	ev    group.DeleteOffsets
	reply group.Reply
	resp  kmsg.OffsetDeleteResponse
	at    map[string]int // topic -> index in resp.Topics
}

func (h *Handlers) offsetDelete(c *Call) {
	req := c.Msg.(*kmsg.OffsetDeleteRequest)
	dc := &offsetDeleteCall{call: c, resp: kmsg.OffsetDeleteResponse{Version: c.Version}, at: make(map[string]int)}
	// The group id may not be empty, but Kafka finds that out behind the topics,
	// whose answers an error of the whole drops.
	if code := h.refusedGroup(c, OpDelete, req.Group); code != 0 {
		dc.resp.ErrorCode = code
		c.Respond(&dc.resp)
		return
	}
	for i := range req.Topics {
		h.offsetDeleteTopic(c, dc, &req.Topics[i])
	}
	dc.ev.Client = clientOf(c)
	// The group is asked even if nothing is left: it may not exist.
	c.AwaitBuilder(1, dc)
	h.Groups.Submit(c.Context(), req.Group, &dc.ev, dc)
}

// offsetDeleteTopic answers for what does not exist and asks for the rest.
func (h *Handlers) offsetDeleteTopic(c *Call, dc *offsetDeleteCall, t *kmsg.OffsetDeleteRequestTopic) {
	_, partitions, exists := h.Topics.Lookup(t.Topic)
	code := kerr.UnknownTopicOrPartition.Code
	if !h.allowed(c, OpRead, ResourceTopic, t.Topic) {
		exists, code = false, kerr.TopicAuthorizationFailed.Code
	}
	if !exists {
		at := dc.topic(t.Topic)
		for _, p := range t.Partitions {
			dc.add(at, p.Partition, code)
		}
		return
	}
	var kept []int32
	for _, p := range t.Partitions {
		if uint32(p.Partition) < uint32(partitions) {
			kept = append(kept, p.Partition)
		} else {
			dc.add(dc.topic(t.Topic), p.Partition, code)
		}
	}
	if len(kept) > 0 {
		dc.ev.Topics = append(dc.ev.Topics, group.DeleteOffsetsTopic{Name: t.Topic, Partitions: kept})
	}
}

// topic returns where the response has a topic, at its end if it had not.
func (dc *offsetDeleteCall) topic(name string) int {
	at, ok := dc.at[name]
	if !ok {
		at = dc.newTopic(name)
		dc.at[name] = at
	}
	return at
}

func (dc *offsetDeleteCall) newTopic(name string) int {
	dc.resp.Topics = append(dc.resp.Topics, kmsg.OffsetDeleteResponseTopic{Topic: name})
	return len(dc.resp.Topics) - 1
}

func (dc *offsetDeleteCall) add(topic int, partition int32, code int16) {
	out := &dc.resp.Topics[topic]
	out.Partitions = append(out.Partitions, kmsg.OffsetDeleteResponseTopicPartition{Partition: partition, ErrorCode: code})
}

// Reply implements shard.Sink.
func (dc *offsetDeleteCall) Reply(r group.Reply) {
	dc.reply = r
	dc.call.Done()
}

// Build implements [Builder]: what the group said follows what was refused
// before, each topic once; with nothing refused topics are answered as they were
// named (OffsetDeleteResponse.Builder.merge).
func (dc *offsetDeleteCall) Build() kmsg.Response {
	if dc.reply.Code != group.None {
		return &kmsg.OffsetDeleteResponse{Version: dc.resp.Version, ErrorCode: int16(dc.reply.Code)}
	}
	body, ok := dc.reply.Body.(*group.DeleteOffsetsReply)
	find := dc.topic
	if len(dc.resp.Topics) == 0 {
		find = dc.newTopic
	}
	for i, t := range dc.ev.Topics {
		at := find(t.Name)
		for j, p := range t.Partitions {
			code := int16(0)
			if ok {
				code = int16(body.Codes[i][j])
			}
			dc.add(at, p, code)
		}
	}
	return &dc.resp
}
