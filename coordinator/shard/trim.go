package shard

import (
	"context"
	"errors"
	"iter"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// Limits of what one Trim takes, which it holds in memory and hands to the log as
// one write. A batch is taken as a whole, and one always is.
const (
	// trimBytesMax bounds the change log.
	trimBytesMax = 4 << 20
	// trimGroupsMax bounds the groups that it is about.
	trimGroupsMax = 1000
	// trimRowsMax is how many bytes of the base may be read before no further
	// group comes in. Those that have are finished, so that a group that is larger
	// by itself is not read and written anew for each batch.
	trimRowsMax = 8 << 20
)

// errEnough ends a scan.
var errEnough = errors.New("enough")

// Keep says what of a change log stays.
type Keep struct {
	// Since is the Unix time from which on every record stays.
	Since group.Time
	// Excess is about how many bytes at the beginning go nevertheless.
	Excess int64
}

// Trim cuts a piece off the beginning of the change log that need not be kept, and
// folds it into the base: the state at the new beginning, from which together with
// the log every later moment can be rebuilt. It never passes the last checkpoint
// or what is durable. bytes is how much was cut, more tells whether there is more.
//
// It runs beside the turns, on the goroutine of its caller, and machines of its own.
// Two calls must not overlap.
func (s *Shard) Trim(ctx context.Context, keep Keep) (more bool, bytes int64, err error) {
	if s.State() != Active {
		return false, 0, nil
	}
	from, _, err := s.log.Bounds(s.n)
	limit := min(s.folded.Load(), s.out.durable.Load())
	if err != nil || from >= limit {
		return false, 0, err
	}
	c := cut{shard: s, keep: keep, upto: from, env: &group.Env{Config: s.cfg.Group}, groups: map[string]*group.Machine{}}
	err = s.log.Scan(ctx, s.n, from, limit, func(first uint64, value []byte) error { return c.take(ctx, first, value) })
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil || c.upto == from {
		return false, 0, err
	}
	if err := s.log.Trim(s.n, s.epoch, c.upto, c.rows()); err != nil {
		return false, 0, err
	}
	s.cfg.Listener.OnTrim(s.n, Trim{Upto: c.upto, Bytes: c.bytes, Rows: c.written})
	return c.more, c.bytes, nil
}

// cut is a piece of the change log on its way into the base.
type cut struct {
	shard *Shard
	keep  Keep
	env   *group.Env
	// groups are those that the piece is about, as the base has them and then as
	// of upto; order lists them as they came.
	groups map[string]*group.Machine
	order  []*group.Machine
	// loaded is how many bytes of rows these had in the base.
	loaded int
	// upto is the first sequence number after the piece.
	upto  uint64
	bytes int64
	more  bool
	// written counts the rows.
	written int
}

// take adds a batch to the piece, or ends it.
func (c *cut) take(ctx context.Context, first uint64, value []byte) error {
	newest, count := group.Time(0), uint64(0)
	added, last := 0, "" // an upper bound of the groups that come in
	if err := DecodeBatch(first, value, func(_ uint64, id string, rec *group.Record) error {
		newest = max(newest, rec.Wall)
		if c.groups[id] == nil && (added == 0 || id != last) {
			added, last = added+1, id
		}
		count++
		return nil
	}); err != nil {
		return err
	}
	if newest >= c.keep.Since && c.bytes >= c.keep.Excess {
		return errEnough
	}
	if c.full(added) {
		c.more = true
		return errEnough
	}
	if err := DecodeBatch(first, value, func(_ uint64, id string, rec *group.Record) error {
		m, err := c.machine(ctx, id)
		if err == nil {
			m.Apply(rec)
		}
		return err
	}); err != nil {
		return err
	}
	c.upto = first + count
	c.bytes += int64(len(value))
	return nil
}

// full tells whether the piece has no room for a batch that brings so many groups.
func (c *cut) full(added int) bool {
	switch {
	case c.bytes == 0:
		return false
	case added > 0 && (len(c.order)+added > trimGroupsMax || c.loaded >= trimRowsMax):
		return true
	}
	return c.bytes >= trimBytesMax
}

// machine returns a group as the base has it.
func (c *cut) machine(ctx context.Context, id string) (*group.Machine, error) {
	if m := c.groups[id]; m != nil {
		return m, nil
	}
	m := group.New(c.env, id)
	if _, err := c.shard.log.BaseRows(ctx, c.shard.n, group.AppendRowPrefix(nil, id), func(key, value []byte) error {
		c.loaded += len(key) + len(value)
		return m.ApplyRow(key, value)
	}); err != nil {
		return nil, err
	}
	c.groups[id] = m
	c.order = append(c.order, m)
	return m, nil
}

// rows are the rows of the base that the piece changes.
func (c *cut) rows() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		var ev group.Checkpoint
		for _, m := range c.order {
			for _, row := range m.Step(0, &ev).Rows {
				c.written++
				if !yield(row.Key, row.Value) {
					return
				}
			}
		}
	}
}
