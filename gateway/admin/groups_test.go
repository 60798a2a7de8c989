package admin

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/gateway"
)

func newTestGroups(shards uint32) (*Groups, *Metrics, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.InfoLevel)
	m := NewMetrics("test")
	return NewGroups(m, zap.New(core), shards), m, logs
}

// TestOneLinePerRebalance has the notes of a round with a late joiner: a line with
// its reason for each time that a round starts, nothing for the rest.
func TestOneLinePerRebalance(t *testing.T) {
	g, m, logs := newTestGroups(1)
	g.OnNotes(0, "orders", []group.Note{
		{Rule: group.J4, From: group.Empty, To: group.Empty, Member: "m1"},
		{Rule: group.R1, From: group.Empty, To: group.PreparingRebalance, Member: "m1", Reason: "first member"},
		{Rule: group.R3, From: group.PreparingRebalance, To: group.CompletingRebalance, Generation: 1},
		{Rule: group.R1, From: group.CompletingRebalance, To: group.PreparingRebalance, Member: "m2", Generation: 1, Reason: "late joiner"},
	})
	for range 100 {
		g.OnNotes(0, "orders", []group.Note{{Rule: group.H6, From: group.Stable, To: group.Stable, Member: "m1"}})
	}
	lines := logs.TakeAll()
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2: %v", len(lines), lines)
	}
	last := lines[1]
	fields := last.ContextMap()
	if last.Message != "rebalance" || fields["group"] != "orders" || fields["reason"] != "late joiner" || fields["member"] != "m2" || fields["rule"] != "R1" {
		t.Errorf("%s %v", last.Message, fields)
	}
	if got := figure(t, m, "group_rules_total"); got != 104 {
		t.Errorf("%v rules counted, want 104", got)
	}
	if got := figure(t, m, "group_transitions_total"); got != 3 {
		t.Errorf("%v transitions counted, want 3", got)
	}
}

// TestLoadedOnce has shards that load one after the other, and one that fails.
func TestLoadedOnce(t *testing.T) {
	g, m, logs := newTestGroups(3)
	g.OnState(0, shard.Active, shard.Load{Groups: 5}, nil)
	g.OnState(2, shard.Active, shard.Load{Groups: 7}, nil)
	if n := logs.Len(); n != 0 {
		t.Fatalf("%d lines before all are loaded", n)
	}
	g.OnState(1, shard.Active, shard.Load{}, nil)
	lines := logs.TakeAll()
	if len(lines) != 1 || lines[0].Message != "loaded" || lines[0].ContextMap()["groups"] != int64(12) {
		t.Fatalf("%v", lines)
	}
	if got := figure(t, m, "shards_active"); got != 3 {
		t.Errorf("%v shards active, want 3", got)
	}
	if got := figure(t, m, "groups"); got != 12 {
		t.Errorf("%v groups, want 12", got)
	}
	g.OnState(1, shard.Closed, shard.Load{}, errors.New("disk on fire"))
	lines = logs.TakeAll()
	if len(lines) != 1 || lines[0].Level != zapcore.ErrorLevel || lines[0].ContextMap()["error"] != "disk on fire" {
		t.Errorf("%v", lines)
	}
	if got := figure(t, m, "shards_active"); got != 2 {
		t.Errorf("%v shards active, want 2", got)
	}
}

// TestWarningsAreThrottled has a thousand slow replies and stalls: a line each, and
// the count of those that were not logged with the next one.
func TestWarningsAreThrottled(t *testing.T) {
	g, m, logs := newTestGroups(1)
	for range 1000 {
		g.OnTimeout(0, 2)
		g.OnStall(0, 3*time.Second)
	}
	if n := logs.Len(); n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
	if got := figure(t, m, "shard_reply_timeouts_total"); got != 2000 {
		t.Errorf("%v timeouts counted, want 2000", got)
	}
	g.timeoutLine.next.Store(0)
	logs.TakeAll()
	g.OnTimeout(0, 2)
	if lines := logs.TakeAll(); len(lines) != 1 || lines[0].ContextMap()["dropped"] != int64(999) {
		t.Errorf("%v", lines)
	}
}

// TestRequestsAllocateNothing: what is counted for every request must cost next to
// nothing.
func TestRequestsAllocateNothing(t *testing.T) {
	c := NewMetrics("test").Connections()
	info := gateway.RequestInfo{Listener: "PLAINTEXT", Key: 12, Version: 4, Code: 27, In: 10, Out: 20, Took: time.Millisecond}
	if allocs := testing.AllocsPerRun(100, func() { c.RequestDone(info) }); allocs != 0 {
		t.Errorf("%v allocations a request", allocs)
	}
	g, _, _ := newTestGroups(1)
	notes := []group.Note{{Rule: group.H6, From: group.Stable, To: group.Stable, Member: "m1"}}
	if allocs := testing.AllocsPerRun(100, func() { g.OnNotes(0, "g", notes) }); allocs != 0 {
		t.Errorf("%v allocations for a note", allocs)
	}
}

// TestCodesOutsideOfTheTable has API keys and error codes that Kafka does not have.
func TestCodesOutsideOfTheTable(t *testing.T) {
	m := NewMetrics("test")
	c := m.Connections()
	for _, key := range []int16{-1, 0, 127, 1000, 32767} {
		for _, code := range []int16{-1, 0, 200, 32767} {
			c.RequestDone(gateway.RequestInfo{Key: key, Code: code})
		}
	}
	if got := figure(t, m, "requests_total"); got != 20 {
		t.Errorf("%v requests counted, want 20", got)
	}
}

func BenchmarkRequestDone(b *testing.B) {
	c := NewMetrics("test").Connections()
	info := gateway.RequestInfo{Listener: "PLAINTEXT", Key: 12, Version: 4, In: 10, Out: 20, Took: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		c.RequestDone(info)
	}
}
