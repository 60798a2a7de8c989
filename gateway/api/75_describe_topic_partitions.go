package api

import (
	"slices"

	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeTopicPartitions, key 75, version 0 (KIP-966): topics by name, so many
// partitions at a time, from a cursor on.

// partitionsPerDescribeMax bounds the partitions of an answer, as
// max.request.partition.size.limit does in Kafka by default.
const partitionsPerDescribeMax = 2000

func (h *TopicHandlers) describeTopicPartitions(c *Call) {
	req := c.Msg.(*kmsg.DescribeTopicPartitionsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeTopicPartitionsResponse)
	resp.Topics = []kmsg.DescribeTopicPartitionsResponseTopic{}
	names := h.namesToDescribe(req)
	first := int32(0)
	if at := req.Cursor; at != nil {
		from, found := slices.BinarySearch(names, at.Topic)
		if at.Partition < 0 || !found && len(req.Topics) > 0 {
			refuseAllTopics(req, resp)
			c.Respond(resp)
			return
		}
		if names = names[from:]; found {
			first = at.Partition
		}
	}
	room := max(1, min(int(req.ResponsePartitionLimit), partitionsPerDescribeMax))
	for _, name := range names {
		if !h.allowed(c, OpDescribe, ResourceTopic, name) {
			if len(req.Topics) > 0 {
				resp.Topics = append(resp.Topics, failedTopic(name, kerr.TopicAuthorizationFailed.Code))
			}
			continue
		}
		if room == 0 {
			resp.NextCursor = &kmsg.DescribeTopicPartitionsResponseNextCursor{Topic: name, Partition: first}
			break
		}
		t := h.describePartitions(name, int(first), room)
		t.AuthorizedOperations = h.operations(c, ResourceTopic, name, topicOperations)
		resp.Topics = append(resp.Topics, t)
		room -= len(t.Partitions)
		if next := first + int32(len(t.Partitions)); t.ErrorCode == 0 && int(next) < len(h.partitionsOf(name)) {
			resp.NextCursor = &kmsg.DescribeTopicPartitionsResponseNextCursor{Topic: name, Partition: next}
			break
		}
		first = 0
	}
	c.Respond(resp)
}

// namesToDescribe are the names that are asked for, else all, in order and once each.
func (h *TopicHandlers) namesToDescribe(req *kmsg.DescribeTopicPartitionsRequest) (names []string) {
	for i := range req.Topics {
		names = append(names, req.Topics[i].Topic)
	}
	if len(names) == 0 {
		for _, t := range h.Log.All() {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func failedTopic(name string, code int16) kmsg.DescribeTopicPartitionsResponseTopic {
	t := kmsg.NewDescribeTopicPartitionsResponseTopic()
	t.Topic, t.ErrorCode = &name, code
	t.Partitions = []kmsg.DescribeTopicPartitionsResponseTopicPartition{}
	return t
}

func refuseAllTopics(req *kmsg.DescribeTopicPartitionsRequest, resp *kmsg.DescribeTopicPartitionsResponse) {
	for i := range req.Topics {
		resp.Topics = append(resp.Topics, failedTopic(req.Topics[i].Topic, kerr.InvalidRequest.Code))
	}
}

func (h *TopicHandlers) partitionsOf(name string) []*topics.Partition {
	if t := h.Log.Topic(name); t != nil {
		return t.Partitions()
	}
	return nil
}

// describePartitions describes a topic with at most so many partitions from first on.
func (h *TopicHandlers) describePartitions(name string, first, most int) kmsg.DescribeTopicPartitionsResponseTopic {
	if topics.CheckName(name) != "" {
		return failedTopic(name, kerr.InvalidTopicException.Code)
	}
	topic := h.Log.Topic(name)
	if topic == nil {
		return failedTopic(name, kerr.UnknownTopicOrPartition.Code)
	}
	t := failedTopic(name, 0)
	t.TopicID, t.IsInternal = topic.ID, topics.Reserved(name)
	node := []int32{h.Cluster.Get().NodeID}
	parts := topic.Partitions()
	parts = parts[min(first, len(parts)):]
	for _, p := range parts[:min(most, len(parts))] {
		rp := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
		rp.Partition, rp.LeaderID, rp.LeaderEpoch = p.Index, node[0], p.LeaderEpoch()
		rp.Replicas, rp.ISR = node, node
		rp.EligibleLeaderReplicas, rp.LastKnownELR = []int32{}, []int32{}
		t.Partitions = append(t.Partitions, rp)
	}
	return t
}
