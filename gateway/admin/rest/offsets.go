package rest

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// SetOffset is an offset to set.
type SetOffset struct {
	Topic       string `json:"topic" minLength:"1"`
	Partition   int32  `json:"partition" minimum:"0"`
	Offset      int64  `json:"offset" minimum:"0"`
	LeaderEpoch *int32 `json:"leader_epoch,omitempty" minimum:"-1"`
	Metadata    string `json:"metadata,omitempty"`
}

// NewOffsets are offsets to set at one stroke: all of them or, if anything is wrong
// with one, none.
type NewOffsets struct {
	Offsets []SetOffset `json:"offsets"`
	Replace bool        `json:"replace,omitempty" doc:"Remove all other offsets of the group."`
	Fence   bool        `json:"fence,omitempty" doc:"Remove the members, if there are any, static ones too: what they still send is refused, and none of their commits survives. They join again and find the new offsets. Without it, members are in the way."`
}

// offsetsBodyBytesMax is the longest body that sets offsets: about 100,000 of them.
const offsetsBodyBytesMax = 16 << 20

type (
	committedOutput struct {
		Body struct {
			Offsets []CommittedOffset `json:"offsets" doc:"By topic and partition."`
		}
	}
	setOffsetsInput struct {
		Group string `path:"group" minLength:"1"`
		Body  NewOffsets
	}
)

func (h *handlers) registerOffsets(a huma.API) {
	huma.Register(a, operation("list-offsets", http.MethodGet, "/v1/groups/{group}/offsets",
		"The committed offsets of a group, now or at an earlier time", "offsets"), h.listCommitted)
	set := operation("set-offsets", http.MethodPut, "/v1/groups/{group}/offsets",
		"Set committed offsets of a group at one stroke, also of one with members", "offsets")
	set.MaxBodyBytes = offsetsBodyBytesMax
	set.Errors = append(set.Errors, http.StatusConflict)
	huma.Register(a, set, h.setOffsets)
}

func (h *handlers) listCommitted(ctx context.Context, in *offsetsInput) (out *committedOutput, err error) {
	out = &committedOutput{}
	if in.AsOf != "" {
		out.Body.Offsets, err = h.asOf(ctx, in.Group, "as_of", in.AsOf)
	} else {
		out.Body.Offsets, err = h.committed(ctx, in.Group)
	}
	return out, err
}

func (h *handlers) setOffsets(ctx context.Context, in *setOffsetsInput) (*committedOutput, error) {
	topics, err := h.commitTopics(ctx, in.Body.Offsets)
	if err != nil {
		return nil, err
	}
	who := session(ctx)
	reply := make(replies, 1)
	h.Groups.Submit(ctx, in.Group, &group.Reset{
		Client: group.Client{ID: clientName, Host: who.Host, Principal: who.Principal},
		Topics: topics, Replace: in.Body.Replace, Fence: in.Body.Fence,
	}, reply)
	r := <-reply // it comes, whatever happens
	if err := kafkaError("group "+strconv.Quote(in.Group), int16(r.Code), nil); err != nil {
		return nil, err
	}
	return h.listCommitted(ctx, &offsetsInput{Group: in.Group})
}

// replies is a sink with room for the one reply.
type replies chan group.Reply

// Reply implements shard.Sink.
func (c replies) Reply(r group.Reply) { c <- r }

// commitTopics checks offsets against the topics that exist, and that none comes
// twice.
func (h *handlers) commitTopics(ctx context.Context, offsets []SetOffset) ([]group.CommitTopic, error) {
	var topics []group.CommitTopic
	at := map[string]int{}
	var names []string
	seen := map[string]map[int32]bool{}
	for _, o := range offsets {
		i, ok := at[o.Topic]
		if !ok {
			i, at[o.Topic] = len(topics), len(topics)
			topics = append(topics, group.CommitTopic{Name: o.Topic})
			names, seen[o.Topic] = append(names, o.Topic), map[int32]bool{}
		}
		if seen[o.Topic][o.Partition] {
			return nil, huma.Error422UnprocessableEntity("topic " + strconv.Quote(o.Topic) + ": partition " + strconv.Itoa(int(o.Partition)) + " comes twice")
		}
		seen[o.Topic][o.Partition] = true
		p := group.CommitPartition{Partition: o.Partition, Offset: o.Offset, LeaderEpoch: -1, Metadata: o.Metadata}
		if o.LeaderEpoch != nil {
			p.LeaderEpoch = *o.LeaderEpoch
		}
		topics[i].Partitions = append(topics[i].Partitions, p)
	}
	if len(names) == 0 {
		return nil, nil
	}
	existing, err := h.metadata(ctx, names...)
	if err != nil {
		return nil, err
	}
	for _, t := range existing {
		if err := topicError(*t.Topic, t.ErrorCode, nil); err != nil {
			return nil, err
		}
		topic := &topics[at[*t.Topic]]
		topic.ID = t.TopicID
		for _, p := range topic.Partitions {
			if int(p.Partition) >= len(t.Partitions) {
				return nil, huma.Error422UnprocessableEntity("topic " + strconv.Quote(*t.Topic) + " has no partition " + strconv.Itoa(int(p.Partition)))
			}
		}
	}
	return topics, nil
}
