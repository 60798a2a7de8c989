package main

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

func runFranz(ctx context.Context, f event.Flags) error {
	balancer := map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"roundrobin":         kgo.RoundRobinBalancer(),
		"sticky":             kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}[f.Strategy]
	owned := owner{parts: map[int32]bool{}}
	opts := []kgo.Opt{
		kgo.SeedBrokers(f.Addr), kgo.ClientID(f.ClientID),
		kgo.ConsumerGroup(f.Group), kgo.ConsumeTopics(f.Topic), kgo.Balancers(balancer),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.SessionTimeout(f.Session), kgo.RebalanceTimeout(f.Rebalance), kgo.HeartbeatInterval(f.Heartbeat),
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
			event.Emit(event.Event{Kind: event.Error, Text: err.Error()})
		}
	})
	records := fetches.Records()
	if len(records) == 0 {
		return
	}
	for _, r := range records {
		event.Emit(event.Event{Kind: event.Record, Partition: r.Partition, Offset: r.Offset})
	}
	if err := cl.CommitRecords(ctx, records...); err != nil && ctx.Err() == nil {
		event.Emit(event.Event{Kind: event.Error, Text: err.Error()})
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
