package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeCluster, key 60, versions 0 to 2 (KIP-700): version 1 says whether brokers or
// controllers are meant (KIP-919), 2 includes fenced brokers, which there are none of
// (KIP-1073).

// Kinds of endpoints.
const brokerEndpoint, controllerEndpoint = 1, 2

func (h *TopicHandlers) describeCluster(c *Call) {
	req := c.Msg.(*kmsg.DescribeClusterRequest)
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	resp.Default()
	resp.Brokers = []kmsg.DescribeClusterResponseBroker{}
	switch {
	case req.EndpointType == controllerEndpoint && c.Version > 0:
		resp.ErrorCode = kerr.MismatchedEndpointType.Code
		resp.ErrorMessage = nullable("The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER")
	case req.EndpointType != brokerEndpoint && c.Version > 0:
		resp.ErrorCode = kerr.UnsupportedEndpointType.Code
		resp.ErrorMessage = nullable(fmt.Sprintf("Unsupported endpoint type %d", req.EndpointType))
	default:
		h.brokersOf(c, resp)
		if req.IncludeClusterAuthorizedOperations {
			resp.ClusterAuthorizedOperations = h.operations(c, ResourceCluster, ClusterResource, clusterOperations)
		}
	}
	c.Respond(resp)
}

// brokersOf tells the nodes that can be reached through the listener of the request.
func (h *TopicHandlers) brokersOf(c *Call, resp *kmsg.DescribeClusterResponse) {
	cluster := h.Cluster.Get()
	resp.ClusterID, resp.ControllerID = cluster.ID, cluster.ControllerID
	for _, b := range cluster.Brokers(c.Session.Listener) {
		rb := kmsg.NewDescribeClusterResponseBroker()
		rb.NodeID, rb.Host, rb.Port, rb.Rack = b.ID, b.Host, b.Port, b.Rack
		resp.Brokers = append(resp.Brokers, rb)
	}
}
