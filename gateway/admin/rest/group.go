package rest

import (
	"context"
	"reflect"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// typeOf is the type T, for schemas of what is not a plain answer.
func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// GroupDescription is a group with everything that is known of it.
type GroupDescription struct {
	Group        string            `json:"group"`
	State        string            `json:"state"`
	ProtocolType string            `json:"protocol_type"`
	Protocol     string            `json:"protocol" doc:"The selected assignor; empty outside Stable."`
	Members      []Member          `json:"members"`
	Offsets      []CommittedOffset `json:"offsets"`
}

// Member is a member of a group.
type Member struct {
	Member     string            `json:"member"`
	Instance   *string           `json:"instance,omitempty" doc:"The group.instance.id of a static member."`
	ClientID   string            `json:"client_id"`
	ClientHost string            `json:"client_host"`
	Assignment []TopicPartitions `json:"assignment,omitempty" doc:"Of consumers only; what other protocol types assign is opaque."`
}

// TopicPartitions is a topic with some of its partitions.
type TopicPartitions struct {
	Topic      string  `json:"topic"`
	Partitions []int32 `json:"partitions"`
}

// CommittedOffset is the committed offset of a partition.
type CommittedOffset struct {
	Topic       string `json:"topic"`
	Partition   int32  `json:"partition"`
	Offset      int64  `json:"offset"`
	LeaderEpoch int32  `json:"leader_epoch" doc:"-1 if the client named none."`
	Metadata    string `json:"metadata"`
}

type groupOutput struct{ Body GroupDescription }

func (h *handlers) describeGroup(ctx context.Context, in *groupInput) (*groupOutput, error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{in.Group}
	resp, err := ask[*kmsg.DescribeGroupsResponse](ctx, h.Kafka, req, 6)
	if err != nil {
		return nil, err
	}
	g := &resp.Groups[0]
	if err := kafkaError("group "+strconv.Quote(in.Group), g.ErrorCode, g.ErrorMessage); err != nil {
		return nil, err
	}
	out := &groupOutput{Body: GroupDescription{
		Group: g.Group, State: g.State, ProtocolType: g.ProtocolType, Protocol: g.Protocol,
		Members: make([]Member, len(g.Members)),
	}}
	for i := range g.Members {
		m := &g.Members[i]
		out.Body.Members[i] = Member{Member: m.MemberID, Instance: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost}
		if g.ProtocolType == consumerProtocol {
			out.Body.Members[i].Assignment = assigned(m.MemberAssignment)
		}
	}
	out.Body.Offsets, err = h.committed(ctx, in.Group)
	return out, err
}

// consumerProtocol is the protocol type of consumers.
const consumerProtocol = "consumer"

// assigned decodes the assignment of a consumer; nil if it is none.
func assigned(assignment []byte) []TopicPartitions {
	var a kmsg.ConsumerMemberAssignment
	if a.ReadFrom(assignment) != nil {
		return nil
	}
	all := make([]TopicPartitions, len(a.Topics))
	for i := range a.Topics {
		all[i] = TopicPartitions{a.Topics[i].Topic, a.Topics[i].Partitions}
	}
	return all
}

// committed lists the committed offsets of a group, by topic and partition.
func (h *handlers) committed(ctx context.Context, id string) ([]CommittedOffset, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = id
	req.Groups = append(req.Groups, g)
	resp, err := ask[*kmsg.OffsetFetchResponse](ctx, h.Kafka, req, 9)
	if err != nil {
		return nil, err
	}
	if err := kafkaError("offsets of group "+strconv.Quote(id), resp.Groups[0].ErrorCode, nil); err != nil {
		return nil, err
	}
	all := []CommittedOffset{}
	for _, t := range resp.Groups[0].Topics {
		for _, p := range t.Partitions {
			o := CommittedOffset{Topic: t.Topic, Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch}
			if p.Metadata != nil {
				o.Metadata = *p.Metadata
			}
			all = append(all, o)
		}
	}
	return all, nil
}
