package compat

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// TestExactlyOnce copies a topic to another in transactions, with the offsets that it
// has read in them, while the server is killed again and again. Who reads committed
// records of the copy gets each once.
func TestExactlyOnce(t *testing.T) {
	const partitions, each, kills = 2, 400, 4
	srv := rig.Start(t)
	ours(t, srv)
	in, out := unique(t, "in"), unique(t, "out")
	adm := rig.Admin(t, srv.Addr)
	rig.CreateTopic(t, adm, in, partitions)
	rig.CreateTopic(t, adm, out, partitions)
	rig.Write(t, srv.Addr, in, partitions, each)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	copied := make(chan int, partitions*each)
	stopped := make(chan error, 1)
	copying, stop := context.WithCancel(ctx)
	go func() { stopped <- copyTopic(copying, srv.Addr, unique(t, "g"), in, out, copied) }()
	for range kills {
		<-copied // in the middle of what follows
		srv.Kill()
		srv.Restart()
	}
	seen := map[string]int{}
	reader, err := kgo.NewClient(kgo.SeedBrokers(srv.Addr), kgo.ConsumeTopics(out), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for len(seen) < partitions*each {
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d records came", len(seen), partitions*each)
		}
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++ })
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	for value, n := range seen {
		if n != 1 {
			t.Errorf("record %s came %d times", value, n)
		}
	}
}

// copyTopic consumes, transforms nothing and produces until ctx ends, a few records in
// a transaction, and reports each that has committed.
func copyTopic(ctx context.Context, addr, group, in, out string, copied chan<- int) error {
	s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(in),
		kgo.TransactionalID(group), kgo.TransactionTimeout(5*time.Second), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.DefaultProduceTopic(out), kgo.FetchMaxPartitionBytes(2000),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer s.Close()
	for ctx.Err() == nil {
		fetches := s.PollRecords(ctx, 20)
		if ctx.Err() != nil {
			return nil
		}
		if err := s.Begin(); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		fetches.EachRecord(func(r *kgo.Record) { s.Produce(ctx, &kgo.Record{Key: r.Key, Value: r.Value}, nil) })
		committed, err := s.End(context.WithoutCancel(ctx), true)
		if err != nil {
			return fmt.Errorf("end: %w", err)
		}
		if committed {
			select {
			case copied <- 1:
			default:
			}
		}
	}
	return nil
}
