// Command member-rdkafka is one member of a consumer group on librdkafka (through
// confluent-kafka-go), with the interface of the member command.
package main

import (
	"context"
	"os"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

func main() {
	flags, ctx := event.Parse()
	if err := run(ctx, flags); err != nil {
		event.Emit(event.Event{Kind: event.Error, Text: err.Error()})
		os.Exit(1)
	}
}

func run(ctx context.Context, f event.Flags) error {
	config := kafka.ConfigMap{
		"bootstrap.servers": f.Addr, "client.id": f.ClientID, "group.id": f.Group,
		"partition.assignment.strategy": f.Strategy, "auto.offset.reset": "earliest", "enable.auto.commit": false,
		"session.timeout.ms": int(f.Session.Milliseconds()), "max.poll.interval.ms": int(max(f.Rebalance, f.Session).Milliseconds()),
		"heartbeat.interval.ms": int(f.Heartbeat.Milliseconds()), "fetch.wait.max.ms": 250,
	}
	if f.InstanceID != "" {
		config["group.instance.id"] = f.InstanceID
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
			event.Emit(event.Event{Kind: event.Record, Partition: ev.TopicPartition.Partition, Offset: int64(ev.TopicPartition.Offset)})
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
