package shard_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// history is a shard whose clock a test sets, with a log in memory.
type history struct {
	shard.NopListener
	t    *testing.T
	log  *shardtest.Log
	s    *shard.Shard
	wall group.Time
	now  group.Time
	trim shard.Trim
}

func newHistory(t *testing.T) *history {
	h := &history{t: t, log: shardtest.NewLog(), wall: 1_000_000}
	h.s = shard.New(shard.Config{
		Group:           group.Config{MaxMetadata: 4096, MaxSize: 10, OffsetsRetention: 1 << 40},
		Clock:           func() (now, wall group.Time) { return h.now, h.wall },
		CheckpointBytes: 1 << 30, CheckpointInterval: 1000, ExpireInterval: 1 << 40,
		Listener: h,
	}, 0, h.log)
	if err := h.s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// The methods of a listener that hears of trims only.
func (h *history) OnTrim(_ uint32, t shard.Trim) { h.trim = t }

// step submits an event and does the turns that it takes.
func (h *history) step(id string, ev group.Event) {
	h.s.Submit(h.t.Context(), id, ev, ignored{})
	h.turns()
}

func (h *history) turns() {
	for again := true; again; {
		_, again = h.s.RunOnce(h.now)
	}
}

// fold lets time pass until the next checkpoint is taken.
func (h *history) fold() {
	h.now += 2000
	h.turns()
}

func (h *history) commit(id, topic string, offset int64) {
	h.step(id, &group.Commit{Generation: -1, Retention: -1, Topics: []group.CommitTopic{
		{Name: topic, ID: group.TopicID{1}, Partitions: []group.CommitPartition{{Offset: offset, LeaderEpoch: -1}}},
	}})
}

func (h *history) cut(keep shard.Keep) int64 {
	h.t.Helper()
	total := int64(0)
	for {
		more, cut, err := h.s.Trim(h.t.Context(), keep)
		if err != nil {
			h.t.Fatal(err)
		}
		total += cut
		keep.Excess -= cut
		if !more {
			return total
		}
	}
}

// rebuilt returns the rows of the state that base and change log make together.
func (h *history) rebuilt() map[string][]byte {
	h.t.Helper()
	env := &group.Env{}
	groups := map[string]*group.Machine{}
	machine := func(id string) *group.Machine {
		if groups[id] == nil {
			groups[id] = group.New(env, id)
		}
		return groups[id]
	}
	rows := map[string][]byte{}
	upto, err := h.log.BaseRows(context.Background(), 0, nil, func(key, value []byte) error {
		id, err := group.RowGroup(key)
		if err != nil {
			return err
		}
		rows[string(key)] = bytes.Clone(value)
		return machine(id).ApplyRow(key, value)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	next := upto
	if err := h.log.Scan(context.Background(), 0, 0, math.MaxUint64, func(first uint64, value []byte) error {
		if first != next {
			h.t.Errorf("a batch begins at %d after %d", first, next)
		}
		return shard.DecodeBatch(first, value, func(seq uint64, id string, rec *group.Record) error {
			machine(id).Apply(rec)
			next = seq + 1
			return nil
		})
	}); err != nil {
		h.t.Fatal(err)
	}
	for _, m := range groups {
		for _, row := range m.Step(0, new(group.Checkpoint)).Rows {
			if row.Value == nil {
				delete(rows, string(row.Key))
			} else {
				rows[string(row.Key)] = bytes.Clone(row.Value)
			}
		}
	}
	return rows
}

func (h *history) wantRebuilt(when string) {
	h.t.Helper()
	h.fold()
	if want, got := h.log.Rows(0), h.rebuilt(); !maps.EqualFunc(want, got, bytes.Equal) {
		h.t.Fatalf("%s: base and log make %d rows that are not the %d of the checkpoint", when, len(got), len(want))
	}
}

// TestTrimByTime: what is older than the horizon goes into the base, the rest stays,
// and together they are the state.
func TestTrimByTime(t *testing.T) {
	h := newHistory(t)
	for i := range 100 {
		h.wall++
		h.commit(fmt.Sprint("g", i%7), fmt.Sprint("t", i%3), int64(i))
	}
	if got := h.cut(shard.Keep{Since: h.wall + 1}); got != 0 {
		t.Errorf("%d bytes were cut that no checkpoint contains", got)
	}
	h.fold()
	h.cut(shard.Keep{Since: h.wall - 29})
	if first, _, _ := h.log.Bounds(0); first != 70 || h.trim.Upto != 70 || h.trim.Rows != 21 {
		t.Errorf("the log begins at %d after %+v, want 70 with 21 rows", first, h.trim)
	}
	h.wantRebuilt("after a trim")
	if got := h.cut(shard.Keep{Since: h.wall - 29}); got != 0 {
		t.Errorf("a second trim cut %d bytes", got)
	}
}

// TestTrimBySize: only as much goes as is too much, from the beginning.
func TestTrimBySize(t *testing.T) {
	h := newHistory(t)
	for i := range 100 {
		h.commit("g", "t", int64(i))
	}
	h.fold()
	_, before, _ := h.log.Bounds(0)
	h.cut(shard.Keep{Since: 0, Excess: before / 4})
	if _, after, _ := h.log.Bounds(0); after > before-before/4 || after < before-before/4-100 {
		t.Errorf("the log has %d of %d bytes, want three quarters, to a batch", after, before)
	}
	h.wantRebuilt("after a trim")
}

// TestTrimOff: with a retention of 0 nothing stays but what no checkpoint contains.
func TestTrimOff(t *testing.T) {
	h := newHistory(t)
	h.commit("g", "t", 1)
	h.fold()
	h.commit("g", "t", 2)
	h.cut(shard.Keep{Since: math.MaxInt64})
	if first, _, _ := h.log.Bounds(0); first != 1 {
		t.Errorf("the log begins at %d, want 1", first)
	}
	h.wantRebuilt("after a trim")
}

// TestTrimNotDurable: what has been folded but is not on the disk stays.
func TestTrimNotDurable(t *testing.T) {
	h := newHistory(t)
	h.commit("g", "t", 1)
	h.log.Hold()
	h.commit("g", "t", 2)
	h.fold()
	h.cut(shard.Keep{Since: math.MaxInt64})
	if h.trim.Upto != 1 {
		t.Errorf("trimmed up to %d, want 1", h.trim.Upto)
	}
	h.log.Release()
	h.wantRebuilt("after a trim")
}

// TestTrimForgetsDeletedGroups: a group that is gone by the new beginning leaves
// nothing in the base.
func TestTrimForgetsDeletedGroups(t *testing.T) {
	h := newHistory(t)
	h.commit("gone", "t", 1)
	h.commit("kept", "t", 1)
	h.fold()
	h.cut(shard.Keep{Since: math.MaxInt64})
	h.step("gone", new(group.DeleteGroup))
	h.fold()
	h.cut(shard.Keep{Since: math.MaxInt64})
	rows := 0
	if _, err := h.log.BaseRows(t.Context(), 0, nil, func(key, _ []byte) error {
		rows++
		if id, err := group.RowGroup(key); err != nil || id != "kept" {
			t.Errorf("a row of %q, %v", id, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if rows != 1 {
		t.Errorf("%d rows in the base, want 1", rows)
	}
	h.wantRebuilt("after a trim")
}

// TestTrimRandomly trims at random moments of a random history.
func TestTrimRandomly(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			h := newHistory(t)
			for range 300 {
				h.wall += group.Time(r.IntN(5))
				id, topic := fmt.Sprint("g", r.IntN(6)), fmt.Sprint("t", r.IntN(4))
				switch r.IntN(12) {
				case 0:
					h.step(id, new(group.DeleteGroup))
				case 1:
					h.step(id, &group.TopicDeleted{Name: topic, ID: group.TopicID{1}})
				case 2:
					h.fold()
				case 3:
					h.cut(shard.Keep{Since: h.wall - group.Time(r.IntN(200)), Excess: int64(r.IntN(2000))})
				case 4:
					h.wantRebuilt("in between")
				default:
					h.commit(id, topic, r.Int64N(1000))
				}
			}
			h.wantRebuilt("at the end")
		})
	}
}

// ignored is the sink of requests whose answer does not matter.
type ignored struct{}

// Reply implements [shard.Sink].
func (ignored) Reply(group.Reply) {}
