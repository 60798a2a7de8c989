package compat

import (
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// BenchmarkWritten (S1.26) reports what the server writes to the disk for a commit of 10
// partitions by 16 connections, each with a group of its own: in bytes, and as a multiple
// of the bytes of the request.
func BenchmarkWritten(b *testing.B) {
	const connections = 16
	srv := rig.Start(b)
	rig.CreateTopic(b, rig.Admin(b, srv.Addr), "t", 10)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Generation = 8, -1
	rt := kmsg.OffsetCommitRequestTopic{Topic: "t"}
	for i := range int32(10) {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = i, 1_000_000
		rt.Partitions = append(rt.Partitions, p)
	}
	req.Topics = []kmsg.OffsetCommitRequestTopic{rt}
	before := srv.Written()
	var wg sync.WaitGroup
	for i := range connections {
		own := *req
		own.Group = "written-" + string(rune('a'+i))
		c := rig.Dial(b, srv.Addr)
		wg.Go(func() {
			for range b.N / connections {
				c.Send(&own)
				if code := rig.Answer[*kmsg.OffsetCommitResponse](c).Topics[0].Partitions[9].ErrorCode; code != 0 {
					b.Errorf("code %d", code)
				}
			}
		})
	}
	wg.Wait()
	written := float64(srv.Written()-before) / float64(max(b.N/connections*connections, 1))
	b.ReportMetric(written, "written-B/commit")
	b.ReportMetric(written/float64(len(req.AppendTo(nil))), "written-B/B")
}
