package groups

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall-mq/rollcall/store"
)

// rowsPerCheck is how many rows are read between two looks at the context.
const rowsPerCheck = 256

// Load makes the caller the owner of a shard and reads it: row gets each state row
// in key order, then batch gets every batch with records from folded on, in order.
// The slices are valid during the call only. folded is the first sequence number
// that the state rows do not contain; epoch goes with everything that the owner
// writes, and fences earlier owners. An error of row or batch is returned.
func (l *Log) Load(
	ctx context.Context, n uint32,
	row func(key, value []byte) error, batch func(first uint64, value []byte) error,
) (folded, epoch uint64, err error) {
	if err := l.own(ctx, n); err != nil {
		return 0, 0, err
	}
	s := &l.shards[n]
	s.mu.Lock()
	folded, epoch = s.folded, s.epoch
	to, rows := s.next, s.rows
	s.mu.Unlock()
	if rows {
		if _, err := l.rows(ctx, l.db, stateSpace, n, nil, row); err != nil {
			return 0, 0, fmt.Errorf("state of shard %d: %w", n, err)
		}
	}
	if err := l.scan(ctx, n, folded, to, batch); err != nil {
		return 0, 0, fmt.Errorf("change log of shard %d: %w", n, err)
	}
	return folded, epoch, nil
}

// own begins a new epoch. What an earlier owner handed in before is waited for, so
// that its records are read; what it hands in later is refused.
func (l *Log) own(ctx context.Context, n uint32) error {
	if err := errors.Join(l.committer.Err(), ctx.Err()); err != nil {
		return err
	}
	s := &l.shards[n]
	s.mu.Lock()
	s.epoch++
	barrier := s.loaded
	s.loaded = true
	epoch := metaValue(s.epoch)
	result := make(chan error, 1)
	l.committer.Submit(store.Op{
		// The first owner since the start has nobody to wait for, and the epoch is
		// on disk before anything that it writes.
		Sync:  barrier,
		Write: func(b *store.Batch) { b.Set(metaKey(n, epochRow), epoch) },
		Done:  func(err error) { result <- err },
	})
	s.mu.Unlock()
	if !barrier {
		return nil
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Scan reads the batches that have records in [from, to), in order, and only what
// is durable. If the log has been trimmed beyond from, the first batch begins later.
func (l *Log) Scan(ctx context.Context, n uint32, from, to uint64, batch func(first uint64, value []byte) error) error {
	return l.scan(ctx, n, from, min(to, l.shards[n].durable.Load()), batch)
}

func (l *Log) scan(ctx context.Context, n uint32, from, to uint64, batch func(first uint64, value []byte) error) (err error) {
	if from >= to {
		return nil
	}
	low := l.shards[n].first.Load()
	if low >= to {
		return nil
	}
	it, err := l.db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: logKey(n, low), UpperBound: logKey(n, to)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	read := 0
	for ok := seekBatch(it, n, from); ok; ok = it.Next() {
		if read++; read%rowsPerCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		first, err := logKeyFirst(it.Key())
		if err != nil {
			return err
		}
		head, records, err := parseBatch(it.Value())
		if err != nil {
			return err
		}
		if first+uint64(head.count) <= from {
			continue
		}
		if err := batch(first, records); err != nil {
			return err
		}
	}
	return it.Error()
}

// BaseRows reads the base rows whose key begins with prefix, in key order. upto is
// the first sequence number that the base does not contain: 0 as long as nothing
// was trimmed.
func (l *Log) BaseRows(ctx context.Context, n uint32, prefix []byte, row func(key, value []byte) error) (upto uint64, err error) {
	snapshot := l.db.NewSnapshot()
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	return l.rows(ctx, snapshot, baseSpace, n, prefix, row)
}

// rows reads the rows of one space; for the base it returns what they reach to.
func (l *Log) rows(
	ctx context.Context, db pebble.Reader, sp space, n uint32, prefix []byte,
	row func(key, value []byte) error,
) (upto uint64, err error) {
	if sp == baseSpace {
		if upto, err = readMeta(db, n, baseRow); err != nil {
			return 0, err
		}
	}
	low := prefixKey(sp, n, prefix)
	it, err := db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: low, UpperBound: prefixEnd(low)})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	read := 0
	for ok := it.First(); ok; ok = it.Next() {
		if read++; read%rowsPerCheck == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err := row(it.Key()[prefixLen:], it.Value()); err != nil {
			return 0, err
		}
	}
	return upto, it.Error()
}

func readMeta(db pebble.Reader, n uint32, name metaName) (uint64, error) {
	value, closer, err := db.Get(metaKey(n, name))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	number, err := parseMeta(value)
	return number, errors.Join(err, closer.Close())
}
