package api

import (
	"slices"

	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Metadata, key 3, versions 0 to 13: in version 0 an empty list is all topics, from
// 1 on it is none and null is all; 4 says whether topics may be created, 5 has
// offline replicas, 7 leader epochs, 8 authorized operations (of the cluster up to
// 10), 9 is flexible, 10 has topic ids (asked by id from 12 on), 13 an error of the
// whole for clients that should bootstrap again.

// authorizedOperationsUnset is the answer to who does not ask for them.
const authorizedOperationsUnset = -2147483648

func (h *TopicHandlers) metadata(c *Call) {
	req := c.Msg.(*kmsg.MetadataRequest)
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	cluster := h.Cluster.Get()
	for _, b := range cluster.Brokers(c.Session.Listener) {
		resp.Brokers = append(resp.Brokers, kmsg.MetadataResponseBroker{NodeID: b.ID, Host: b.Host, Port: b.Port, Rack: b.Rack})
	}
	resp.ClusterID = nullable(cluster.ID)
	resp.ControllerID = cluster.ControllerID
	resp.AuthorizedOperations = authorizedOperationsUnset
	if req.IncludeClusterAuthorizedOperations && c.Version <= 10 {
		resp.AuthorizedOperations = h.operations(c, ResourceCluster, ClusterResource, clusterOperations)
	}
	m := metadataCall{c: c, h: h, req: req, resp: resp, node: []int32{cluster.NodeID}}
	if req.Topics == nil || c.Version == 0 && len(req.Topics) == 0 {
		m.all()
	} else {
		m.named()
	}
	c.Respond(resp)
}

// metadataCall is one request.
type metadataCall struct {
	c    *Call
	h    *TopicHandlers
	req  *kmsg.MetadataRequest
	resp *kmsg.MetadataResponse
	// node is the one node that leads and replicates everything.
	node []int32
}

func (m *metadataCall) all() {
	for _, t := range m.h.Log.All() {
		if m.h.allowed(m.c, OpDescribe, ResourceTopic, t.Name) {
			m.add(t)
		}
	}
}

// named answers each topic once; those that do not exist come last, as in Kafka. As
// soon as one has an id, names do not count, also as in Kafka.
func (m *metadataCall) named() {
	ids := make(map[topics.ID]bool)
	names := make(map[string]bool, len(m.req.Topics))
	byID := slices.ContainsFunc(m.req.Topics, func(t kmsg.MetadataRequestTopic) bool { return t.TopicID != topics.ID{} })
	var missing []kmsg.MetadataResponseTopic
	for i := range m.req.Topics {
		t := &m.req.Topics[i]
		switch {
		case byID || t.Topic == nil:
			if !ids[t.TopicID] && (t.TopicID != topics.ID{} || !byID) {
				ids[t.TopicID] = true
				missing = m.byID(t.TopicID, missing)
			}
		case !names[*t.Topic]:
			names[*t.Topic] = true
			missing = m.byName(*t.Topic, missing)
		}
	}
	m.resp.Topics = append(m.resp.Topics, missing...)
}

func (m *metadataCall) byID(id topics.ID, missing []kmsg.MetadataResponseTopic) []kmsg.MetadataResponseTopic {
	t := m.h.Log.TopicByID(id)
	if t == nil || !m.h.allowed(m.c, OpDescribe, ResourceTopic, t.Name) {
		// Who may not see a topic does not learn that its id is one.
		rt := kmsg.NewMetadataResponseTopic()
		rt.TopicID, rt.ErrorCode = id, kerr.UnknownTopicID.Code
		return append(missing, rt)
	}
	m.add(t)
	return missing
}

func (m *metadataCall) byName(name string, missing []kmsg.MetadataResponseTopic) []kmsg.MetadataResponseTopic {
	rt := kmsg.NewMetadataResponseTopic()
	rt.Topic = &name
	if !m.h.allowed(m.c, OpDescribe, ResourceTopic, name) {
		rt.ErrorCode = kerr.TopicAuthorizationFailed.Code
		return append(missing, rt)
	}
	if t := m.h.Log.Topic(name); t != nil {
		m.add(t)
		return missing
	}
	rt.ErrorCode = m.h.missingTopic(m.c, m.req, name)
	rt.AuthorizedOperations = m.operations(name)
	return append(missing, rt)
}

// missingTopic creates a topic that is asked for, where that is wished, and returns
// the code for the answer. As in Kafka the topic is not there yet in this answer.
func (h *TopicHandlers) missingTopic(c *Call, req *kmsg.MetadataRequest, name string) int16 {
	if topics.CheckName(name) != "" {
		return kerr.InvalidTopicException.Code
	}
	allowed := c.Version < 4 || req.AllowAutoTopicCreation
	if !allowed || !h.Config.AutoCreate || topics.Reserved(name) {
		return kerr.UnknownTopicOrPartition.Code
	}
	if !h.allowed(c, OpCreate, ResourceCluster, ClusterResource) && !h.allowed(c, OpCreate, ResourceTopic, name) {
		return kerr.TopicAuthorizationFailed.Code
	}
	// If it cannot be created, the next answers go on saying that it is not there.
	n := topics.NewTopic{Name: name, Partitions: h.Config.NumPartitions}
	h.Log.Create(n, func(*topics.Topic, *topics.Refusal, error) {})
	return kerr.UnknownTopicOrPartition.Code
}

// operations returns what the session may do with a topic, if it asks.
func (m *metadataCall) operations(topic string) int32 {
	if !m.req.IncludeTopicAuthorizedOperations {
		return authorizedOperationsUnset
	}
	return m.h.operations(m.c, ResourceTopic, topic, topicOperations)
}

func (m *metadataCall) add(t *topics.Topic) {
	rt := kmsg.NewMetadataResponseTopic()
	rt.Topic, rt.TopicID = &t.Name, t.ID
	rt.IsInternal = topics.Reserved(t.Name)
	rt.AuthorizedOperations = m.operations(t.Name)
	parts := t.Partitions()
	rt.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(parts))
	for i, p := range parts {
		rp := &rt.Partitions[i]
		rp.Partition = p.Index
		rp.Leader, rp.LeaderEpoch = m.node[0], p.LeaderEpoch()
		rp.Replicas, rp.ISR = m.node, m.node
	}
	m.resp.Topics = append(m.resp.Topics, rt)
}

// Operations that Kafka reports of a cluster and of a topic.
var (
	clusterOperations = []Operation{OpCreate, OpAlter, OpDescribe, OpClusterAction, OpDescribeConfigs, OpAlterConfigs, OpIdempotentWrite}
	topicOperations   = []Operation{OpRead, OpWrite, OpCreate, OpDelete, OpAlter, OpDescribe, OpDescribeConfigs, OpAlterConfigs}
)

// operations returns the bits of the operations that the session may do.
func (h *TopicHandlers) operations(c *Call, kind Resource, name string, all []Operation) (bits int32) {
	for _, op := range all {
		if h.allowed(c, op, kind, name) {
			bits |= 1 << op
		}
	}
	return bits
}
