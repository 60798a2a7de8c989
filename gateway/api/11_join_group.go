package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// JoinGroup, key 11, versions 0 to 9: version 1 has a rebalance timeout, 2 a
// throttle time, 4 the round trip for a member id (KIP-394), 5 a group instance
// id (KIP-345), 6 is flexible, 7 has the protocol type in the response and a
// nullable protocol name (KIP-559), 8 a reason (KIP-800), 9 skips the assignment
// of a static leader (KIP-814).
//
// Differs from Kafka: [long-client-id].

type joinCall struct {
	call  *Call
	ev    group.Join
	reply group.Reply
}

func (h *Handlers) joinGroup(c *Call) {
	req := c.Msg.(*kmsg.JoinGroupRequest)
	if code, memberID := h.refusedJoin(c, req); code != 0 {
		c.Respond(joinError(c.Version, code, memberID))
		return
	}
	jc := &joinCall{call: c}
	h.joinEvent(c, req, &jc.ev)
	c.AwaitBuilder(1, jc)
	h.Groups.Submit(c.Context(), req.Group, &jc.ev, jc)
}

// refusedJoin makes the checks of GroupCoordinatorService.joinGroup that come
// before anything is known of the group. An unauthorized client's member id is
// not echoed.
func (h *Handlers) refusedJoin(c *Call, req *kmsg.JoinGroupRequest) (code int16, memberID string) {
	code = h.refusedGroup(c, OpRead, req.Group)
	switch {
	case code == kerr.GroupAuthorizationFailed.Code:
		return code, ""
	case code != 0:
		return code, req.MemberID
	case req.SessionTimeoutMillis < h.Config.SessionTimeoutMin || req.SessionTimeoutMillis > h.Config.SessionTimeoutMax:
		return kerr.InvalidSessionTimeout.Code, req.MemberID
	default:
		return 0, ""
	}
}

func (h *Handlers) joinEvent(c *Call, req *kmsg.JoinGroupRequest, ev *group.Join) {
	ev.Client = clientOf(c)
	ev.MemberID = req.MemberID
	ev.InstanceID = req.InstanceID
	if req.MemberID == "" {
		prefix := c.ClientID
		if req.InstanceID != nil {
			prefix = *req.InstanceID
		}
		ev.NewID = h.newMemberID(prefix)
	}
	ev.RequireMemberID = c.Version >= 4
	ev.CanSkipAssignment = c.Version >= 9
	ev.SessionTimeout = req.SessionTimeoutMillis
	ev.RebalanceTimeout = req.RebalanceTimeoutMillis
	if c.Version == 0 {
		ev.RebalanceTimeout = req.SessionTimeoutMillis
	}
	ev.ProtocolType = req.ProtocolType
	ev.Reason = reasonOf(req.Reason)

	size := 0
	for i := range req.Protocols {
		size += len(req.Protocols[i].Metadata)
	}
	bytes := newCloner(size)
	ev.Protocols = make([]group.Protocol, len(req.Protocols))
	for i := range req.Protocols {
		p := &req.Protocols[i]
		ev.Protocols[i] = group.Protocol{Name: p.Name, Metadata: bytes.clone(p.Metadata)}
	}
}

// Reply implements shard.Sink.
func (jc *joinCall) Reply(r group.Reply) {
	jc.reply = r
	jc.call.Done()
}

// Build implements [Builder].
func (jc *joinCall) Build() kmsg.Response {
	body, ok := jc.reply.Body.(*group.JoinReply)
	if !ok { // refused before it reached the group
		return joinError(jc.call.Version, int16(jc.reply.Code), "")
	}
	resp := &kmsg.JoinGroupResponse{
		Version:        jc.call.Version,
		ErrorCode:      int16(jc.reply.Code),
		Generation:     body.Generation,
		ProtocolType:   body.ProtocolType,
		Protocol:       body.ProtocolName, // null goes out as "" below version 7
		LeaderID:       body.Leader,
		SkipAssignment: body.SkipAssignment,
		MemberID:       body.MemberID,
		Members:        make([]kmsg.JoinGroupResponseMember, len(body.Members)),
	}
	if body.ProtocolName != nil && *body.ProtocolName == "" {
		resp.Protocol = nil
	}
	for i := range body.Members {
		m := &body.Members[i]
		resp.Members[i] = kmsg.JoinGroupResponseMember{MemberID: m.MemberID, InstanceID: m.InstanceID, ProtocolMetadata: m.Metadata}
	}
	return resp
}

func joinError(version, code int16, memberID string) *kmsg.JoinGroupResponse {
	return &kmsg.JoinGroupResponse{Version: version, ErrorCode: code, Generation: -1, MemberID: memberID}
}
