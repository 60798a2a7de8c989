package rig

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Admin returns an admin client that ends with the test.
func Admin(t testing.TB, addr string) *kadm.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ClientID("rig"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return kadm.NewClient(cl)
}

// CreateTopic makes a topic, or fails the test.
func CreateTopic(t testing.TB, adm *kadm.Client, topic string, partitions int32) {
	t.Helper()
	resp, err := adm.CreateTopic(t.Context(), partitions, 1, nil, topic)
	if err == nil {
		err = resp.Err
	}
	if err != nil {
		t.Fatalf("create topic %s: %v", topic, err)
	}
	// Kafka answers before its own metadata shows the topic.
	Eventually(t, 10*time.Second, "the topic is there", func() error {
		_, err := adm.ListEndOffsets(t.Context(), topic)
		if err == nil {
			topics, terr := adm.ListTopics(t.Context(), topic)
			err = errors.Join(terr, topics[topic].Err)
		}
		return err
	})
}

// CreateTopicWith makes a topic with configs of its own.
func CreateTopicWith(t testing.TB, addr, topic string, partitions int32, configs map[string]string) {
	t.Helper()
	of := map[string]*string{}
	for key, value := range configs {
		of[key] = &value
	}
	resp, err := Admin(t, addr).CreateTopics(t.Context(), partitions, 1, of, topic)
	if err := errors.Join(err, resp.Error()); err != nil {
		t.Fatalf("create topic %s: %v", topic, err)
	}
}

// Assignment asks the coordinator who owns what. It is an error unless the group is
// Stable with that many members, and each partition has exactly one owner.
func Assignment(ctx context.Context, adm *kadm.Client, group, topic string, members, partitions int) (map[string][]int32, error) {
	described, err := adm.DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	g := described[group]
	if g.Err != nil || g.State != "Stable" || len(g.Members) != members {
		return nil, fmt.Errorf("the group is %s with %d members (%v)", g.State, len(g.Members), g.Err)
	}
	by := map[string][]int32{}
	owner := map[int32]string{}
	for _, m := range g.Members {
		by[m.MemberID] = nil
		a, ok := m.Assigned.AsConsumer()
		if !ok {
			continue
		}
		for _, at := range a.Topics {
			if at.Topic != topic {
				continue
			}
			by[m.MemberID] = append(by[m.MemberID], at.Partitions...)
			for _, p := range at.Partitions {
				if other, taken := owner[p]; taken {
					return nil, fmt.Errorf("partition %d belongs to %s and to %s", p, other, m.MemberID)
				}
				owner[p] = m.MemberID
			}
		}
	}
	if len(owner) != partitions {
		return nil, fmt.Errorf("%d of %d partitions have an owner: %v", len(owner), partitions, by)
	}
	return by, nil
}

// Write writes n records to each of the first partitions of a topic.
func Write(t testing.TB, addr, topic string, partitions, n int) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var records []*kgo.Record
	began := time.Now()
	for i := range n * partitions {
		at := began.Add(time.Duration(i) * time.Millisecond) // each its own, so that there is a newest
		records = append(records, &kgo.Record{Topic: topic, Partition: int32(i % partitions), Timestamp: at, Key: fmt.Append(nil, i), Value: fmt.Append(nil, i)})
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatalf("write to %s: %v", topic, err)
	}
}

// Codec returns how the newest batch of a partition is compressed: none, gzip, snappy,
// lz4 or zstd.
func Codec(t testing.TB, addr, topic string, partition int32) string {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {partition: kgo.NewOffset().AtEnd().Relative(-1)},
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	fetches := cl.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		t.Fatalf("the newest record of partition %d: %v", partition, err)
	}
	records := fetches.Records()
	return []string{"none", "gzip", "snappy", "lz4", "zstd"}[records[len(records)-1].Attrs.CompressionType()]
}

// Producer writes records to every partition until it is stopped.
type Producer struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	ends map[int32]int64
	err  error
}

// Produce starts a producer that writes a record to each partition every interval.
func Produce(t testing.TB, addr, topic string, partitions int32, interval time.Duration) *Producer {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Producer{cancel: cancel, done: make(chan struct{}), ends: map[int32]int64{}}
	go func() {
		defer close(p.done)
		defer cl.Close()
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for n := 0; ; n++ {
			for part := range partitions {
				cl.Produce(context.Background(), &kgo.Record{Topic: topic, Partition: part, Value: fmt.Appendf(nil, "%d", n)}, p.produced)
			}
			select {
			case <-ctx.Done():
				p.fail(cl.Flush(context.Background()))
				return
			case <-tick.C:
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-p.done })
	return p
}

func (p *Producer) produced(r *kgo.Record, err error) {
	p.fail(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.ends[r.Partition] = max(p.ends[r.Partition], r.Offset+1)
	}
}

func (p *Producer) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

// Stop ends the production and returns the end offset of each partition.
func (p *Producer) Stop() (map[int32]int64, error) {
	p.cancel()
	<-p.done
	return p.ends, p.err
}

// WatchCommits polls the group's offsets until the returned function is called, which
// tells whether one ever went back.
func WatchCommits(t testing.TB, adm *kadm.Client, group string) func() error {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		high := map[int32]int64{}
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			offsets, err := adm.FetchOffsets(ctx, group)
			if ctx.Err() != nil {
				done <- nil
				return
			}
			if err == nil {
				for _, o := range offsets.Sorted() {
					if o.At < high[o.Partition] {
						done <- fmt.Errorf("the offset of partition %d went back from %d to %d", o.Partition, high[o.Partition], o.At)
						return
					}
					high[o.Partition] = o.At
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return stop
}
