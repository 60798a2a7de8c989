package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeAcls, key 29, versions 1 to 3: version 1 has patterns (KIP-290), 2 is
// flexible, 3 knows user resources. There is no authorizer with access lists, and as
// Kafka without one this says so.

func (h *TopicHandlers) describeACLs(c *Call) {
	resp := c.Msg.ResponseKind().(*kmsg.DescribeACLsResponse)
	if !h.allowed(c, OpDescribe, ResourceCluster, ClusterResource) {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
	} else {
		resp.ErrorCode, resp.ErrorMessage = kerr.SecurityDisabled.Code, nullable("No Authorizer is configured on the broker")
	}
	c.Respond(resp)
}
