package shard_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// replay is the state that rows and records make, as the rows it would have.
type replay struct {
	env    group.Env
	groups map[string]*group.Machine
	rows   map[string]string
}

func newReplay() *replay {
	return &replay{groups: map[string]*group.Machine{}, rows: map[string]string{}}
}

func (r *replay) machine(id string) *group.Machine {
	if r.groups[id] == nil {
		r.groups[id] = group.New(&r.env, id)
	}
	return r.groups[id]
}

// row applies a row of the base.
func (r *replay) row(key, value []byte) error {
	id, err := group.RowGroup(key)
	if err != nil {
		return err
	}
	r.rows[string(key)] = string(value)
	return r.machine(id).ApplyRow(key, value)
}

// batch applies a batch and calls after for each of its records.
func (r *replay) batch(b shardtest.Batch, after func(next uint64)) error {
	return shard.DecodeBatch(b.First, b.Value, func(seq uint64, id string, rec *group.Record) error {
		m := r.machine(id)
		m.Apply(rec)
		for _, row := range m.Step(0, new(group.Checkpoint)).Rows {
			if row.Value == nil {
				delete(r.rows, string(row.Key))
			} else {
				r.rows[string(row.Key)] = string(row.Value)
			}
		}
		after(seq + 1)
		return nil
	})
}

// aside has every durable batch that a log ever had.
type aside []shardtest.Batch

// add takes the batches that have become durable.
func (a *aside) add(log *shardtest.Log) {
	end := uint64(0)
	if n := len(*a); n > 0 {
		end = (*a)[n-1].First + uint64((*a)[n-1].Count)
	}
	for _, b := range log.Batches(0) {
		if b.First >= end {
			*a = append(*a, b)
		}
	}
}

// check compares, at every moment that base and change log of shard 0 still have,
// what they make with what all batches make. It returns how many moments there were.
func (a aside) check(t *testing.T, log *shardtest.Log) (moments int) {
	t.Helper()
	trimmed := newReplay()
	upto, err := log.BaseRows(t.Context(), 0, nil, trimmed.row)
	if err != nil {
		t.Fatal(err)
	}
	left := log.Batches(0)
	compare := func(whole *replay, at uint64) {
		moments++
		if !maps.Equal(trimmed.rows, whole.rows) {
			t.Fatalf("trimmed to %d, at %d: the rows are\n%q\nwant\n%q", upto, at, trimmed.rows, whole.rows)
		}
	}
	whole := newReplay()
	if upto == 0 {
		compare(whole, 0)
	}
	for _, b := range a {
		if b.First >= upto {
			if len(left) == 0 || left[0].First != b.First || !bytes.Equal(left[0].Value, b.Value) {
				t.Fatalf("trimmed to %d: the batch at %d is not in the log", upto, b.First)
			}
			left = left[1:]
		}
		var states []map[string]string // of the whole history, after each record
		if err := whole.batch(b, func(next uint64) {
			if next == upto {
				compare(whole, next)
			}
			states = append(states, maps.Clone(whole.rows))
		}); err != nil {
			t.Fatal(err)
		}
		if b.First < upto {
			continue
		}
		if err := trimmed.batch(b, func(next uint64) {
			compare(&replay{rows: states[next-b.First-1]}, next)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(left) > 0 {
		t.Fatalf("%d batches in the log that never were there", len(left))
	}
	return moments
}

// TestSimTrim trims at any time of a simulation with members, deletions, expiry and
// crashes: every moment from the base on can be rebuilt exactly.
func TestSimTrim(t *testing.T) {
	trims, moments := 0, 0
	for seed := range uint64(25) {
		s := newSim(t, seed)
		var all aside
		for i := range 400 {
			s.step()
			all.add(s.r.log)
			if s.rnd.IntN(12) == 0 {
				_, wall := s.c.read()
				keep := shard.Keep{Since: wall - group.Time(s.rnd.IntN(20_000)), Excess: s.rnd.Int64N(1500)}
				_, cut, err := s.r.shard.Trim(t.Context(), keep)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if cut > 0 {
					trims++
				}
			}
			if i%40 == 39 {
				moments += all.check(t, s.r.log)
				crashed := s.r.log.Crash(s.rnd.IntN(s.r.log.Pending() + 1))
				here := slices.Clone(all)
				here.add(crashed)
				here.check(t, crashed)
			}
		}
	}
	if trims < 200 || moments < 1000 {
		t.Errorf("the simulation does not do enough: %d trims, %d moments", trims, moments)
	}
}

// TestTrimCrash: between the fold and the disk a crash keeps the fold and the trim
// that came after it, the fold alone, or neither, and the state is the same.
func TestTrimCrash(t *testing.T) {
	h := newHistory(t)
	h.commit("g", "t", 1)
	h.commit("g", "t", 2)
	h.log.Hold()
	h.fold()
	if cut := h.cut(shard.Keep{Since: math.MaxInt64}); cut == 0 || h.log.Pending() != 2 {
		t.Fatalf("%d bytes were cut, %d writes wait", cut, h.log.Pending())
	}
	for keep, want := range []int{2, 2, 0} {
		log := h.log.Crash(keep)
		if got := len(log.Batches(0)); got != want {
			t.Errorf("%d writes kept: %d batches, want %d", keep, got, want)
		}
		r := load(t, log, config())
		a := r.send("fetch", "g", fetch())
		r.turns()
		if got := a.offset(t); got != 2 {
			t.Errorf("%d writes kept: offset %d, want 2", keep, got)
		}
	}
}

// TestTrimInPieces: a piece is about 1000 groups at most, and begins from what the
// one before it has left.
func TestTrimInPieces(t *testing.T) {
	h := newHistory(t)
	for i := range 5000 {
		h.commit(fmt.Sprint("g", i%2500), fmt.Sprint("t", i/2500), int64(i))
	}
	h.fold()
	pieces := 0
	for more := true; more; pieces++ {
		var err error
		if more, _, err = h.s.Trim(t.Context(), shard.Keep{Since: math.MaxInt64}); err != nil {
			t.Fatal(err)
		}
		if h.trim.Rows > 1000 {
			t.Errorf("a piece has %d rows, one of each group", h.trim.Rows)
		}
	}
	if pieces != 5 {
		t.Errorf("%d pieces, want 5", pieces)
	}
	h.wantRebuilt("after a trim")
}

// TestTrimLargeGroup: a group whose rows are larger than what a piece may read takes
// part in few pieces, not in one a batch.
func TestTrimLargeGroup(t *testing.T) {
	h := newHistory(t)
	large := &group.Commit{Generation: -1, Retention: -1, Topics: []group.CommitTopic{{Name: "large"}}}
	for i := range int32(2200) {
		large.Topics[0].Partitions = append(large.Topics[0].Partitions,
			group.CommitPartition{Partition: i, LeaderEpoch: -1, Metadata: string(bytes.Repeat([]byte("m"), 4096))})
	}
	h.step("large", large)
	h.fold()
	h.cut(shard.Keep{Since: math.MaxInt64})
	for i := range 100 {
		h.commit("large", "t", int64(i))
		h.commit("small", "t", int64(i))
	}
	h.fold()
	pieces := 0
	for more := true; more; pieces++ {
		var err error
		if more, _, err = h.s.Trim(t.Context(), shard.Keep{Since: math.MaxInt64}); err != nil {
			t.Fatal(err)
		}
	}
	if first, _, _ := h.log.Bounds(0); pieces != 2 || first != 201 {
		t.Errorf("%d pieces, want 2; the log begins at %d, want 201", pieces, first)
	}
	h.wantRebuilt("after a trim")
}

// slowLog takes its time for a trim.
type slowLog struct {
	*shardtest.Log
	gate chan struct{}
}

func (l slowLog) BaseRows(ctx context.Context, n uint32, prefix []byte, row func(key, value []byte) error) (uint64, error) {
	<-l.gate
	return l.Log.BaseRows(ctx, n, prefix, row)
}

// TestTrimStallsNothing: commits and folds go on while a trim reads.
func TestTrimStallsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slowLog{Log: shardtest.NewLog(), gate: make(chan struct{})}
		cfg := config()
		cfg.CheckpointBytes = 1
		r := &rig{t: t, log: log.Log, shard: shard.New(cfg, 0, log)}
		if err := r.shard.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- r.shard.Run(ctx) }()
		r.submit("commit", "g", commit(0))
		trimmed := make(chan error, 1)
		go func() {
			_, _, err := r.shard.Trim(t.Context(), shard.Keep{Since: math.MaxInt64})
			trimmed <- err
		}()
		synctest.Wait()
		for i := range int64(10) {
			if code := r.submit("commit", "g", commit(i)).code(t); code != group.None {
				t.Fatalf("commit %d: code %d", i, code)
			}
		}
		select {
		case err := <-trimmed:
			t.Fatalf("the trim has ended: %v", err)
		default:
		}
		close(log.gate)
		if err := <-trimmed; err != nil {
			t.Fatal(err)
		}
		if first, _, _ := log.Bounds(0); first != 1 {
			t.Errorf("the log begins at %d, want 1", first)
		}
		cancel()
		<-ended
	})
}
