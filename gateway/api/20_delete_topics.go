package api

import (
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteTopics, key 20, versions 1 to 6: version 4 is flexible, 5 has messages, 6
// names topics by name or by id. The timeout is not looked at: a topic is gone as
// soon as that is durable.

func (h *TopicHandlers) deleteTopics(c *Call) {
	req := c.Msg.(*kmsg.DeleteTopicsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	asked := req.Topics
	if c.Version < 6 {
		asked = make([]kmsg.DeleteTopicsRequestTopic, len(req.TopicNames))
		for i := range req.TopicNames {
			asked[i].Topic = &req.TopicNames[i]
		}
	}
	all := onceEach(asked, deleteKey)
	resp.Topics = make([]kmsg.DeleteTopicsResponseTopic, len(all))
	c.Await(len(all)+1, func() kmsg.Response { return resp })
	for i, a := range all {
		t := &resp.Topics[i]
		t.Topic, t.TopicID = a.item.Topic, a.item.TopicID
		topic, r := h.topicToDelete(c, a.item, t)
		if a.times > 1 {
			r = refusal(kerr.InvalidRequest, "Duplicate topic name or id.")
		}
		if r != nil {
			t.ErrorCode, t.ErrorMessage = int16(r.Code), nullable(r.Message)
			c.Done()
			continue
		}
		h.Log.Delete(topic, func(r *topics.Refusal, err error) {
			if t.ErrorCode = codeFor(err); r != nil {
				t.ErrorCode, t.ErrorMessage = int16(r.Code), nullable(r.Message)
			}
			c.Done()
		})
	}
	c.Done()
}

func deleteKey(t *kmsg.DeleteTopicsRequestTopic) string {
	if t.Topic != nil {
		return "n" + *t.Topic
	}
	return "i" + string(t.TopicID[:])
}

// topicToDelete finds the topic and fills in what the request did not name.
func (h *TopicHandlers) topicToDelete(c *Call, rt *kmsg.DeleteTopicsRequestTopic, t *kmsg.DeleteTopicsResponseTopic) (*topics.Topic, *topics.Refusal) {
	var topic *topics.Topic
	unknown := kerr.UnknownTopicOrPartition
	if rt.Topic == nil {
		topic, unknown = h.Log.TopicByID(rt.TopicID), kerr.UnknownTopicID
	} else {
		if rt.TopicID != [16]byte{} {
			return nil, refusal(kerr.InvalidRequest, "You may not specify both topic name and topic id.")
		}
		if topics.Reserved(*rt.Topic) {
			return nil, refusal(kerr.InvalidTopicException, "Names that begin with '__' are reserved for the gateway.")
		}
		topic = h.Log.Topic(*rt.Topic)
	}
	name := ""
	switch {
	case rt.Topic != nil:
		name = *rt.Topic
	case topic != nil:
		name = topic.Name
	}
	if (topic != nil || rt.Topic != nil) && !h.allowed(c, OpDelete, ResourceTopic, name) {
		return nil, refusal(kerr.TopicAuthorizationFailed, "Authorization failed.")
	}
	if topic == nil {
		return nil, refusal(unknown, unknown.Description)
	}
	t.Topic, t.TopicID = &topic.Name, topic.ID
	return topic, nil
}
