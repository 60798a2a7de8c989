package api

import (
	"context"
	"fmt"
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// nullGroups says NONE to everything and keeps nothing.
type nullGroups struct{ fakeGroups }

func (nullGroups) Submit(_ context.Context, _ string, _ group.Event, sink shard.Sink) {
	sink.Reply(group.Reply{})
}

// fetchGroups answers every fetch with the same body.
type fetchGroups struct {
	fakeGroups
	body group.FetchReply
}

func (f *fetchGroups) Submit(_ context.Context, _ string, _ group.Event, sink shard.Sink) {
	sink.Reply(group.Reply{Body: &f.body})
}

// benchmark measures a request from its bytes to the bytes of its response. What
// is reported includes decoding by kmsg; "handler" is without it.
func benchmark(b *testing.B, s *server, req kmsg.Request) {
	frame := req.AppendTo(nil)
	key, version := req.Key(), req.GetVersion()
	entry := s.table.entry(key)
	wake := func() {}
	decode := func() kmsg.Request {
		r := kmsg.RequestForKey(key)
		r.SetVersion(version)
		if err := r.ReadFrom(frame); err != nil {
			b.Fatal(err)
		}
		return r
	}
	run := func(c *Call, r kmsg.Request, buf []byte) []byte {
		c.Reset(s.session, key, version, s.client, r, wake)
		entry.Handle(c)
		resp, _ := c.Response()
		return resp.AppendTo(buf[:0])
	}
	b.Run("decode+handler", func(b *testing.B) {
		b.ReportAllocs()
		c, buf := new(Call), make([]byte, 0, 4096)
		for b.Loop() {
			buf = run(c, decode(), buf)
		}
	})
	b.Run("handler", func(b *testing.B) {
		b.ReportAllocs()
		c, buf, r := new(Call), make([]byte, 0, 4096), decode()
		for b.Loop() {
			buf = run(c, r, buf)
		}
	})
}

func benchServer(groups coordinator.Groups) *server {
	s := newServer()
	s.Groups = groups
	s.Topics = tenPartitions{}
	return s
}

// tenPartitions has every topic, with ten partitions.
type tenPartitions struct{}

func (tenPartitions) Lookup(string) ([16]byte, int32, bool) { return [16]byte{1}, 10, true }
func (tenPartitions) ByID([16]byte) (string, bool)          { return "topic", true }

func benchHeartbeat() *kmsg.HeartbeatRequest {
	return &kmsg.HeartbeatRequest{Version: 4, Group: "group", Generation: 5, MemberID: "client-" + zeroUUID}
}

// benchCommit commits ten partitions of so many topics.
func benchCommit(topics int) *kmsg.OffsetCommitRequest {
	req := &kmsg.OffsetCommitRequest{Version: 8, Group: "group", Generation: 5, MemberID: "client-" + zeroUUID}
	for i := range topics {
		t := kmsg.OffsetCommitRequestTopic{Topic: fmt.Sprintf("topic-%d", i)}
		for p := range int32(10 / topics) {
			t.Partitions = append(t.Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: p, Offset: 1000, LeaderEpoch: -1, Metadata: ptr("")})
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

func BenchmarkHeartbeatHandler(b *testing.B) {
	benchmark(b, benchServer(&nullGroups{}), benchHeartbeat())
}

func BenchmarkOffsetCommitHandler(b *testing.B) {
	for _, topics := range []int{1, 10} {
		b.Run(fmt.Sprintf("topics=%d", topics), func(b *testing.B) {
			benchmark(b, benchServer(&nullGroups{}), benchCommit(topics))
		})
	}
}

// The hot requests make one allocation each for their state, and a commit one for
// the partitions it asks for and one for those it answers.
func TestHotHandlersAllocateLittle(t *testing.T) {
	s := benchServer(&nullGroups{})
	c, buf := new(Call), make([]byte, 0, 4096)
	wake := func() {}
	for _, tc := range []struct {
		req  kmsg.Request
		most float64
	}{{benchHeartbeat(), 1}, {benchCommit(1), 3}, {benchCommit(10), 5}} {
		got := testing.AllocsPerRun(100, func() {
			c.Reset(s.session, tc.req.Key(), tc.req.GetVersion(), "client", tc.req, wake)
			s.table.entry(tc.req.Key()).Handle(c)
			resp, _ := c.Response()
			buf = resp.AppendTo(buf[:0])
		})
		if got > tc.most {
			t.Errorf("%T: %v allocations, at most %v", tc.req, got, tc.most)
		}
	}
}

func BenchmarkOffsetFetchHandler(b *testing.B) {
	groups := &fetchGroups{}
	partitions := make([]group.FetchedPartition, 10)
	ask := kmsg.OffsetFetchRequestGroupTopic{Topic: "topic"}
	for i := range partitions {
		partitions[i] = group.FetchedPartition{Partition: int32(i), Offset: 1000, LeaderEpoch: -1}
		ask.Partitions = append(ask.Partitions, int32(i))
	}
	groups.body.Topics = []group.FetchedTopic{{Name: "topic", Partitions: partitions}}
	benchmark(b, benchServer(groups), &kmsg.OffsetFetchRequest{Version: 8, Groups: []kmsg.OffsetFetchRequestGroup{
		{Group: "group", Topics: []kmsg.OffsetFetchRequestGroupTopic{ask}},
	}})
}
