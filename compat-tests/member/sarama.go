package main

import (
	"context"
	"errors"
	"strings"

	"github.com/IBM/sarama"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

func saramaConsumer(f event.Config) *sarama.Config {
	c := sarama.NewConfig()
	c.ClientID = f.ClientID
	c.Version = sarama.V2_8_0_0
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Session.Timeout = f.Session()
	c.Consumer.Group.Heartbeat.Interval = f.Heartbeat()
	c.Consumer.Group.Rebalance.Timeout = f.Rebalance()
	c.Consumer.Group.InstanceId = f.InstanceID
	c.Consumer.Return.Errors = true
	c.Consumer.MaxWaitTime = 250_000_000
	if f.Committed {
		c.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	known := map[string]func() sarama.BalanceStrategy{
		"range":              sarama.NewBalanceStrategyRange,
		"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
		"sticky":             sarama.NewBalanceStrategySticky,
		"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
	}
	c.Consumer.Group.Rebalance.GroupStrategies = nil
	for name := range strings.SplitSeq(f.Strategy, ",") {
		c.Consumer.Group.Rebalance.GroupStrategies = append(c.Consumer.Group.Rebalance.GroupStrategies, known[name]())
	}
	return c
}

func consumeSarama(ctx context.Context, f event.Config) error {
	group, err := sarama.NewConsumerGroup([]string{f.Addr}, f.Group, saramaConsumer(f))
	if err != nil {
		return err
	}
	defer group.Close()
	go func() {
		for err := range group.Errors() {
			emitError(err)
		}
	}()
	for ctx.Err() == nil {
		err := group.Consume(ctx, []string{f.Topic}, saramaHandler{})
		if errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return err
		}
		if err != nil {
			emitError(err)
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
		emitRecord(m.Partition, m.Offset, m.Value)
		s.MarkMessage(m, "")
		if len(c.Messages()) == 0 { // a commit is a round trip: one for all that have come
			s.Commit()
		}
	}
	return nil
}

func produceSarama(_ context.Context, f event.Config) error {
	c := sarama.NewConfig()
	c.ClientID = f.ClientID
	c.Version = sarama.V2_8_0_0
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Return.Successes = true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	if err := c.Producer.Compression.UnmarshalText([]byte(f.Compression)); err != nil {
		return err
	}
	if f.Idempotent {
		c.Producer.Idempotent, c.Net.MaxOpenRequests = true, 1
		c.Producer.Transaction.ID = f.Transactional
	}
	p, err := sarama.NewSyncProducer([]string{f.Addr}, c)
	if err != nil {
		return err
	}
	defer p.Close()
	if f.Transactional != "" {
		if err := p.BeginTxn(); err != nil {
			return err
		}
	}
	var messages []*sarama.ProducerMessage
	for n := range f.Produce {
		messages = append(messages, &sarama.ProducerMessage{Topic: f.Topic, Partition: f.Partition(n), Value: sarama.StringEncoder(f.Value(n))})
	}
	if err := p.SendMessages(messages); err != nil {
		return err
	}
	for n, m := range messages {
		emitProduced(m.Partition, m.Offset, f.Value(n))
	}
	switch {
	case f.Abort:
		return p.AbortTxn()
	case f.Transactional != "":
		return p.CommitTxn()
	}
	return nil
}
