package main

import (
	"context"
	"errors"

	"github.com/IBM/sarama"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

func saramaConfig(f event.Flags) *sarama.Config {
	c := sarama.NewConfig()
	c.ClientID = f.ClientID
	c.Version = sarama.V2_8_0_0
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Session.Timeout = f.Session
	c.Consumer.Group.Heartbeat.Interval = f.Heartbeat
	c.Consumer.Group.Rebalance.Timeout = f.Rebalance
	c.Consumer.Group.InstanceId = f.InstanceID
	c.Consumer.Return.Errors = true
	c.Consumer.MaxWaitTime = 250_000_000
	strategy := map[string]func() sarama.BalanceStrategy{
		"range":              sarama.NewBalanceStrategyRange,
		"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
		"sticky":             sarama.NewBalanceStrategySticky,
		"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
	}[f.Strategy]
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy()}
	return c
}

func runSarama(ctx context.Context, f event.Flags) error {
	group, err := sarama.NewConsumerGroup([]string{f.Addr}, f.Group, saramaConfig(f))
	if err != nil {
		return err
	}
	defer group.Close()
	go func() {
		for err := range group.Errors() {
			event.Emit(event.Event{Kind: event.Error, Text: err.Error()})
		}
	}()
	for ctx.Err() == nil {
		err := group.Consume(ctx, []string{f.Topic}, saramaHandler{})
		if errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return err
		}
		if err != nil {
			event.Emit(event.Event{Kind: event.Error, Text: err.Error()})
		}
	}
	return nil
}

type saramaHandler struct{}

func (saramaHandler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (saramaHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (saramaHandler) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	claim := event.Event{Kind: event.Claim, Member: s.MemberID(), Generation: s.GenerationID(), Partition: c.Partition()}
	event.Emit(claim)
	claim.Kind = event.Release
	defer event.Emit(claim)
	for m := range c.Messages() {
		event.Emit(event.Event{Kind: event.Record, Partition: m.Partition, Offset: m.Offset})
		s.MarkMessage(m, "")
		if len(c.Messages()) == 0 { // a commit is a round trip: one for all that have come
			s.Commit()
		}
	}
	return nil
}
