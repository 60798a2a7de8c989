package main

import (
	"context"
	"errors"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

func consumeKafkaGo(ctx context.Context, f event.Config) error {
	balancer := map[string]kafka.GroupBalancer{
		"range":      kafka.RangeGroupBalancer{},
		"roundrobin": kafka.RoundRobinGroupBalancer{},
	}[f.Strategy]
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: f.Group, Brokers: []string{f.Addr}, Topics: []string{f.Topic},
		Dialer:         &kafka.Dialer{ClientID: f.ClientID, Timeout: 10 * time.Second},
		GroupBalancers: []kafka.GroupBalancer{balancer}, HeartbeatInterval: f.Heartbeat(),
		SessionTimeout: f.Session(), RebalanceTimeout: f.Rebalance(), JoinGroupBackoff: 500 * time.Millisecond,
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
			emitError(err)
			continue
		}
		for _, a := range gen.Assignments[f.Topic] {
			gen.Start(func(ctx context.Context) { claimKafkaGo(ctx, f, gen, a) })
		}
	}
}

func claimKafkaGo(ctx context.Context, f event.Config, gen *kafka.Generation, a kafka.PartitionAssignment) {
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
		emitError(err)
		return
	}
	for {
		m, err := r.ReadMessage(ctx)
		if errors.Is(err, kafka.ErrGenerationEnded) || ctx.Err() != nil {
			return
		}
		if err != nil {
			emitError(err)
			return
		}
		emitRecord(int32(m.Partition), m.Offset, m.Value)
		err = gen.CommitOffsets(map[string]map[int]int64{f.Topic: {a.ID: m.Offset + 1}})
		if err != nil {
			emitError(err)
		}
	}
}

// partitionKey says in a message where it goes: kafka-go lets a balancer decide, which
// sees the message.
const partitionKey = "partition"

func produceKafkaGo(ctx context.Context, f event.Config) error {
	codec := map[string]kafka.Compression{
		"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
	}[f.Compression]
	w := &kafka.Writer{
		Addr: kafka.TCP(f.Addr), Topic: f.Topic, Compression: codec, RequiredAcks: kafka.RequireAll,
		Transport: &kafka.Transport{ClientID: f.ClientID}, BatchTimeout: 10 * time.Millisecond,
		Balancer: kafka.BalancerFunc(func(m kafka.Message, _ ...int) int {
			for _, h := range m.Headers {
				if h.Key == partitionKey {
					return int(h.Value[0])
				}
			}
			return 0
		}),
		Completion: func(messages []kafka.Message, err error) {
			if err == nil {
				for _, m := range messages {
					emitProduced(int32(m.Partition), m.Offset, string(m.Value))
				}
			}
		},
	}
	defer w.Close()
	var messages []kafka.Message
	for n := range f.Produce {
		to := kafka.Header{Key: partitionKey, Value: []byte{byte(f.Partition(n))}}
		messages = append(messages, kafka.Message{Value: []byte(f.Value(n)), Headers: []kafka.Header{to}})
	}
	return w.WriteMessages(ctx, messages...)
}
