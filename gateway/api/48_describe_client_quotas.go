package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeClientQuotas, key 48, versions 0 to 1 (KIP-546): version 1 is flexible. No
// client has a quota, so nothing is found.

func (h *TopicHandlers) describeClientQuotas(c *Call) {
	req := c.Msg.(*kmsg.DescribeClientQuotasRequest)
	resp := req.ResponseKind().(*kmsg.DescribeClientQuotasResponse)
	code, message := h.refusedQuotas(c, req)
	resp.ErrorCode, resp.ErrorMessage = code, &message
	if code == 0 {
		resp.Entries = []kmsg.DescribeClientQuotasResponseEntry{}
	}
	c.Respond(resp)
}

// refusedQuotas checks the filter, in the order and words of Kafka's
// ClientQuotasImage.
func (h *TopicHandlers) refusedQuotas(c *Call, req *kmsg.DescribeClientQuotasRequest) (code int16, message string) {
	if !h.allowed(c, OpDescribeConfigs, ResourceCluster, ClusterResource) {
		return kerr.ClusterAuthorizationFailed.Code, kerr.ClusterAuthorizationFailed.Description
	}
	seen := map[string]bool{}
	for i := range req.Components {
		rc := &req.Components[i]
		switch {
		case rc.EntityType == "":
			return kerr.InvalidRequest.Code, "Invalid empty entity type."
		case seen[rc.EntityType]:
			return kerr.InvalidRequest.Code, fmt.Sprintf("Entity type %s cannot appear more than once in the filter.", rc.EntityType)
		case rc.EntityType != "user" && rc.EntityType != "client-id" && rc.EntityType != "ip":
			return kerr.UnsupportedVersion.Code, "Unsupported entity type " + rc.EntityType
		case rc.MatchType < 0 || rc.MatchType > 2:
			return kerr.InvalidRequest.Code, fmt.Sprintf("Unknown match type %d", rc.MatchType)
		}
		seen[rc.EntityType] = true
	}
	if seen["ip"] && len(seen) > 1 {
		return kerr.InvalidRequest.Code, "Invalid entity filter component combination." +
			" IP filter component should not be used with user or clientId filter component."
	}
	return 0, ""
}
