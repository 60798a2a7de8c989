package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Heartbeat, key 12, versions 0 to 4: version 1 has a throttle time, 3 a group
// instance id (KIP-345), 4 is flexible. Nothing is left out.

// heartbeatCall is all that one heartbeat needs: its event, sink and response.
type heartbeatCall struct {
	call *Call
	ev   group.Heartbeat
	resp kmsg.HeartbeatResponse
}

func (h *Handlers) heartbeat(c *Call) {
	req := c.Msg.(*kmsg.HeartbeatRequest)
	hc := &heartbeatCall{call: c, resp: kmsg.HeartbeatResponse{Version: c.Version}}
	if code := h.refusedGroup(c, OpRead, req.Group); code != 0 {
		hc.resp.ErrorCode = code
		c.Respond(&hc.resp)
		return
	}
	hc.ev.MemberID = req.MemberID
	hc.ev.InstanceID = req.InstanceID
	hc.ev.Generation = req.Generation
	c.AwaitBuilder(1, hc)
	h.Groups.Submit(c.Context(), req.Group, &hc.ev, hc)
}

// Reply implements shard.Sink.
func (hc *heartbeatCall) Reply(r group.Reply) {
	hc.resp.ErrorCode = int16(r.Code)
	hc.call.Done()
}

// Build implements [Builder].
func (hc *heartbeatCall) Build() kmsg.Response { return &hc.resp }
