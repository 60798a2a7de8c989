package wire

import (
	"fmt"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// version chooses one of those that can say what has to be said.
func version(rnd *rand.Rand, least, most int16) int16 {
	return least + int16(rnd.IntN(int(most-least)+1))
}

// request returns an event as a request.
func request(rnd *rand.Rand, id string, ev group.Event) kmsg.Request {
	static := func(instance *string, since, least int16) int16 {
		if instance != nil {
			return since
		}
		return least
	}
	switch ev := ev.(type) {
	case *group.Join:
		return join(rnd, id, ev)
	case *group.Sync:
		r := kmsg.NewPtrSyncGroupRequest()
		r.Version = version(rnd, static(ev.InstanceID, 3, 0), 5)
		r.Group, r.MemberID, r.InstanceID, r.Generation = id, ev.MemberID, ev.InstanceID, ev.Generation
		r.ProtocolType, r.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
		for _, a := range ev.Assignments {
			r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: a.MemberID, MemberAssignment: a.Bytes})
		}
		return r
	case *group.Heartbeat:
		r := kmsg.NewPtrHeartbeatRequest()
		r.Version = version(rnd, static(ev.InstanceID, 3, 0), 4)
		r.Group, r.MemberID, r.InstanceID, r.Generation = id, ev.MemberID, ev.InstanceID, ev.Generation
		return r
	case *group.Leave:
		r := kmsg.NewPtrLeaveGroupRequest()
		r.Version = version(rnd, static(ev.Members[0].InstanceID, 3, 0), 5)
		r.Group, r.MemberID = id, ev.Members[0].MemberID
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID, m.InstanceID = ev.Members[0].MemberID, ev.Members[0].InstanceID
		r.Members = append(r.Members, m)
		return r
	case *group.Commit:
		return commit(rnd, id, ev, static(ev.InstanceID, 7, 2))
	case *group.Fetch:
		return fetch(rnd, id, ev)
	case *group.DeleteOffsets:
		r := kmsg.NewPtrOffsetDeleteRequest()
		r.Group = id
		for _, t := range ev.Topics {
			rt := kmsg.OffsetDeleteRequestTopic{Topic: t.Name}
			for _, p := range t.Partitions {
				rt.Partitions = append(rt.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: p})
			}
			r.Topics = append(r.Topics, rt)
		}
		return r
	case *group.DeleteGroup:
		r := kmsg.NewPtrDeleteGroupsRequest()
		r.Version, r.Groups = version(rnd, 0, 2), []string{id}
		return r
	case *group.Describe:
		r := kmsg.NewPtrDescribeGroupsRequest()
		r.Version, r.Groups = version(rnd, 0, 5), []string{id}
		return r
	}
	panic(fmt.Sprintf("wire: no request for a %T", ev))
}

func join(rnd *rand.Rand, id string, ev *group.Join) kmsg.Request {
	r := kmsg.NewPtrJoinGroupRequest()
	switch {
	case ev.InstanceID != nil:
		r.Version = version(rnd, 5, 9)
	case ev.RequireMemberID:
		r.Version = version(rnd, 4, 9)
	default:
		r.Version = version(rnd, 1, 3)
	}
	r.Group, r.MemberID, r.InstanceID = id, ev.MemberID, ev.InstanceID
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = ev.SessionTimeout, ev.RebalanceTimeout
	r.ProtocolType = ev.ProtocolType
	for _, p := range ev.Protocols {
		r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: p.Name, Metadata: p.Metadata})
	}
	return r
}

func commit(rnd *rand.Rand, id string, ev *group.Commit, least int16) kmsg.Request {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version = version(rnd, least, 9)
	r.Group, r.MemberID, r.InstanceID, r.Generation = id, ev.MemberID, ev.InstanceID, ev.Generation
	for _, t := range ev.Topics {
		rt := kmsg.OffsetCommitRequestTopic{Topic: t.Name}
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetCommitRequestTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch = p.Partition, p.Offset, p.LeaderEpoch
			rt.Partitions = append(rt.Partitions, rp)
		}
		r.Topics = append(r.Topics, rt)
	}
	return r
}

func fetch(rnd *rand.Rand, id string, ev *group.Fetch) kmsg.Request {
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Version, r.RequireStable = version(rnd, 2, 9), ev.RequireStable
	if ev.RequireStable {
		r.Version = version(rnd, 7, 9)
	}
	r.Group = id
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = id
	for _, t := range ev.Topics {
		r.Topics = append(r.Topics, kmsg.OffsetFetchRequestTopic{Topic: t.Name, Partitions: t.Partitions})
		gt := kmsg.NewOffsetFetchRequestGroupTopic()
		gt.Topic, gt.Partitions = t.Name, t.Partitions
		g.Topics = append(g.Topics, gt)
	}
	r.Groups = append(r.Groups, g)
	return r
}

// reply returns a response as the reply that it was made from.
func reply(resp kmsg.Response) (r group.Reply) {
	switch resp := resp.(type) {
	case *kmsg.JoinGroupResponse:
		r.Code = group.Code(resp.ErrorCode)
		body := &group.JoinReply{Generation: resp.Generation, Leader: resp.LeaderID, MemberID: resp.MemberID}
		for _, m := range resp.Members {
			body.Members = append(body.Members, group.JoinMember{MemberID: m.MemberID, InstanceID: m.InstanceID, Metadata: m.ProtocolMetadata})
		}
		r.Body = body
	case *kmsg.SyncGroupResponse:
		r.Code, r.Body = group.Code(resp.ErrorCode), &group.SyncReply{Assignment: resp.MemberAssignment}
	case *kmsg.HeartbeatResponse:
		r.Code = group.Code(resp.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		r.Code = group.Code(resp.ErrorCode)
	case *kmsg.OffsetCommitResponse:
		var codes [][]group.Code
		for _, t := range resp.Topics {
			codes = append(codes, nil)
			for _, p := range t.Partitions {
				codes[len(codes)-1] = append(codes[len(codes)-1], group.Code(p.ErrorCode))
			}
		}
		return parts(codes)
	case *kmsg.OffsetFetchResponse:
		return fetched(resp)
	case *kmsg.OffsetDeleteResponse:
		if resp.ErrorCode != 0 {
			return group.Reply{Code: group.Code(resp.ErrorCode)}
		}
		return group.Reply{Code: group.Code(resp.Topics[0].Partitions[0].ErrorCode)}
	case *kmsg.DeleteGroupsResponse:
		r.Code = group.Code(resp.Groups[0].ErrorCode)
	case *kmsg.DescribeGroupsResponse:
		r.Code = group.Code(resp.Groups[0].ErrorCode)
	}
	return r
}

// parts is the reply with these codes; one code if they are all the same.
func parts(codes [][]group.Code) group.Reply {
	first, same := codes[0][0], true
	for _, topic := range codes {
		for _, code := range topic {
			same = same && code == first
		}
	}
	if same {
		return group.Reply{Code: first}
	}
	return group.Reply{Body: &group.CommitReply{Codes: codes}}
}

func fetched(resp *kmsg.OffsetFetchResponse) group.Reply {
	body := &group.FetchReply{}
	add := func(topic string, partition int32, offset int64, code int16) {
		body.Topics = append(body.Topics, group.FetchedTopic{Name: topic, Partitions: []group.FetchedPartition{
			{Partition: partition, Offset: offset, Code: group.Code(code)},
		}})
	}
	if resp.Version >= 8 {
		g := resp.Groups[0]
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				add(t.Topic, p.Partition, p.Offset, p.ErrorCode)
			}
		}
		return group.Reply{Code: group.Code(g.ErrorCode), Body: body}
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			add(t.Topic, p.Partition, p.Offset, p.ErrorCode)
		}
	}
	return group.Reply{Code: group.Code(resp.ErrorCode), Body: body}
}
