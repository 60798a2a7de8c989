package api

import (
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AlterConfigs, key 33, versions 0 to 2: version 2 is flexible. It replaces all that a
// resource sets itself; who knows IncrementalAlterConfigs (KIP-339) sends that.
//
// Differs from Kafka: [replace-duplicates].

func (h *TopicHandlers) alterConfigs(c *Call) {
	req := c.Msg.(*kmsg.AlterConfigsRequest)
	resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	all := make([]alteration, len(req.Resources))
	for i := range req.Resources {
		rr := &req.Resources[i]
		a := &all[i]
		a.kind, a.name, a.Replace = rr.ResourceType, rr.ResourceName, true
		for j := range rr.Configs {
			a.add(topics.SetConfig, rr.Configs[j].Name, rr.Configs[j].Value)
		}
	}
	resp.Resources = make([]kmsg.AlterConfigsResponseResource, len(all))
	h.alterAll(c, all, req.ValidateOnly, resp, func(i int, code int16, message *string) {
		r := &resp.Resources[i]
		r.ResourceType, r.ResourceName = all[i].kind, all[i].name
		r.ErrorCode, r.ErrorMessage = code, message
	})
}
