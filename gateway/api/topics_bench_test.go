package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// BenchmarkProduce appends batches of ten small records to one partition, on a file
// system in memory, with several producers at a time.
func BenchmarkProduce(b *testing.B) {
	for _, k := range []struct {
		name       string
		idempotent bool
	}{{"plain", false}, {"idempotent", true}} {
		b.Run(k.name, func(b *testing.B) {
			c := newTopicClient(b)
			c.create("t", 1)
			raw := someRecords(10).bytes()
			b.ReportAllocs()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				var id int64
				if k.idempotent {
					id = c.ask(4, kmsg.NewPtrInitProducerIDRequest()).(*kmsg.InitProducerIDResponse).ProducerID
				}
				batch, sequence := raw, int32(0)
				for pb.Next() {
					if k.idempotent {
						batch = someRecords(10).from(id, 0, sequence).bytes()
						sequence += 10
					}
					c.ask(9, produceRaw("t", [16]byte{}, -1, 0, batch))
				}
			})
		})
	}
}

// BenchmarkFetch fetches from one partition: what is there, and nothing.
func BenchmarkFetch(b *testing.B) {
	c := newTopicClient(b)
	c.create("t", 10)
	for range 100 {
		c.produce("t", 0, someRecords(10))
	}
	for name, req := range map[string]*kmsg.FetchRequest{"records": fetchAll("t", 0, 1, 0), "nothing of ten": fetchAll("t", 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.ask(12, req)
			}
		})
	}
}
