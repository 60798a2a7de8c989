// Package shardtest has a log in memory whose durability a test controls, to run
// shards without a disk.
package shardtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/shard"
)

// Log implements [shard.Log] in memory. At first everything is durable at once;
// after [Log.Hold] it is when the test says so. It panics where a shard breaks the
// rules of the interface: a gap between batches, a checkpoint of what was not
// appended, a trim past it.
type Log struct {
	mu      sync.Mutex
	shards  map[uint32]*state
	holding bool
	pending []op
	err     error
	owned   time.Time
	appends int
}

// state is one shard as it would be found after a crash, and what was handed in.
type state struct {
	rows, base map[string][]byte
	batches    []Batch
	folded     uint64
	upto       uint64 // of the base
	epoch      uint64
	// end and checkpointed are of what was handed in, durable or not.
	end, checkpointed uint64
	// trims were handed in and are not durable; they can be seen all the same.
	trims []trim
}

// trim is one cut of the change log.
type trim struct {
	rows changes
	upto uint64
}

// seen returns the rows of the base with a prefix as they are seen.
func (s *state) seen(prefix []byte) (rows map[string][]byte, upto uint64) {
	rows, upto = map[string][]byte{}, s.upto
	for key, value := range s.base {
		if strings.HasPrefix(key, string(prefix)) {
			rows[key] = value
		}
	}
	for _, t := range s.trims {
		t.rows.apply(rows)
		upto = t.upto
	}
	return rows, upto
}

// left returns the durable batches that are seen.
func (s *state) left() []Batch {
	upto := s.upto
	if n := len(s.trims); n > 0 {
		upto = s.trims[n-1].upto
	}
	return slices.Clone(from(s.batches, upto))
}

// from returns the batches that have records from upto on.
func from(batches []Batch, upto uint64) []Batch {
	for len(batches) > 0 && batches[0].end() <= upto {
		batches = batches[1:]
	}
	return batches
}

// Batch is one batch of a change log.
type Batch struct {
	First uint64
	Count int
	Value []byte
}

// end is the first sequence number after the batch.
func (b Batch) end() uint64 { return b.First + uint64(b.Count) }

// op is something handed in that is not durable.
type op struct {
	apply func(l *Log)
	done  func(error)
}

var _ shard.Log = (*Log)(nil)

// NewLog returns an empty log.
func NewLog() *Log { return &Log{shards: map[uint32]*state{}} }

// shard returns the state of a shard. l.mu is held.
func (l *Log) shard(n uint32) *state {
	s := l.shards[n]
	if s == nil {
		s = &state{rows: map[string][]byte{}, base: map[string][]byte{}}
		l.shards[n] = s
	}
	return s
}

// Hold keeps what is handed in from now on from becoming durable.
func (l *Log) Hold() {
	l.mu.Lock()
	l.holding = true
	l.mu.Unlock()
}

// Sync makes the oldest n things that were handed in durable, and returns how many
// that were.
func (l *Log) Sync(n int) int {
	for i := range n {
		l.mu.Lock()
		if len(l.pending) == 0 || l.err != nil {
			l.mu.Unlock()
			return i
		}
		o := l.pending[0]
		l.pending = l.pending[1:]
		o.apply(l)
		l.mu.Unlock()
		if o.done != nil {
			o.done(nil)
		}
	}
	return n
}

// Release makes everything durable, and what comes later at once.
func (l *Log) Release() {
	for l.Sync(1) > 0 {
	}
	l.mu.Lock()
	l.holding = false
	l.mu.Unlock()
	l.Sync(l.Pending())
}

// Fail makes every append that is not durable fail, and all later ones.
func (l *Log) Fail(err error) {
	l.mu.Lock()
	l.err = err
	pending := l.pending
	l.pending = nil
	l.mu.Unlock()
	for _, o := range pending {
		if o.done != nil {
			o.done(err)
		}
	}
}

// Pending tells how many things are not durable.
func (l *Log) Pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending)
}

// Appends tells how many batches were appended.
func (l *Log) Appends() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.appends
}

// OwnUntil sets what OwnedUntil answers.
func (l *Log) OwnUntil(t time.Time) {
	l.mu.Lock()
	l.owned = t
	l.mu.Unlock()
}

// Crash returns what a crash leaves: everything durable, and of the rest the
// oldest keep things.
func (l *Log) Crash(keep int) *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	after := NewLog()
	for n, s := range l.shards {
		after.shards[n] = &state{
			rows: maps.Clone(s.rows), base: maps.Clone(s.base), batches: slices.Clone(s.batches),
			folded: s.folded, upto: s.upto, epoch: s.epoch,
		}
	}
	for _, o := range l.pending[:min(keep, len(l.pending))] {
		o.apply(after)
	}
	for _, s := range after.shards {
		s.checkpointed, s.end = s.folded, s.folded
		if n := len(s.batches); n > 0 {
			s.end = max(s.end, s.batches[n-1].end())
		}
	}
	return after
}

// Checkpointed returns what is left without the change log behind the checkpoint.
func (l *Log) Checkpointed() *Log {
	after := l.Crash(0)
	for _, s := range after.shards {
		s.batches = nil
		s.end = s.folded
	}
	return after
}

// Batches returns the durable batches of a shard that were not trimmed.
func (l *Log) Batches(n uint32) []Batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shard(n).left()
}

// Rows returns the durable rows of the checkpoint of a shard.
func (l *Log) Rows(n uint32) map[string][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.shard(n).rows)
}

// Load implements [shard.Log].
func (l *Log) Load(ctx context.Context, n uint32, row func(key, value []byte) error, batch func(first uint64, value []byte) error) (folded, epoch uint64, err error) {
	l.mu.Lock()
	s := l.shard(n)
	s.epoch++
	folded, epoch = s.folded, s.epoch
	rows, batches := maps.Clone(s.rows), slices.Clone(s.batches)
	l.mu.Unlock()
	if err := eachRow(rows, nil, row); err != nil {
		return 0, 0, err
	}
	for _, b := range batches {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		if b.end() <= folded {
			continue
		}
		if b.First < folded {
			panic("shardtest: a checkpoint ends inside of a batch")
		}
		if err := batch(b.First, bytes.Clone(b.Value)); err != nil {
			return 0, 0, err
		}
	}
	return folded, epoch, nil
}

// eachRow calls f with the rows with a prefix, in key order.
func eachRow(rows map[string][]byte, prefix []byte, f func(key, value []byte) error) error {
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if !bytes.HasPrefix([]byte(key), prefix) {
			continue
		}
		if err := f([]byte(key), bytes.Clone(rows[key])); err != nil {
			return err
		}
	}
	return nil
}

// Append implements [shard.Log].
func (l *Log) Append(n uint32, epoch, first uint64, count int, value []byte, done func(error)) {
	l.mu.Lock()
	s := l.shard(n)
	l.check(s, epoch)
	if first != s.end || count == 0 {
		panic(fmt.Sprintf("shardtest: batch of %d at %d, want one at %d", count, first, s.end))
	}
	b := Batch{First: first, Count: count, Value: bytes.Clone(value)}
	s.end = b.end()
	l.appends++
	given := value
	l.hand(op{
		apply: func(l *Log) {
			if !bytes.Equal(given, b.Value) {
				panic("shardtest: a batch was changed before it was durable")
			}
			s := l.shard(n)
			s.batches = append(s.batches, b)
		},
		done: done,
	})
}

// Checkpoint implements [shard.Log].
func (l *Log) Checkpoint(n uint32, epoch, folded uint64, rows iter.Seq2[[]byte, []byte]) {
	l.mu.Lock()
	s := l.shard(n)
	l.check(s, epoch)
	if folded > s.end || folded < s.checkpointed {
		panic(fmt.Sprintf("shardtest: checkpoint at %d, the last is at %d and the log ends at %d", folded, s.checkpointed, s.end))
	}
	s.checkpointed = folded
	changes := collect(rows)
	l.hand(op{apply: func(l *Log) {
		s := l.shard(n)
		changes.apply(s.rows)
		s.folded = folded
	}})
}

// check panics if the epoch is not that of the last Load. l.mu is held.
func (l *Log) check(s *state, epoch uint64) {
	if epoch != s.epoch {
		panic(fmt.Sprintf("shardtest: write with epoch %d, want %d", epoch, s.epoch))
	}
}

// hand takes an op; l.mu is held and given back.
func (l *Log) hand(o op) {
	if l.err != nil {
		err := l.err
		l.mu.Unlock()
		if o.done != nil {
			o.done(err)
		}
		return
	}
	if l.holding || len(l.pending) > 0 {
		l.pending = append(l.pending, o)
		l.mu.Unlock()
		return
	}
	o.apply(l)
	l.mu.Unlock()
	if o.done != nil {
		o.done(nil)
	}
}

// changes are rows that were handed in.
type changes []struct {
	key   string
	value []byte
}

// collect copies rows.
func collect(rows iter.Seq2[[]byte, []byte]) (c changes) {
	for key, value := range rows {
		if value != nil {
			value = append([]byte{}, value...)
		}
		c = append(c, struct {
			key   string
			value []byte
		}{string(key), value})
	}
	return c
}

// apply changes rows.
func (c changes) apply(rows map[string][]byte) {
	for _, r := range c {
		if r.value == nil {
			delete(rows, r.key)
		} else {
			rows[r.key] = r.value
		}
	}
}

// Scan implements [shard.Log].
func (l *Log) Scan(ctx context.Context, n uint32, from, to uint64, batch func(first uint64, value []byte) error) error {
	for _, b := range l.Batches(n) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b.end() <= from || b.First >= to {
			continue
		}
		if err := batch(b.First, b.Value); err != nil {
			return err
		}
	}
	return nil
}

// Bounds implements [shard.Log].
func (l *Log) Bounds(n uint32) (first uint64, size int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.shard(n)
	first = s.end
	for i, b := range s.left() {
		if i == 0 {
			first = b.First
		}
		size += int64(len(b.Value))
	}
	return first, size, nil
}

// BaseRows implements [shard.Log].
func (l *Log) BaseRows(ctx context.Context, n uint32, prefix []byte, row func(key, value []byte) error) (upto uint64, err error) {
	l.mu.Lock()
	rows, upto := l.shard(n).seen(prefix)
	l.mu.Unlock()
	return upto, eachRow(rows, prefix, row)
}

// errTrim is what a trim fails with that goes too far.
var errTrim = errors.New("shardtest: trim past the checkpoint, or what is durable")

// Trim implements [shard.Log].
func (l *Log) Trim(n uint32, epoch, upto uint64, rows iter.Seq2[[]byte, []byte]) error {
	l.mu.Lock()
	s := l.shard(n)
	l.check(s, epoch)
	durable := s.folded
	if last := len(s.batches) - 1; last >= 0 {
		durable = max(durable, s.batches[last].end())
	}
	if upto > min(s.checkpointed, durable) {
		l.mu.Unlock()
		return errTrim
	}
	if err := l.err; err != nil {
		l.mu.Unlock()
		return err
	}
	t := trim{rows: collect(rows), upto: upto}
	s.trims = append(s.trims, t)
	l.hand(op{apply: func(l *Log) {
		s := l.shard(n)
		t.rows.apply(s.base)
		s.upto = upto
		s.batches = from(s.batches, upto)
		s.trims = s.trims[min(1, len(s.trims)):] // a crash has forgotten what it was seen to be
	}})
	return nil
}

// OwnedUntil implements [shard.Log].
func (l *Log) OwnedUntil(uint32) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owned
}
