package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// OffsetForLeaderEpoch, key 23, versions 2 to 4 (KIP-320): version 3 names the replica
// that asks, 4 is flexible. There is one leader epoch, so it ends where the log does.

func (h *TopicHandlers) offsetForLeaderEpoch(c *Call) {
	req := c.Msg.(*kmsg.OffsetForLeaderEpochRequest)
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	resp.Topics = make([]kmsg.OffsetForLeaderEpochResponseTopic, len(req.Topics))
	for i := range req.Topics {
		rt, t := &req.Topics[i], &resp.Topics[i]
		t.Topic = rt.Topic
		t.Partitions = make([]kmsg.OffsetForLeaderEpochResponseTopicPartition, len(rt.Partitions))
		for j := range rt.Partitions {
			p := &t.Partitions[j]
			p.Default()
			p.Partition, p.LeaderEpoch, p.EndOffset = rt.Partitions[j].Partition, -1, -1
			h.endOfEpoch(c, rt.Topic, &rt.Partitions[j], p)
		}
	}
	c.Respond(resp)
}

// endOfEpoch answers for one partition. An epoch before the first one, which is 0,
// ended where that began; of later ones nothing is known.
func (h *TopicHandlers) endOfEpoch(c *Call, topic string, rp *kmsg.OffsetForLeaderEpochRequestTopicPartition, p *kmsg.OffsetForLeaderEpochResponseTopicPartition) {
	if !h.allowed(c, OpDescribe, ResourceTopic, topic) {
		p.ErrorCode = kerr.TopicAuthorizationFailed.Code
		return
	}
	t := h.Log.Topic(topic)
	if t == nil || t.Partition(rp.Partition) == nil {
		p.ErrorCode = kerr.UnknownTopicOrPartition.Code
		return
	}
	part := t.Partition(rp.Partition)
	if p.ErrorCode = leaderEpochFault(part, rp.CurrentLeaderEpoch); p.ErrorCode != 0 {
		return
	}
	switch {
	case rp.LeaderEpoch == part.LeaderEpoch():
		p.LeaderEpoch, p.EndOffset = rp.LeaderEpoch, part.End()
	case rp.LeaderEpoch < -1:
		p.LeaderEpoch, p.EndOffset = rp.LeaderEpoch, part.Start()
	}
}
