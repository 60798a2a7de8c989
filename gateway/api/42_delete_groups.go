package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteGroups, key 42, versions 0 to 3: version 2 is flexible, 3 has error
// messages, which are null for every error there is here.
//
// Differs from Kafka: [delete-in-order].

type deleteCall struct {
	call  *Call
	parts []deletePart
}

type deletePart struct {
	call  *Call
	group string
	ev    group.DeleteGroup
	code  group.Code
	asked bool
}

func (h *Handlers) deleteGroups(c *Call) {
	req := c.Msg.(*kmsg.DeleteGroupsRequest)
	dc := &deleteCall{call: c, parts: make([]deletePart, 0, len(req.Groups))}
	seen := make(map[string]bool, len(req.Groups))
	asked := 0
	for _, id := range req.Groups {
		if seen[id] { // Kafka answers a group that is named twice once
			continue
		}
		seen[id] = true
		p := deletePart{call: c, group: id, asked: h.allowed(c, OpDelete, ResourceGroup, id)}
		if p.asked {
			p.ev.Client = clientOf(c)
			asked++
		} else {
			p.code = group.Code(kerr.GroupAuthorizationFailed.Code)
		}
		dc.parts = append(dc.parts, p)
	}
	if asked == 0 {
		c.Respond(dc.Build())
		return
	}
	c.AwaitBuilder(asked, dc)
	for i := range dc.parts {
		if p := &dc.parts[i]; p.asked {
			h.Groups.Submit(c.Context(), p.group, &p.ev, p)
		}
	}
}

// Reply implements shard.Sink.
func (p *deletePart) Reply(r group.Reply) {
	p.code = r.Code
	p.call.Done()
}

// Build implements [Builder].
func (dc *deleteCall) Build() kmsg.Response {
	resp := &kmsg.DeleteGroupsResponse{Version: dc.call.Version}
	resp.Groups = make([]kmsg.DeleteGroupsResponseGroup, len(dc.parts))
	for i := range dc.parts {
		p := &dc.parts[i]
		resp.Groups[i] = kmsg.DeleteGroupsResponseGroup{Group: p.group, ErrorCode: int16(p.code)}
	}
	return resp
}
