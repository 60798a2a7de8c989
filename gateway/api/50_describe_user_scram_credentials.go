package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeUserScramCredentials, key 50, version 0 (KIP-554). No user has a password, so
// none is found.

func (h *TopicHandlers) describeUserSCRAMCredentials(c *Call) {
	req := c.Msg.(*kmsg.DescribeUserSCRAMCredentialsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeUserSCRAMCredentialsResponse)
	if !h.allowed(c, OpDescribe, ResourceCluster, ClusterResource) {
		resp.ErrorCode, resp.ErrorMessage = kerr.ClusterAuthorizationFailed.Code, &kerr.ClusterAuthorizationFailed.Description
		c.Respond(resp)
		return
	}
	resp.ErrorMessage = new(string) // not null, says Kafka
	for _, u := range onceEach(req.Users, func(u *kmsg.DescribeUserSCRAMCredentialsRequestUser) string { return u.Name }) {
		r := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
		r.User = u.item.Name
		message := "Attempt to describe a user credential that does not exist: " + r.User
		r.ErrorCode = kerr.ResourceNotFound.Code
		if u.times > 1 {
			message = "Cannot describe SCRAM credentials for the same user twice in a single request: " + r.User
			r.ErrorCode = kerr.DuplicateResource.Code
		}
		r.ErrorMessage = &message
		resp.Results = append(resp.Results, r)
	}
	c.Respond(resp)
}
