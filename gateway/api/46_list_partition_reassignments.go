package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListPartitionReassignments, key 46, version 0 (KIP-455). Nothing can be reassigned on
// one node, so nothing is under way.

func (h *TopicHandlers) listPartitionReassignments(c *Call) {
	resp := c.Msg.ResponseKind().(*kmsg.ListPartitionReassignmentsResponse)
	if !h.allowed(c, OpDescribe, ResourceCluster, ClusterResource) {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
	}
	c.Respond(resp)
}
