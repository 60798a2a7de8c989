package compat

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// BenchmarkIdleConnections reports the server's memory for a connection that has made
// one request and is silent.
func BenchmarkIdleConnections(b *testing.B) {
	const n = 5000
	srv := rig.Start(b)
	before := srv.RSS()
	for range n {
		c := rig.Dial(b, srv.Addr)
		rig.Do[*kmsg.ApiVersionsResponse](c, kmsg.NewPtrApiVersionsRequest())
	}
	for b.Loop() {
	}
	b.ReportMetric(float64(srv.RSS()-before)/n, "bytes/connection")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSimpleGroups reports the server's memory for a group with one offset, the
// store's caches included.
func BenchmarkSimpleGroups(b *testing.B) {
	const n = 200_000
	srv := rig.Start(b)
	topic := "t"
	rig.CreateTopic(b, rig.Admin(b, srv.Addr), topic, 100)
	before := srv.RSS()
	fill(b, srv, topic, n, 1)
	for b.Loop() {
	}
	b.ReportMetric(float64(srv.RSS()-before)/n, "bytes/group")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStableGroups reports the server's memory for a Stable group of one member
// with 100 bytes of metadata and of assignment.
func BenchmarkStableGroups(b *testing.B) {
	const n = 20_000
	srv := rig.Start(b, "ROLLCALL_GROUP_INITIAL_REBALANCE_DELAY_MS=0")
	c := rig.Dial(b, srv.Addr)
	before := srv.RSS()
	for i := range n {
		join := kmsg.NewPtrJoinGroupRequest()
		join.Version, join.Group, join.ProtocolType = 3, fmt.Sprintf("stable-%d", i), "consumer"
		join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 1_800_000, 1_800_000
		join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: make([]byte, 100)}}
		joined := rig.Do[*kmsg.JoinGroupResponse](c, join)
		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Version, sync.Group, sync.MemberID, sync.Generation = 2, join.Group, joined.MemberID, joined.Generation
		sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID, MemberAssignment: make([]byte, 100)}}
		if code := rig.Do[*kmsg.SyncGroupResponse](c, sync).ErrorCode; code != 0 {
			b.Fatalf("SyncGroup: code %d", code)
		}
	}
	for b.Loop() {
	}
	b.ReportMetric(float64(srv.RSS()-before)/n, "bytes/group")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkReady reports how long a server with 1,000,000 offsets takes from its start
// to ready, after SIGKILL and after an orderly stop.
func BenchmarkReady(b *testing.B) {
	srv := rig.Start(b)
	topic := "t"
	rig.CreateTopic(b, rig.Admin(b, srv.Addr), topic, 100)
	fill(b, srv, topic, 10_000, 100)
	for _, how := range []string{"SIGKILL", "stop"} {
		b.Run(how, func(b *testing.B) {
			var total time.Duration
			for b.Loop() {
				b.StopTimer()
				if how == "SIGKILL" {
					srv.Kill()
				} else {
					srv.Stop()
				}
				began := time.Now()
				b.StartTimer()
				srv.Restart()
				total += time.Since(began)
			}
			b.ReportMetric(total.Seconds()/float64(b.N), "s/start")
		})
	}
	c := rig.Dial(b, srv.Addr)
	if got := fetchOffset(c, "fill-9999", topic); got != 7 {
		b.Errorf("offset %d, want 7", got)
	}
}

// fill commits offsets of n groups, many requests at a time.
func fill(b *testing.B, srv *rig.Server, topic string, n, partitions int) {
	const window = 64
	c := rig.Dial(b, srv.Addr)
	wait := func() {
		for _, p := range rig.Answer[*kmsg.OffsetCommitResponse](c).Topics[0].Partitions {
			if p.ErrorCode != 0 {
				b.Fatalf("commit: code %d", p.ErrorCode)
			}
		}
	}
	for i := range n {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Version, req.Group, req.Generation = 8, fmt.Sprintf("fill-%d", i), -1
		rt := kmsg.OffsetCommitRequestTopic{Topic: topic}
		for p := range partitions {
			rp := kmsg.NewOffsetCommitRequestTopicPartition()
			rp.Partition, rp.Offset = int32(p), 7
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = []kmsg.OffsetCommitRequestTopic{rt}
		c.Send(req)
		if i >= window {
			wait()
		}
	}
	for range min(n, window) {
		wait()
	}
}
