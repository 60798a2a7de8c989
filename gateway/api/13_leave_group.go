package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// LeaveGroup, key 13, versions 0 to 5: version 1 has a throttle time, 3 a list of
// members with group instance ids instead of one member (KIP-345), 4 is flexible,
// 5 has a reason (KIP-800). Nothing is left out.

type leaveCall struct {
	call  *Call
	req   *kmsg.LeaveGroupRequest
	ev    group.Leave
	reply group.Reply
}

func (h *Handlers) leaveGroup(c *Call) {
	req := c.Msg.(*kmsg.LeaveGroupRequest)
	if code := h.refusedGroup(c, OpRead, req.Group); code != 0 {
		c.Respond(&kmsg.LeaveGroupResponse{Version: c.Version, ErrorCode: code})
		return
	}
	lc := &leaveCall{call: c, req: req}
	lc.ev.Client = clientOf(c)
	if c.Version < 3 {
		lc.ev.Members = []group.LeaveMember{{MemberID: req.MemberID}}
	} else {
		lc.ev.Members = make([]group.LeaveMember, len(req.Members))
		for i := range req.Members {
			m := &req.Members[i]
			lc.ev.Members[i] = group.LeaveMember{MemberID: m.MemberID, InstanceID: m.InstanceID, Reason: reasonOf(m.Reason)}
		}
	}
	c.AwaitBuilder(1, lc)
	h.Groups.Submit(c.Context(), req.Group, &lc.ev, lc)
}

// Reply implements shard.Sink.
func (lc *leaveCall) Reply(r group.Reply) {
	lc.reply = r
	lc.call.Done()
}

// Build implements [Builder].
func (lc *leaveCall) Build() kmsg.Response {
	resp := &kmsg.LeaveGroupResponse{Version: lc.call.Version, ErrorCode: int16(lc.reply.Code)}
	body, ok := lc.reply.Body.(*group.LeaveReply)
	if !ok || lc.reply.Code != group.None {
		return resp
	}
	if resp.Version < 3 { // the one member's code is the request's
		resp.ErrorCode = int16(body.Codes[0])
		return resp
	}
	resp.Members = make([]kmsg.LeaveGroupResponseMember, len(body.Codes))
	for i, code := range body.Codes {
		m := &lc.req.Members[i]
		resp.Members[i] = kmsg.LeaveGroupResponseMember{MemberID: m.MemberID, InstanceID: m.InstanceID, ErrorCode: int16(code)}
	}
	return resp
}
