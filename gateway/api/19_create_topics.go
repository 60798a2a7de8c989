package api

import (
	"fmt"

	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CreateTopics, key 19, versions 2 to 7: version 4 takes -1 for default numbers, 5
// is flexible and answers what was created (KIP-525), 6 may answer
// THROTTLING_QUOTA_EXCEEDED, 7 has topic ids. The timeout is not looked at: a topic
// is there as soon as it is durable.

// partitionsPerRequestMax bounds the partitions that one request creates, as in
// Kafka.
const partitionsPerRequestMax = 10_000

func (h *TopicHandlers) createTopics(c *Call) {
	req := c.Msg.(*kmsg.CreateTopicsRequest)
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	asked := onceEach(req.Topics, func(t *kmsg.CreateTopicsRequestTopic) string { return t.Topic })
	resp.Topics = make([]kmsg.CreateTopicsResponseTopic, len(asked))
	c.Await(len(asked)+1, func() kmsg.Response { return resp })
	room := int32(partitionsPerRequestMax)
	for i, a := range asked {
		t := &resp.Topics[i]
		t.Default()
		t.Topic = a.item.Topic
		t.NumPartitions, t.ReplicationFactor = -1, -1
		t.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
		if a.times > 1 {
			refuseTopic(t, kerr.InvalidRequest.Code, "Duplicate topic name.")
			c.Done()
			continue
		}
		h.createTopic(c, req.ValidateOnly, a.item, t, &room)
	}
	c.Done()
}

func refuseTopic(t *kmsg.CreateTopicsResponseTopic, code int16, message string) {
	t.ErrorCode, t.ErrorMessage = code, nullable(message)
}

// createTopic creates one topic and reports it done. room is how many partitions the
// request may still create.
func (h *TopicHandlers) createTopic(c *Call, only bool, rt *kmsg.CreateTopicsRequestTopic, t *kmsg.CreateTopicsResponseTopic, room *int32) {
	n, r := h.newTopic(c, rt)
	if r == nil && n.Partitions > *room {
		r = refusal(kerr.PolicyViolation, "Excessively large number of partitions per request.")
	}
	if r == nil {
		*room -= max(n.Partitions, 0)
	}
	if r == nil && only {
		if r = h.Log.CheckCreate(n); r == nil {
			t.TopicID = h.Log.NewID() // Kafka, too, answers one that nobody will have
			h.created(t, n.Partitions, h.Log.Configs(n.Configs))
		}
	}
	if r != nil || only {
		if r != nil {
			refuseTopic(t, int16(r.Code), r.Message)
		}
		c.Done()
		return
	}
	h.Log.Create(n, func(topic *topics.Topic, r *topics.Refusal, err error) {
		switch {
		case err != nil:
			t.ErrorCode = codeFor(err)
		case r != nil:
			refuseTopic(t, int16(r.Code), r.Message)
		default:
			t.TopicID = topic.ID
			h.created(t, n.Partitions, topic.Configs())
		}
		c.Done()
	})
}

// newTopic makes a topic of what is asked for.
func (h *TopicHandlers) newTopic(c *Call, rt *kmsg.CreateTopicsRequestTopic) (topics.NewTopic, *topics.Refusal) {
	n := topics.NewTopic{Name: rt.Topic, Partitions: rt.NumPartitions}
	if !h.allowed(c, OpCreate, ResourceCluster, ClusterResource) && !h.allowed(c, OpCreate, ResourceTopic, rt.Topic) {
		return n, refusal(kerr.TopicAuthorizationFailed, "Authorization failed.")
	}
	if h.Log.CheckName(rt.Topic) != nil {
		return n, nil // the log refuses it, when what it rests on is durable
	}
	for i := range rt.Configs {
		rc := &rt.Configs[i]
		if rc.Value == nil {
			return n, refusal(kerr.InvalidConfig, "Null value not supported for topic configs: "+rc.Name)
		}
		n.Configs = setConfig(n.Configs, rc.Name, *rc.Value)
	}
	if len(rt.ReplicaAssignment) > 0 {
		if rt.ReplicationFactor != -1 {
			return n, refusal(kerr.InvalidRequest, "A manual partition assignment was specified, but replication factor was not set to -1.")
		}
		if rt.NumPartitions != -1 {
			return n, refusal(kerr.InvalidRequest, "A manual partition assignment was specified, but numPartitions was not set to -1.")
		}
		n.Partitions = int32(len(rt.ReplicaAssignment))
		return n, h.checkAssignment(rt.ReplicaAssignment)
	}
	if r := h.checkReplication(int(rt.ReplicationFactor)); r != nil {
		return n, r
	}
	if n.Partitions == -1 {
		n.Partitions = h.Config.NumPartitions
	}
	return n, nil
}

// setConfig sets a configuration; of two values the last one counts.
func setConfig(configs []topics.Config, name, value string) []topics.Config {
	for i := range configs {
		if configs[i].Name == name {
			configs[i].Value = value
			return configs
		}
	}
	return append(configs, topics.Config{Name: name, Value: value})
}

// checkReplication allows the one replica that there is, and the default.
func (h *TopicHandlers) checkReplication(factor int) *topics.Refusal {
	switch {
	case factor == 1 || factor == -1:
		return nil
	case factor <= 0:
		return refusal(kerr.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value.")
	default:
		return refusal(kerr.InvalidReplicationFactor, fmt.Sprintf(
			"The target replication factor of %d cannot be reached because only 1 broker(s) are registered.", factor))
	}
}

func (h *TopicHandlers) checkAssignment(all []kmsg.CreateTopicsRequestTopicReplicaAssignment) *topics.Refusal {
	seen := make(map[int32]bool, len(all))
	for i := range all {
		a := &all[i]
		if seen[a.Partition] {
			return refusal(kerr.InvalidReplicaAssignment, fmt.Sprintf("Found multiple manual partition assignments for partition %d", a.Partition))
		}
		seen[a.Partition] = true
		if r := h.checkReplicas(a.Replicas); r != nil {
			return r
		}
	}
	for i := range all {
		if !seen[int32(i)] {
			return refusal(kerr.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
	}
	return nil
}

// checkReplicas allows the one node there is, once.
func (h *TopicHandlers) checkReplicas(replicas []int32) *topics.Refusal {
	if len(replicas) != 1 || replicas[0] != h.Cluster.Get().NodeID {
		return refusal(kerr.InvalidReplicaAssignment, "The manual partition assignment must name the one node that there is, once.")
	}
	return nil
}

// created tells what a topic is made of.
func (h *TopicHandlers) created(t *kmsg.CreateTopicsResponseTopic, partitions int32, configs []topics.Value) {
	t.NumPartitions, t.ReplicationFactor = partitions, 1
	t.Configs = make([]kmsg.CreateTopicsResponseTopicConfig, len(configs))
	for i := range configs {
		v := &configs[i]
		t.Configs[i] = kmsg.CreateTopicsResponseTopicConfig{Name: v.Name, Value: &v.Value, Source: int8(sourceOf(v))}
	}
}

func refusal(e *kerr.Error, message string) *topics.Refusal {
	return &topics.Refusal{Code: topics.Code(e.Code), Message: message}
}

// once is an item of a request, and how often its name occurs there.
type once[T any] struct {
	item  *T
	times int
}

// onceEach returns the items of different names, in the order of the request.
func onceEach[T any](items []T, name func(*T) string) []once[T] {
	all := make([]once[T], 0, len(items))
	index := make(map[string]int, len(items))
	for i := range items {
		key := name(&items[i])
		at, ok := index[key]
		if !ok {
			at = len(all)
			index[key] = at
			all = append(all, once[T]{item: &items[i]})
		}
		all[at].times++
	}
	return all
}
