package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ElectLeaders, key 43, versions 0 to 2: version 1 has unclean elections (KIP-460), 2
// is flexible. The one replica leads, so no election is ever needed.

func (h *TopicHandlers) electLeaders(c *Call) {
	req := c.Msg.(*kmsg.ElectLeadersRequest)
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	allowed := h.allowed(c, OpAlter, ResourceCluster, ClusterResource)
	switch {
	case !allowed:
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
	case req.ElectionType != 0 && req.ElectionType != 1:
		resp.ErrorCode = kerr.InvalidRequest.Code
	case req.Topics == nil: // all: what needs no election is left out
		for _, t := range h.Log.All() {
			resp.Topics = append(resp.Topics, kmsg.ElectLeadersResponseTopic{Topic: t.Name})
		}
	}
	for i := range req.Topics {
		rt := &req.Topics[i]
		t := kmsg.ElectLeadersResponseTopic{Topic: rt.Topic}
		for _, index := range rt.Partitions {
			p := kmsg.ElectLeadersResponseTopicPartition{Partition: index}
			code, message := resp.ErrorCode, ""
			switch {
			case !allowed:
				message = kerr.ClusterAuthorizationFailed.Description
			case code != 0:
				message = fmt.Sprintf("Unknown election type %d", req.ElectionType)
			default:
				code, message = h.noElection(rt.Topic, index)
			}
			p.ErrorCode, p.ErrorMessage = code, &message
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	if c.Version == 0 {
		resp.ErrorCode = 0
	}
	c.Respond(resp)
}

// noElection tells why the leader of a partition is not elected.
func (h *TopicHandlers) noElection(topic string, index int32) (code int16, message string) {
	t := h.Log.Topic(topic)
	switch {
	case t == nil:
		return kerr.UnknownTopicOrPartition.Code, "No such topic as " + topic
	case t.Partition(index) == nil:
		return kerr.UnknownTopicOrPartition.Code, fmt.Sprintf("No such partition as %s-%d", topic, index)
	default:
		return kerr.ElectionNotNeeded.Code, "Leader election not needed for topic partition."
	}
}
