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
	all := h.oncePerTopic(onceEach(asked, deleteKey))
	resp.Topics = make([]kmsg.DeleteTopicsResponseTopic, len(all))
	c.Await(len(all)+1, func() kmsg.Response { return resp })
	for i, a := range all {
		t := &resp.Topics[i]
		t.Topic, t.TopicID = a.item.Topic, a.item.TopicID
		if a.times > 1 {
			t.ErrorCode, t.ErrorMessage = kerr.InvalidRequest.Code, nullable("Duplicate topic name or id.")
			c.Done()
			continue
		}
		topic, r := h.topicToDelete(c, a.item, t)
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

// oncePerTopic makes one item of a topic that is named by its name and by its id.
func (h *TopicHandlers) oncePerTopic(all []once[kmsg.DeleteTopicsRequestTopic]) []once[kmsg.DeleteTopicsRequestTopic] {
	byID := map[topics.ID]int{}
	for i, a := range all {
		if a.item.Topic == nil {
			byID[a.item.TopicID] = i
		}
	}
	drop := map[int]bool{}
	for i, a := range all {
		if a.item.Topic == nil || a.item.TopicID != (topics.ID{}) {
			continue
		}
		topic := h.Log.Topic(*a.item.Topic)
		if topic == nil {
			continue
		}
		if other, ok := byID[topic.ID]; ok {
			drop[other] = true
			all[i] = once[kmsg.DeleteTopicsRequestTopic]{times: 2,
				item: &kmsg.DeleteTopicsRequestTopic{Topic: a.item.Topic, TopicID: topic.ID}}
		}
	}
	kept := all[:0]
	for i, a := range all {
		if !drop[i] {
			kept = append(kept, a)
		}
	}
	return kept
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
	if rt.Topic == nil && rt.TopicID == (topics.ID{}) {
		return nil, refusal(kerr.InvalidRequest, "Neither topic name nor id were specified.")
	}
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
