package api

import (
	"fmt"

	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CreatePartitions, key 37, versions 0 to 3: version 2 is flexible, 3 may answer
// THROTTLING_QUOTA_EXCEEDED. The timeout is not looked at: partitions are there as
// soon as they are durable.

func (h *TopicHandlers) createPartitions(c *Call) {
	req := c.Msg.(*kmsg.CreatePartitionsRequest)
	resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	asked := onceEach(req.Topics, func(t *kmsg.CreatePartitionsRequestTopic) string { return t.Topic })
	resp.Topics = make([]kmsg.CreatePartitionsResponseTopic, len(asked))
	c.Await(len(asked)+1, func() kmsg.Response { return resp })
	for i, a := range asked {
		t := &resp.Topics[i]
		t.Topic = a.item.Topic
		topic, r := h.topicToGrow(c, a.item)
		if a.times > 1 {
			r = refusal(kerr.InvalidRequest, "Duplicate topic name.")
		}
		if r == nil && req.ValidateOnly {
			r = h.Log.CheckGrow(topic, a.item.Count)
		}
		if r != nil || req.ValidateOnly {
			if r != nil {
				t.ErrorCode, t.ErrorMessage = int16(r.Code), nullable(r.Message)
			}
			c.Done()
			continue
		}
		h.Log.Grow(topic, a.item.Count, func(r *topics.Refusal, err error) {
			if t.ErrorCode = codeFor(err); r != nil {
				t.ErrorCode, t.ErrorMessage = int16(r.Code), nullable(r.Message)
			}
			c.Done()
		})
	}
	c.Done()
}

func (h *TopicHandlers) topicToGrow(c *Call, rt *kmsg.CreatePartitionsRequestTopic) (*topics.Topic, *topics.Refusal) {
	if !h.allowed(c, OpAlter, ResourceTopic, rt.Topic) {
		return nil, refusal(kerr.TopicAuthorizationFailed, "Authorization failed.")
	}
	if topics.Reserved(rt.Topic) {
		return nil, refusal(kerr.InvalidTopicException, "Names that begin with '__' are reserved for the gateway.")
	}
	topic := h.Log.Topic(rt.Topic)
	if topic == nil {
		return nil, refusal(kerr.UnknownTopicOrPartition, "")
	}
	if r := h.Log.CheckGrow(topic, rt.Count); r != nil {
		return nil, r
	}
	if int(rt.Count)-len(topic.Partitions()) > partitionsPerRequestMax {
		return nil, refusal(kerr.PolicyViolation, "Excessively large number of partitions per request.")
	}
	if rt.Assignment == nil {
		return topic, nil
	}
	if more := int(rt.Count) - len(topic.Partitions()); more != len(rt.Assignment) {
		return nil, refusal(kerr.InvalidReplicaAssignment, fmt.Sprintf(
			"Attempted to add %d additional partition(s), but only %d assignment(s) were specified.", more, len(rt.Assignment)))
	}
	for i := range rt.Assignment {
		if r := h.checkReplicas(rt.Assignment[i].Replicas); r != nil {
			return nil, r
		}
	}
	return topic, nil
}
