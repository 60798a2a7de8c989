package api

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeConfigs, key 32, versions 1 to 4: version 1 has sources and synonyms
// (KIP-226), 3 types and documentation (KIP-569; there is none), 4 is flexible.
// Topics, the node itself and groups can be described; of the node's loggers there is
// nothing to say.
//
// Differs from Kafka: [no-config-documentation]; [fewer-configs]; [describe-no-loggers].

func (h *TopicHandlers) describeConfigs(c *Call) {
	req := c.Msg.(*kmsg.DescribeConfigsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	resp.Resources = make([]kmsg.DescribeConfigsResponseResource, len(req.Resources))
	for i := range req.Resources {
		rr, r := &req.Resources[i], &resp.Resources[i]
		r.Default()
		r.ResourceType, r.ResourceName = rr.ResourceType, rr.ResourceName
		r.Configs = []kmsg.DescribeConfigsResponseResourceConfig{}
		if fault := h.describe(c, rr, r); fault != nil {
			r.ErrorCode, r.ErrorMessage = int16(fault.Code), &fault.Message
			continue
		}
		r.ErrorMessage = new(string) // not null, says Kafka
		if !req.IncludeSynonyms {
			for j := range r.Configs {
				r.Configs[j].ConfigSynonyms = nil
			}
		}
	}
	c.Respond(resp)
}

func (h *TopicHandlers) describe(c *Call, rr *kmsg.DescribeConfigsRequestResource, r *kmsg.DescribeConfigsResponseResource) *topics.Refusal {
	switch rr.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		return h.describeTopic(c, rr, r)
	case kmsg.ConfigResourceTypeBroker:
		return h.describeBroker(c, rr, r)
	case kmsg.ConfigResourceTypeBrokerLogger:
		return h.describeLoggers(c, rr)
	case kmsg.ConfigResourceTypeGroupConfig:
		return h.describeGroupConfigs(c, rr, r)
	default:
		return refusal(kerr.InvalidRequest, kerr.InvalidRequest.Description)
	}
}

// wanted tells whether a key is asked for; without keys all are.
func wanted(rr *kmsg.DescribeConfigsRequestResource, name string) bool {
	return len(rr.ConfigNames) == 0 || slices.Contains(rr.ConfigNames, name)
}

func (h *TopicHandlers) describeTopic(c *Call, rr *kmsg.DescribeConfigsRequestResource, r *kmsg.DescribeConfigsResponseResource) *topics.Refusal {
	if !h.allowed(c, OpDescribeConfigs, ResourceTopic, rr.ResourceName) {
		return refusal(kerr.TopicAuthorizationFailed, kerr.TopicAuthorizationFailed.Description)
	}
	if msg := topics.CheckName(rr.ResourceName); msg != "" {
		return refusal(kerr.InvalidTopicException, "Topic name is invalid: "+msg)
	}
	topic := h.Log.Topic(rr.ResourceName)
	if topic == nil {
		return refusal(kerr.UnknownTopicOrPartition, "")
	}
	configs := topic.Configs()
	for i := range configs {
		if v := &configs[i]; wanted(rr, v.Name) {
			rc := describeValue(v)
			rc.ConfigSynonyms = h.topicSynonyms(v)
			r.Configs = append(r.Configs, rc)
		}
	}
	return nil
}

func sourceOf(v *topics.Value) kmsg.ConfigSource {
	switch {
	case v.FromTopic:
		return kmsg.ConfigSourceDynamicTopicConfig
	case v.FromBroker != "":
		return kmsg.ConfigSourceStaticBrokerConfig
	default:
		return kmsg.ConfigSourceDefaultConfig
	}
}

func describeValue(v *topics.Value) kmsg.DescribeConfigsResponseResourceConfig {
	rc := kmsg.NewDescribeConfigsResponseResourceConfig()
	value := v.Parsed()
	rc.Name, rc.Value = v.Name, &value
	rc.Source = sourceOf(v)
	rc.ConfigType = kmsg.ConfigType(v.Type)
	return rc
}

func (h *TopicHandlers) describeBroker(c *Call, rr *kmsg.DescribeConfigsRequestResource, r *kmsg.DescribeConfigsResponseResource) *topics.Refusal {
	if !h.allowed(c, OpDescribeConfigs, ResourceCluster, ClusterResource) {
		return refusal(kerr.ClusterAuthorizationFailed, kerr.ClusterAuthorizationFailed.Description)
	}
	if rr.ResourceName == "" {
		return nil // the cluster's dynamic defaults: there are none
	}
	id, err := strconv.ParseInt(rr.ResourceName, 10, 32)
	if err != nil {
		return refusal(kerr.InvalidRequest, "Broker id must be an integer, but it is: "+rr.ResourceName)
	}
	if node := h.Cluster.Get().NodeID; int32(id) != node {
		return refusal(kerr.InvalidRequest, fmt.Sprintf("Unexpected broker id, expected %d or empty string, but received %s", node, rr.ResourceName))
	}
	r.Configs = h.brokerConfigsOf(rr)
	return nil
}

// describeLoggers describes the node's loggers: their levels cannot be told from
// outside, so there are none.
func (h *TopicHandlers) describeLoggers(c *Call, rr *kmsg.DescribeConfigsRequestResource) *topics.Refusal {
	if !h.allowed(c, OpDescribeConfigs, ResourceCluster, ClusterResource) {
		return refusal(kerr.ClusterAuthorizationFailed, kerr.ClusterAuthorizationFailed.Description)
	}
	if rr.ResourceName == "" {
		return refusal(kerr.InvalidRequest, "Broker id must not be empty")
	}
	id, err := strconv.ParseInt(rr.ResourceName, 10, 32)
	if err != nil {
		return refusal(kerr.InvalidRequest, "Broker id must be an integer, but it is: "+rr.ResourceName)
	}
	if node := h.Cluster.Get().NodeID; int32(id) != node {
		return refusal(kerr.InvalidRequest, fmt.Sprintf("Unexpected broker id, expected %d but received %s", node, rr.ResourceName))
	}
	return nil
}

func (h *TopicHandlers) describeGroupConfigs(c *Call, rr *kmsg.DescribeConfigsRequestResource, r *kmsg.DescribeConfigsResponseResource) *topics.Refusal {
	if !h.allowed(c, OpDescribeConfigs, ResourceGroup, rr.ResourceName) {
		return refusal(kerr.GroupAuthorizationFailed, kerr.GroupAuthorizationFailed.Description)
	}
	if rr.ResourceName == "" {
		return refusal(kerr.InvalidRequest, "Group name must not be empty")
	}
	configs := h.Log.GroupConfigs(rr.ResourceName)
	for i := range configs {
		v := &configs[i]
		if !wanted(rr, v.Name) {
			continue
		}
		rc := describeValue(v)
		if v.FromTopic {
			rc.Source = kmsg.ConfigSourceGroupConfig
			rc.ConfigSynonyms = append(rc.ConfigSynonyms, synonym(v.Name, v.Parsed(), rc.Source))
		}
		// The gateway has none of these keys, so all that is below is the default.
		rc.ConfigSynonyms = append(rc.ConfigSynonyms, synonym(v.Broker[0], v.Default, kmsg.ConfigSourceDefaultConfig))
		r.Configs = append(r.Configs, rc)
	}
	return nil
}
