package api

import (
	"math"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeGroups, key 15, versions 0 to 6: version 1 has a throttle time, 3 the
// operations that the client may do (KIP-430), 4 group instance ids (KIP-345), 5
// is flexible, 6 says GROUP_ID_NOT_FOUND, with a message, of a group that does not
// exist (KIP-1043).
//
// Differs from Kafka: [describe-in-order].

type describeCall struct {
	call  *Call
	h     *Handlers
	parts []describePart
}

type describePart struct {
	call  *Call
	ev    group.Describe
	reply group.Reply
	asked bool
}

func (h *Handlers) describeGroups(c *Call) {
	req := c.Msg.(*kmsg.DescribeGroupsRequest)
	dc := &describeCall{call: c, h: h, parts: make([]describePart, len(req.Groups))}
	asked := 0
	for i, id := range req.Groups {
		p := &dc.parts[i]
		p.call = c
		p.asked = h.allowed(c, OpDescribe, ResourceGroup, id)
		if p.asked {
			asked++
		} else {
			p.reply.Code = group.Code(kerr.GroupAuthorizationFailed.Code)
		}
	}
	if asked == 0 {
		c.Respond(dc.Build())
		return
	}
	c.AwaitBuilder(asked, dc)
	for i, id := range req.Groups {
		if p := &dc.parts[i]; p.asked {
			h.Groups.Submit(c.Context(), id, &p.ev, p)
		}
	}
}

// Reply implements shard.Sink.
func (p *describePart) Reply(r group.Reply) {
	p.reply = r
	p.call.Done()
}

// Build implements [Builder].
func (dc *describeCall) Build() kmsg.Response {
	req := dc.call.Msg.(*kmsg.DescribeGroupsRequest)
	resp := &kmsg.DescribeGroupsResponse{Version: dc.call.Version}
	resp.Groups = make([]kmsg.DescribeGroupsResponseGroup, len(dc.parts))
	for i := range dc.parts {
		g := &resp.Groups[i]
		g.Group = req.Groups[i]
		g.AuthorizedOperations = math.MinInt32
		describe(g, dc.parts[i].reply, resp.Version)
		if req.IncludeAuthorizedOperations && g.ErrorCode == 0 {
			g.AuthorizedOperations = dc.h.groupOperations(dc.call, g.Group)
		}
	}
	return resp
}

func describe(g *kmsg.DescribeGroupsResponseGroup, r group.Reply, version int16) {
	g.ErrorCode = int16(r.Code)
	if r.Code == group.GroupIDNotFound {
		g.State = group.Dead.String()
		if version < 6 {
			g.ErrorCode = 0
			return
		}
		message := "Group " + g.Group + " not found."
		g.ErrorMessage = &message
		return
	}
	body, ok := r.Body.(*group.DescribeReply)
	if !ok || r.Code != group.None {
		return
	}
	g.State = body.State.String()
	g.ProtocolType = body.ProtocolType
	g.Protocol = body.Protocol
	g.Members = make([]kmsg.DescribeGroupsResponseGroupMember, len(body.Members))
	for i := range body.Members {
		m := &body.Members[i]
		g.Members[i] = kmsg.DescribeGroupsResponseGroupMember{
			MemberID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost,
			ProtocolMetadata: m.Metadata, MemberAssignment: m.Assignment,
		}
	}
}

// groupOperations is the bit field of what the client may do with a group, of
// all operations that Kafka knows for groups (AclEntry.supportedOperations).
func (h *Handlers) groupOperations(c *Call, id string) (bits int32) {
	for _, op := range [...]Operation{OpRead, OpDelete, OpDescribe, OpDescribeConfigs, OpAlterConfigs} {
		if h.allowed(c, op, ResourceGroup, id) {
			bits |= 1 << op
		}
	}
	return bits
}
