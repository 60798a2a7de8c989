package main

import (
	"context"
	"errors"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

func runKafkaGo(ctx context.Context, f event.Flags) error {
	balancer := map[string]kafka.GroupBalancer{
		"range":      kafka.RangeGroupBalancer{},
		"roundrobin": kafka.RoundRobinGroupBalancer{},
	}[f.Strategy]
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: f.Group, Brokers: []string{f.Addr}, Topics: []string{f.Topic},
		Dialer:         &kafka.Dialer{ClientID: f.ClientID, Timeout: 10 * time.Second},
		GroupBalancers: []kafka.GroupBalancer{balancer}, HeartbeatInterval: f.Heartbeat,
		SessionTimeout: f.Session, RebalanceTimeout: f.Rebalance, JoinGroupBackoff: 500 * time.Millisecond,
		StartOffset: kafka.FirstOffset,
	})
	if err != nil {
		return err
	}
	defer group.Close()
	for {
		gen, err := group.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			event.Emit(event.Event{Kind: event.Error, Text: err.Error()})
			continue
		}
		for _, a := range gen.Assignments[f.Topic] {
			gen.Start(func(ctx context.Context) { consumeKafkaGo(ctx, f, gen, a) })
		}
	}
}

func consumeKafkaGo(ctx context.Context, f event.Flags, gen *kafka.Generation, a kafka.PartitionAssignment) {
	claim := event.Event{Kind: event.Claim, Member: gen.MemberID, Generation: gen.ID, Partition: int32(a.ID)}
	event.Emit(claim)
	claim.Kind = event.Release
	defer event.Emit(claim)
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{f.Addr}, Topic: f.Topic, Partition: a.ID,
		MaxWait: 250 * time.Millisecond, MinBytes: 1, MaxBytes: 1 << 20,
	})
	defer r.Close()
	if err := r.SetOffset(a.Offset); err != nil {
		event.Emit(event.Event{Kind: event.Error, Text: err.Error()})
		return
	}
	for {
		m, err := r.ReadMessage(ctx)
		if errors.Is(err, kafka.ErrGenerationEnded) || ctx.Err() != nil {
			return
		}
		if err != nil {
			event.Emit(event.Event{Kind: event.Error, Text: err.Error()})
			return
		}
		event.Emit(event.Event{Kind: event.Record, Partition: int32(m.Partition), Offset: m.Offset})
		err = gen.CommitOffsets(map[string]map[int]int64{f.Topic: {a.ID: m.Offset + 1}})
		if err != nil {
			event.Emit(event.Event{Kind: event.Error, Text: err.Error()})
		}
	}
}
