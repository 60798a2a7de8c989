package api

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListGroups, key 16, versions 0 to 5: version 1 has a throttle time, 3 is
// flexible, 4 has states and a filter by them (KIP-518), 5 types and a filter by
// them (KIP-848).
//
// Differs from Kafka: [list-sorted]; [list-classic-only].

// groupTypeClassic is the type of every group there is.
const groupTypeClassic = "classic"

type listCall struct {
	call   *Call
	h      *Handlers
	shards []listedShard // by shard number
}

type listedShard struct {
	code    group.Code
	replies []group.Reply
}

func (h *Handlers) listGroups(c *Call) {
	lc := &listCall{call: c, h: h, shards: make([]listedShard, h.Groups.Shards())}
	c.AwaitBuilder(len(lc.shards), lc)
	h.Groups.Each(c.Context(), func() group.Event { return new(group.List) }, lc.done)
}

func (lc *listCall) done(shard uint32, code group.Code, replies []group.Reply) {
	lc.shards[shard] = listedShard{code, replies}
	lc.call.Done()
}

// Build implements [Builder]. A shard of another node is left out; one that is
// being loaded fails the whole, since clients cannot tell what is missing.
func (lc *listCall) Build() kmsg.Response {
	resp := &kmsg.ListGroupsResponse{Version: lc.call.Version}
	keep := lc.filter()
	for _, s := range lc.shards {
		switch s.code {
		case group.None:
		case group.NotCoordinator:
			continue
		default:
			resp.ErrorCode, resp.Groups = int16(s.code), nil
			return resp
		}
		for _, r := range s.replies {
			if body, ok := r.Body.(*group.ListReply); ok && r.Code == group.None && keep(body) {
				resp.Groups = append(resp.Groups, kmsg.ListGroupsResponseGroup{
					Group: body.GroupID, ProtocolType: body.ProtocolType, GroupState: body.State.String(), GroupType: groupTypeClassic,
				})
			}
		}
	}
	slices.SortFunc(resp.Groups, func(a, b kmsg.ListGroupsResponseGroup) int { return cmp.Compare(a.Group, b.Group) })
	return resp
}

// filter makes the test that a group must pass to be listed. State names are
// compared without case and trimmed, type names only without case, as in Kafka;
// names that nobody knows match nothing.
func (lc *listCall) filter() func(*group.ListReply) bool {
	req := lc.call.Msg.(*kmsg.ListGroupsRequest)
	seesAll := lc.h.allowed(lc.call, OpDescribe, ResourceCluster, ClusterResource)
	typed := len(req.TypesFilter) == 0 || slices.ContainsFunc(req.TypesFilter, func(s string) bool {
		return strings.EqualFold(s, groupTypeClassic)
	})
	states := make([]string, len(req.StatesFilter))
	for i, s := range req.StatesFilter {
		states[i] = trimJava(s)
	}
	return func(g *group.ListReply) bool {
		if !typed || len(states) > 0 && !slices.ContainsFunc(states, func(s string) bool {
			return strings.EqualFold(s, g.State.String())
		}) {
			return false
		}
		return seesAll || lc.h.allowed(lc.call, OpDescribe, ResourceGroup, g.GroupID)
	}
}

// trimJava is Java's String.trim: what is not above U+0020 goes from both ends.
func trimJava(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }
