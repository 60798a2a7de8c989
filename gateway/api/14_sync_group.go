package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// SyncGroup, key 14, versions 0 to 5: version 1 has a throttle time, 3 a group
// instance id (KIP-345), 4 is flexible, 5 has the protocol type and name both
// ways (KIP-559). Nothing is left out.

type syncCall struct {
	call  *Call
	ev    group.Sync
	reply group.Reply
}

func (h *Handlers) syncGroup(c *Call) {
	req := c.Msg.(*kmsg.SyncGroupRequest)
	code := int16(0)
	if c.Version >= 5 && (req.ProtocolType == nil || req.Protocol == nil) {
		code = kerr.InconsistentGroupProtocol.Code // before the right to read, as in KafkaApis
	} else {
		code = h.refusedGroup(c, OpRead, req.Group)
	}
	if code != 0 {
		c.Respond(&kmsg.SyncGroupResponse{Version: c.Version, ErrorCode: code})
		return
	}
	sc := &syncCall{call: c}
	ev := &sc.ev
	ev.Client = clientOf(c)
	ev.MemberID = req.MemberID
	ev.InstanceID = req.InstanceID
	ev.Generation = req.Generation
	ev.ProtocolType = req.ProtocolType
	ev.ProtocolName = req.Protocol
	size := 0
	for i := range req.GroupAssignment {
		size += len(req.GroupAssignment[i].MemberAssignment)
	}
	bytes := newCloner(size)
	ev.Assignments = make([]group.Assignment, len(req.GroupAssignment))
	for i := range req.GroupAssignment {
		a := &req.GroupAssignment[i]
		ev.Assignments[i] = group.Assignment{MemberID: a.MemberID, Bytes: bytes.clone(a.MemberAssignment)}
	}
	c.AwaitBuilder(1, sc)
	h.Groups.Submit(c.Context(), req.Group, ev, sc)
}

// Reply implements shard.Sink.
func (sc *syncCall) Reply(r group.Reply) {
	sc.reply = r
	sc.call.Done()
}

// Build implements [Builder].
func (sc *syncCall) Build() kmsg.Response {
	resp := &kmsg.SyncGroupResponse{Version: sc.call.Version, ErrorCode: int16(sc.reply.Code)}
	if body, ok := sc.reply.Body.(*group.SyncReply); ok && sc.reply.Code == group.None {
		resp.ProtocolType, resp.Protocol = body.ProtocolType, body.ProtocolName
		resp.MemberAssignment = body.Assignment
	}
	return resp
}
