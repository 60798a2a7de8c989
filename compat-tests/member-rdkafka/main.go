// Command member-rdkafka is one member of a consumer group, or a producer, on librdkafka
// (through confluent-kafka-go), with the interface of the member command.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

func main() {
	config, ctx := event.Parse()
	_, version := kafka.LibraryVersion()
	event.Emit(event.Event{Kind: event.Version, Text: version})
	run := consume
	if config.Produce > 0 {
		run = produce
	}
	if err := run(ctx, config); err != nil {
		event.Emit(event.Event{Kind: event.Error, Text: err.Error()})
		os.Exit(1)
	}
}

func consume(ctx context.Context, f event.Config) error {
	config := kafka.ConfigMap{
		"bootstrap.servers": f.Addr, "client.id": f.ClientID, "group.id": f.Group,
		"partition.assignment.strategy": f.Strategy, "auto.offset.reset": "earliest", "enable.auto.commit": false,
		"session.timeout.ms": f.SessionMs, "max.poll.interval.ms": max(f.RebalanceMs, f.SessionMs),
		"heartbeat.interval.ms": f.HeartbeatMs, "fetch.wait.max.ms": 250,
	}
	if f.InstanceID != "" {
		config["group.instance.id"] = f.InstanceID
	}
	if !f.Committed { // librdkafka's default is read_committed
		config["isolation.level"] = "read_uncommitted"
	}
	c, err := kafka.NewConsumer(&config)
	if err != nil {
		return err
	}
	owned := map[int32]bool{}
	if err := c.Subscribe(f.Topic, func(c *kafka.Consumer, ev kafka.Event) error { return rebalanced(c, ev, owned) }); err != nil {
		return err
	}
	for ctx.Err() == nil {
		switch ev := c.Poll(100).(type) {
		case *kafka.Message:
			event.Emit(event.Event{Kind: event.Record, Partition: ev.TopicPartition.Partition, Offset: int64(ev.TopicPartition.Offset), Text: string(ev.Value)})
			if _, err := c.CommitMessage(ev); err != nil {
				event.Emit(event.Event{Kind: event.Error, Text: err.Error()})
			}
		case kafka.Error:
			event.Emit(event.Event{Kind: event.Error, Text: ev.Error()})
		}
	}
	return c.Close()
}

func rebalanced(c *kafka.Consumer, ev kafka.Event, owned map[int32]bool) error {
	cooperative := c.GetRebalanceProtocol() == "COOPERATIVE"
	switch ev := ev.(type) {
	case kafka.AssignedPartitions:
		for _, p := range ev.Partitions {
			owned[p.Partition] = true
			event.Emit(event.Event{Kind: event.Claim, Partition: p.Partition})
		}
		if cooperative {
			return c.IncrementalAssign(ev.Partitions)
		}
		return c.Assign(ev.Partitions)
	case kafka.RevokedPartitions:
		for _, p := range ev.Partitions {
			if owned[p.Partition] {
				delete(owned, p.Partition)
				event.Emit(event.Event{Kind: event.Release, Partition: p.Partition})
			}
		}
		if cooperative {
			return c.IncrementalUnassign(ev.Partitions)
		}
		return c.Unassign()
	}
	return nil
}

func produce(ctx context.Context, f event.Config) error {
	config := kafka.ConfigMap{
		"bootstrap.servers": f.Addr, "client.id": f.ClientID, "compression.type": f.Compression,
		"enable.idempotence": f.Idempotent, "acks": -1, "linger.ms": 10,
	}
	if f.Transactional != "" {
		config["transactional.id"] = f.Transactional
	}
	p, err := kafka.NewProducer(&config)
	if err != nil {
		return err
	}
	defer p.Close()
	if f.Transactional != "" {
		if err := errors.Join(p.InitTransactions(ctx), p.BeginTransaction()); err != nil {
			return err
		}
	}
	delivered := make(chan kafka.Event, f.Produce)
	for n := range f.Produce {
		to := kafka.TopicPartition{Topic: &f.Topic, Partition: f.Partition(n)}
		if err := p.Produce(&kafka.Message{TopicPartition: to, Value: []byte(f.Value(n))}, delivered); err != nil {
			return err
		}
	}
	for range f.Produce {
		m := (<-delivered).(*kafka.Message)
		if m.TopicPartition.Error != nil {
			return m.TopicPartition.Error
		}
		event.Emit(event.Event{Kind: event.Produced, Partition: m.TopicPartition.Partition, Offset: int64(m.TopicPartition.Offset), Text: string(m.Value)})
	}
	switch {
	case f.Abort:
		return p.AbortTransaction(ctx)
	case f.Transactional != "":
		return p.CommitTransaction(ctx)
	}
	return nil
}
