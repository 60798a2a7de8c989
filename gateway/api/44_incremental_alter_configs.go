package api

import (
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// IncrementalAlterConfigs, key 44, versions 0 to 1 (KIP-339): version 1 is flexible.
// It changes single configurations of topics; those of the node can only be read.
//
// Differs from Kafka: [broker-configs-read-only]; [no-loggers]; [no-client-metrics].

func (h *TopicHandlers) incrementalAlterConfigs(c *Call) {
	req := c.Msg.(*kmsg.IncrementalAlterConfigsRequest)
	resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	all := make([]alteration, len(req.Resources))
	for i := range req.Resources {
		rr := &req.Resources[i]
		a := &all[i]
		a.kind, a.name = rr.ResourceType, rr.ResourceName
		for j := range rr.Configs {
			rc := &rr.Configs[j]
			a.add(topics.ConfigOp(rc.Op), rc.Name, rc.Value)
		}
	}
	resp.Resources = make([]kmsg.IncrementalAlterConfigsResponseResource, len(all))
	h.alterAll(c, all, req.ValidateOnly, resp, func(i int, code int16, message *string) {
		r := &resp.Resources[i]
		r.ResourceType, r.ResourceName = all[i].kind, all[i].name
		r.ErrorCode, r.ErrorMessage = code, message
	})
}
