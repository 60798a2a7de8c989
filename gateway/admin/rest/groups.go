package rest

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// GroupLine is a group in a list.
type GroupLine struct {
	Group        string `json:"group"`
	State        string `json:"state"`
	ProtocolType string `json:"protocol_type" doc:"Empty if the group never had members."`
	Members      int    `json:"members"`
	Offsets      int    `json:"offsets" doc:"Partitions with a committed offset."`
	Shard        uint32 `json:"shard" doc:"The partition of __consumer_offsets that the group belongs to."`
}

// GroupFilter says which groups to list.
type GroupFilter struct {
	State        []string `query:"state,explode" doc:"List groups in one of these states only; case does not matter." example:"Stable"`
	Prefix       string   `query:"prefix" doc:"List groups whose id begins with this only."`
	ProtocolType string   `query:"protocol_type" doc:"List groups of this protocol type only."`
}

func (f *GroupFilter) keeps(r *group.ListReply) bool {
	return strings.HasPrefix(r.GroupID, f.Prefix) &&
		(f.ProtocolType == "" || f.ProtocolType == r.ProtocolType) &&
		(len(f.State) == 0 || slices.ContainsFunc(f.State, func(s string) bool { return strings.EqualFold(s, r.State.String()) }))
}

type listGroupsInput struct {
	GroupFilter
	Limit int    `query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"The most groups of a page."`
	After string `query:"after" doc:"The next of the page before."`
}

// GroupPage is a page of the list of groups.
type GroupPage struct {
	Groups []GroupLine `json:"groups"`
	Next   string      `json:"next,omitempty" doc:"What to give as after for the next page; missing on the last one."`
}

type groupPageOutput struct{ Body GroupPage }

type groupInput struct {
	Group string `path:"group" doc:"The group's id; a slash in it is written %2F."`
}

func (h *handlers) registerGroups(a huma.API) {
	huma.Register(a, operation("list-groups", http.MethodGet, "/v1/groups",
		"List groups, a page at a time, by shard and id", "groups"), h.listGroups)
	stream := operation("stream-groups", http.MethodGet, "/v1/stream/groups",
		"List all groups, a JSON object a line, in memory that does not depend on how many there are", "groups")
	stream.Responses = map[string]*huma.Response{"200": {
		Description: "A line for each group.",
		Content:     map[string]*huma.MediaType{"application/x-ndjson": {Schema: a.OpenAPI().Components.Schemas.Schema(typeOf[GroupLine](), true, "GroupLine")}},
	}}
	huma.Register(a, stream, h.streamGroups)
	huma.Register(a, operation("describe-group", http.MethodGet, "/v1/groups/{group}",
		"Describe a group, its members and its committed offsets", "groups"), h.describeGroup)
	remove := operation("delete-group", http.MethodDelete, "/v1/groups/{group}",
		"Delete a group without members, with its offsets", "groups")
	remove.Errors = append(remove.Errors, http.StatusConflict)
	huma.Register(a, remove, h.deleteGroup)
}

// shardGroups lists the groups of a shard that pass the filter, by id.
func (h *handlers) shardGroups(ctx context.Context, shard uint32, f *GroupFilter) ([]GroupLine, error) {
	type answer struct {
		code    group.Code
		replies []group.Reply
	}
	answers := make(chan answer, 1)
	h.Groups.EachIn(ctx, shard, func() group.Event { return new(group.List) },
		func(_ uint32, code group.Code, replies []group.Reply) { answers <- answer{code, replies} })
	var got answer
	select {
	case got = <-answers:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if got.code != group.None {
		return nil, kafkaError("shard "+strconv.FormatUint(uint64(shard), 10), int16(got.code), nil)
	}
	var lines []GroupLine
	for i := range got.replies {
		r, ok := got.replies[i].Body.(*group.ListReply)
		if !ok || got.replies[i].Code != group.None || !f.keeps(r) {
			continue
		}
		lines = append(lines, GroupLine{
			Group: r.GroupID, State: r.State.String(), ProtocolType: r.ProtocolType,
			Members: r.Members, Offsets: r.Offsets, Shard: shard,
		})
	}
	slices.SortFunc(lines, func(a, b GroupLine) int { return cmp.Compare(a.Group, b.Group) })
	return lines, nil
}

func (h *handlers) listGroups(ctx context.Context, in *listGroupsInput) (*groupPageOutput, error) {
	shard, after, err := parseCursor(in.After)
	if err != nil {
		return nil, err
	}
	out := &groupPageOutput{Body: GroupPage{Groups: []GroupLine{}}}
	page := &out.Body
	for ; shard < h.Groups.Shards(); shard++ {
		lines, err := h.shardGroups(ctx, shard, &in.GroupFilter)
		if err != nil {
			return nil, err
		}
		if after != nil {
			lines = slices.DeleteFunc(lines, func(l GroupLine) bool { return l.Group <= *after })
			after = nil
		}
		if room := in.Limit - len(page.Groups); len(lines) > room {
			page.Groups = append(page.Groups, lines[:room]...)
			last := page.Groups[len(page.Groups)-1]
			page.Next = cursor(last.Shard, last.Group)
			return out, nil
		}
		page.Groups = append(page.Groups, lines...)
	}
	return out, nil
}

// cursor names the place behind a group.
func cursor(shard uint32, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatUint(uint64(shard), 10) + ":" + id))
}

// parseCursor returns the shard to go on with, and the group in it to go on after.
func parseCursor(s string) (shard uint32, after *string, err error) {
	if s == "" {
		return 0, nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(s)
	number, id, ok := strings.Cut(string(text), ":")
	n, parseErr := strconv.ParseUint(number, 10, 32)
	if err != nil || parseErr != nil || !ok {
		return 0, nil, huma.Error422UnprocessableEntity("after is not the next of a page")
	}
	return uint32(n), &id, nil
}

// streamGroups writes shard by shard. A failure in the middle ends the connection:
// the status has gone, and the client must not take a part for the whole.
func (h *handlers) streamGroups(_ context.Context, in *GroupFilter) (*huma.StreamResponse, error) {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", "application/x-ndjson")
		lines := json.NewEncoder(c.BodyWriter())
		for shard := range h.Groups.Shards() {
			groups, err := h.shardGroups(c.Context(), shard, in)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			for i := range groups {
				if lines.Encode(&groups[i]) != nil {
					return // the client is gone
				}
			}
		}
	}}, nil
}

func (h *handlers) deleteGroup(ctx context.Context, in *groupInput) (*struct{}, error) {
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = []string{in.Group}
	resp, err := ask[*kmsg.DeleteGroupsResponse](ctx, h.Kafka, req, 2)
	if err != nil {
		return nil, err
	}
	return nil, kafkaError("group "+strconv.Quote(in.Group), resp.Groups[0].ErrorCode, nil)
}
