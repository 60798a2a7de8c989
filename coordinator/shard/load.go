package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// ErrClosed is what Load fails with if the shard was stopped or lost before.
var ErrClosed = errors.New("closed before it was loaded")

// Load reads the shard's log and makes the shard active. It is called once,
// before Run.
func (s *Shard) Load(ctx context.Context) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.State() == Closed {
		return fmt.Errorf("load shard %d: %w", s.n, ErrClosed)
	}
	start := time.Now()
	load, err := s.read(ctx)
	if err != nil {
		err = fmt.Errorf("load shard %d: %w", s.n, err)
		s.in.enter(Closed)
		s.cfg.Listener.OnState(s.n, Closed, Load{}, err)
		return err
	}
	now, wall := s.cfg.Clock()
	s.now, s.seen = now, now
	s.wakeAt = now
	if len(s.fold.changed) > 0 {
		s.fold.at = now + s.cfg.CheckpointInterval
	}
	s.expireAt = now + s.cfg.ExpireInterval
	s.stepAll(now, &group.Loaded{Head: group.Head{Wall: wall}})
	if s.cfg.Topics != nil {
		s.stepAll(now, &group.CheckTopics{Head: group.Head{Wall: wall}, Lookup: s.cfg.Topics})
	}
	if s.cfg.Transactions != nil {
		s.stepAll(now, &group.CheckTransactions{Head: group.Head{Wall: wall}, Lookup: s.cfg.Transactions})
	}
	s.flush()
	load.Groups = len(s.order) - len(s.gone)
	load.Took = time.Since(start)
	if !s.in.enter(Active) {
		return fmt.Errorf("load shard %d: %w", s.n, ErrClosed)
	}
	s.cfg.Listener.OnState(s.n, Active, load, nil)
	return nil
}

// stepAll steps an event on every group.
func (s *Shard) stepAll(now group.Time, ev group.Event) {
	for _, e := range append([]*entry(nil), s.order...) {
		s.step(e, now, ev, origin{})
	}
}

// read applies what the log has: the rows of the checkpoint, then the tail.
func (s *Shard) read(ctx context.Context) (load Load, err error) {
	var last *entry
	var prefix []byte // of the rows of last
	row := func(key, value []byte) error {
		if last == nil || !bytes.HasPrefix(key, prefix) {
			id, err := group.RowGroup(key)
			if err != nil {
				return err
			}
			last = s.entry(id)
			prefix = group.AppendRowPrefix(prefix[:0], id)
		}
		load.Rows++
		return last.m.ApplyRow(key, value)
	}
	var end uint64
	batch := func(first uint64, value []byte) error {
		if end != 0 && first != end {
			return fmt.Errorf("change log: batch %d follows the one that ends before %d", first, end)
		}
		s.fold.logged += len(value)
		return DecodeBatch(first, value, func(seq uint64, id string, rec *group.Record) error {
			if last == nil || last.id != id {
				last = s.entry(id)
			}
			last.m.Apply(rec)
			s.touch(last)
			load.Records++
			end = seq + 1
			return nil
		})
	}
	folded, epoch, err := s.log.Load(ctx, s.n, row, batch)
	if err != nil {
		return load, err
	}
	s.epoch = epoch
	s.seq = max(folded, end)
	s.cur.first = s.seq
	s.folded.Store(folded)
	s.out.durable.Store(s.seq)
	return load, nil
}
