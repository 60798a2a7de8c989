package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/store/topics"
)

// DeleteRecords, key 21, versions 0 to 2: version 2 is flexible. Offset -1 is the
// high watermark. The timeout is not looked at: records are gone as soon as that is
// durable. Differs from Kafka: [delete-records-twice].

func (h *TopicHandlers) deleteRecords(c *Call) {
	req := c.Msg.(*kmsg.DeleteRecordsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteRecordsResponse)
	asked := make([]*kmsg.DeleteRecordsRequestTopic, 0, len(req.Topics))
	n := 0
	for i := range req.Topics {
		if rt := &req.Topics[i]; len(rt.Partitions) > 0 { // Kafka leaves the others out
			asked = append(asked, rt)
			n += len(rt.Partitions)
		}
	}
	resp.Topics = make([]kmsg.DeleteRecordsResponseTopic, len(asked))
	c.Await(n+1, func() kmsg.Response { return resp })
	for i, rt := range asked {
		t := &resp.Topics[i]
		t.Topic = rt.Topic
		topic, code := h.topicToCut(c, rt.Topic)
		t.Partitions = make([]kmsg.DeleteRecordsResponseTopicPartition, len(rt.Partitions))
		for j := range rt.Partitions {
			p := &t.Partitions[j]
			p.Partition, p.LowWatermark, p.ErrorCode = rt.Partitions[j].Partition, -1, code
			var part *topics.Partition
			if topic != nil {
				part = topic.Partition(p.Partition)
			}
			if part == nil {
				p.ErrorCode = max(code, kerr.UnknownTopicOrPartition.Code)
				c.Done()
				continue
			}
			h.Log.DeleteRecords(part, rt.Partitions[j].Offset, func(start int64, r *topics.Refusal, err error) {
				p.LowWatermark, p.ErrorCode = start, codeFor(err)
				if r != nil {
					p.ErrorCode = int16(r.Code)
				}
				c.Done()
			})
		}
	}
	c.Done()
}

// topicToCut finds a topic whose records the client may delete.
func (h *TopicHandlers) topicToCut(c *Call, name string) (*topics.Topic, int16) {
	if !h.allowed(c, OpDelete, ResourceTopic, name) {
		return nil, kerr.TopicAuthorizationFailed.Code
	}
	if topics.Reserved(name) {
		return nil, kerr.InvalidTopicException.Code
	}
	topic := h.Log.Topic(name)
	if topic == nil {
		return nil, kerr.UnknownTopicOrPartition.Code
	}
	return topic, 0
}
