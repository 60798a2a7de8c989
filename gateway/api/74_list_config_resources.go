package api

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListConfigResources, key 74, versions 0 to 1: version 0 is ListClientMetricsResources
// (KIP-714), version 1 lists all kinds of resources that can have configurations
// (KIP-1142), whether they set any or not; but of groups those that do.
//
// Differs from Kafka: [no-client-metrics-listed].

func (h *TopicHandlers) listConfigResources(c *Call) {
	req := c.Msg.(*kmsg.ListConfigResourcesRequest)
	resp := req.ResponseKind().(*kmsg.ListConfigResourcesResponse)
	resp.ConfigResources = []kmsg.ListConfigResourcesResponseConfigResource{}
	kinds := req.ResourceTypes
	if c.Version == 0 {
		kinds = []int8{int8(kmsg.ConfigResourceTypeClientMetrics)}
	} else if len(kinds) == 0 {
		kinds = []int8{2, 4, 8, 16, 32}
	}
	switch {
	case !h.allowed(c, OpDescribeConfigs, ResourceCluster, ClusterResource):
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
	case slices.ContainsFunc(kinds, func(kind int8) bool { _, ok := h.configResources(kind); return !ok }):
		resp.ErrorCode = kerr.UnsupportedVersion.Code
	default:
		slices.Sort(kinds)
		for _, kind := range slices.Compact(kinds) {
			names, _ := h.configResources(kind)
			for _, name := range names {
				resp.ConfigResources = append(resp.ConfigResources, kmsg.ListConfigResourcesResponseConfigResource{Name: name, Type: kind})
			}
		}
	}
	c.Respond(resp)
}

// configResources are the names of one kind; false if there is no such kind.
func (h *TopicHandlers) configResources(kind int8) (names []string, ok bool) {
	switch kmsg.ConfigResourceType(kind) {
	case kmsg.ConfigResourceTypeTopic:
		for _, t := range h.Log.All() {
			names = append(names, t.Name)
		}
	case kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger:
		for _, n := range h.Cluster.Get().Nodes {
			names = append(names, strconv.Itoa(int(n.ID)))
		}
	case kmsg.ConfigResourceTypeClientMetrics:
	case kmsg.ConfigResourceTypeGroupConfig:
		names = h.Log.ConfiguredGroups()
	default:
		return nil, false
	}
	return names, true
}
