package shard

import (
	"context"
	"iter"
	"time"
)

// Log is where shards keep their records. It knows shards, sequence numbers and
// bytes, nothing of groups. A sequence number counts records, from 0; a batch has
// the numbers first to first+count-1. All methods may be called concurrently for
// different shards; for one shard appends and checkpoints come from one goroutine.
type Log interface {
	// Load reads a shard: row gets each row of the checkpoint in key order, then
	// batch gets every batch whose records the checkpoint does not contain, in
	// order. The slices are valid during the call only. folded is the sequence
	// number of the first record that the checkpoint does not contain; epoch is
	// that of the owner and grows with every Load of a writer.
	Load(ctx context.Context, shard uint32, row func(key, value []byte) error, batch func(first uint64, value []byte) error) (folded, epoch uint64, err error)

	// Append writes one batch, atomically and durably, and calls done once, with
	// nil when it is durable or with the error that ends the store. Calls of done
	// for one shard come in the order of the appends, from any goroutine, and must
	// not block. Append itself blocks while too many bytes wait for the disk. The
	// log keeps value until done.
	Append(shard uint32, epoch, first uint64, count int, value []byte, done func(error))

	// Checkpoint replaces rows (a nil value deletes one) and remembers folded,
	// atomically, behind every append made before it and without a sync of its
	// own. rows is consumed before Checkpoint returns.
	Checkpoint(shard uint32, epoch, folded uint64, rows iter.Seq2[[]byte, []byte])

	// Scan reads the batches of the change log with records in [from, to), in
	// order; only what is durable.
	Scan(ctx context.Context, shard uint32, from, to uint64, batch func(first uint64, value []byte) error) error

	// Bounds returns the first sequence number that the change log still has and
	// how many bytes its batches take.
	Bounds(shard uint32) (first uint64, bytes int64, err error)

	// BaseRows reads the rows of the base (what Trim folded) whose key begins with
	// prefix, in key order; upto is the first sequence number it does not contain.
	BaseRows(ctx context.Context, shard uint32, prefix []byte, row func(key, value []byte) error) (upto uint64, err error)

	// Trim removes the batches before upto from the change log and at the same
	// time replaces rows of the base, without a sync of its own; when it returns nil,
	// BaseRows and Bounds show that. It never passes the folded of the last
	// Checkpoint or what is durable: that is an error. Only one goroutine trims a
	// shard.
	Trim(shard uint32, epoch, upto uint64, rows iter.Seq2[[]byte, []byte]) error

	// OwnedUntil is the time up to which this process may answer for the shard;
	// the zero time means for ever.
	OwnedUntil(shard uint32) time.Time
}
