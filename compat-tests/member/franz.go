package main

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

func consumeFranz(ctx context.Context, f event.Config) error {
	known := map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"roundrobin":         kgo.RoundRobinBalancer(),
		"sticky":             kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	var balancers []kgo.GroupBalancer
	for name := range strings.SplitSeq(f.Strategy, ",") {
		balancers = append(balancers, known[name])
	}
	owned := owner{parts: map[int32]bool{}}
	opts := []kgo.Opt{
		kgo.SeedBrokers(f.Addr), kgo.ClientID(f.ClientID),
		kgo.ConsumerGroup(f.Group), kgo.ConsumeTopics(f.Topic), kgo.Balancers(balancers...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.SessionTimeout(f.Session()), kgo.RebalanceTimeout(f.Rebalance()), kgo.HeartbeatInterval(f.Heartbeat()),
		kgo.FetchMaxWait(250_000_000), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, cl *kgo.Client, added map[string][]int32) {
			owned.claim(cl, added[f.Topic])
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
			owned.release(gone[f.Topic])
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
			owned.release(gone[f.Topic])
		}),
	}
	if f.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(f.InstanceID))
	}
	if f.Committed {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer cl.CloseAllowingRebalance()
	for ctx.Err() == nil {
		pollFranz(ctx, cl)
	}
	return nil
}

func pollFranz(ctx context.Context, cl *kgo.Client) {
	defer cl.AllowRebalance()
	fetches := cl.PollFetches(ctx)
	fetches.EachError(func(_ string, _ int32, err error) {
		if !errors.Is(err, context.Canceled) {
			emitError(err)
		}
	})
	records := fetches.Records()
	if len(records) == 0 {
		return
	}
	for _, r := range records {
		emitRecord(r.Partition, r.Offset, r.Value)
	}
	if err := cl.CommitRecords(ctx, records...); err != nil && ctx.Err() == nil {
		emitError(err)
	}
}

// owner remembers what a member owns, since callbacks name only what changed.
type owner struct {
	mu    sync.Mutex
	parts map[int32]bool
}

func (o *owner) claim(cl *kgo.Client, parts []int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	member, generation := cl.GroupMetadata()
	for _, p := range parts {
		o.parts[p] = true
		event.Emit(event.Event{Kind: event.Claim, Member: member, Generation: generation, Partition: p})
	}
}

func (o *owner) release(parts []int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range parts {
		if o.parts[p] {
			delete(o.parts, p)
			event.Emit(event.Event{Kind: event.Release, Partition: p})
		}
	}
}

func produceFranz(ctx context.Context, f event.Config) error {
	codec := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[f.Compression]
	opts := []kgo.Opt{
		kgo.SeedBrokers(f.Addr), kgo.ClientID(f.ClientID), kgo.ProducerBatchCompression(codec),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(10_000_000),
	}
	if !f.Idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	if f.Transactional != "" {
		opts = append(opts, kgo.TransactionalID(f.Transactional))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	if f.Transactional != "" {
		if err := cl.BeginTransaction(); err != nil {
			return err
		}
	}
	var records []*kgo.Record
	for n := range f.Produce {
		records = append(records, &kgo.Record{Topic: f.Topic, Partition: f.Partition(n), Value: []byte(f.Value(n))})
	}
	for _, r := range cl.ProduceSync(ctx, records...) {
		if r.Err != nil {
			return r.Err
		}
		emitProduced(r.Record.Partition, r.Record.Offset, string(r.Record.Value))
	}
	if f.Transactional != "" {
		return cl.EndTransaction(ctx, kgo.TransactionEndTry(!f.Abort))
	}
	return nil
}
