package topics

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall-mq/rollcall/store"
)

// partitionRowVersion is the version of the rows of partitions.
const partitionRowVersion = 1

// partitionRow is what is stored of a partition itself, once its log does not begin
// at offset 0 any more.
type partitionRow struct {
	// start is the first offset that can be read.
	start int64
	// cleaned is up to where the partition is compacted. Rows may end before it.
	cleaned int64
}

func (r partitionRow) encode() []byte {
	return binary.AppendVarint(binary.AppendVarint([]byte{partitionRowVersion}, r.start), r.cleaned)
}

func decodePartitionRow(b []byte) (row partitionRow, err error) {
	r := rowReader{b: b}
	if v := r.byte(); v != partitionRowVersion && !r.failed {
		return row, fmt.Errorf("unknown version %d", v)
	}
	row.start = r.varint()
	if len(r.b) > 0 {
		row.cleaned = r.varint()
	}
	return row, r.err()
}

// DeleteRecords makes offset the first one of the partition, -1 its End, and calls
// done with the first offset when that is durable. Kafka's Partition
// .deleteRecordsOnLeader says what is refused. done must not block and must not call
// the Log.
func (l *Log) DeleteRecords(p *Partition, offset int64, done func(start int64, r *Refusal, err error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if offset == -1 {
		offset = p.End()
	}
	var r *Refusal
	switch s := p.Topic.Settings(); {
	case p.Topic.deleting:
		r = refuse(UnknownTopicOrPartition, "This server does not host this topic-partition.")
	case s.Compacted && !s.Deleted:
		r = refuse(PolicyViolation, "The cleanup policy of the topic keeps its records.")
	case offset < 0 || offset > p.End():
		r = refuse(OffsetOutOfRange, "The offset is not one of the partition's.")
	}
	if r != nil {
		done(-1, r, nil)
		return
	}
	told := func(err error) { done(p.Start(), nil, err) }
	switch {
	case offset > p.row.start:
		l.raiseStart(p, offset, true, told)
	case p.row.start > p.Start(): // not durable yet
		l.barrier(told)
	default:
		told(nil)
	}
}

// raiseStart moves the start of a partition. What is below it is deleted later, when
// nobody reads there any more. Guarded by mu.
func (l *Log) raiseStart(p *Partition, start int64, sync bool, done func(error)) {
	p.row.start = start
	row := p.row
	l.committer.Submit(store.Op{
		Sync:  sync,
		Write: func(b *store.Batch) { b.Set(partitionKey(p.Topic.ID, p.Index), row.encode()) },
		Done: func(err error) {
			if err == nil {
				p.start.Store(start)
				l.wakeCleaner()
			}
			done(err)
		},
	})
}

// sweep deletes what is below the start of a partition, in one range. It belongs to
// cleanLoop.
func (l *Log) sweep(p *Partition) error {
	start := p.Start()
	if p.swept >= start {
		return nil
	}
	base, err := p.baseOf(start)
	if err != nil {
		return err
	}
	id, index := p.Topic.ID, p.Index
	times, err := p.lastTimeBelow(base)
	if err != nil {
		return err
	}
	l.background(p, func(b *store.Batch) {
		b.DeleteRange(appendBatchKey(nil, id, index, 0), appendBatchKey(nil, id, index, base))
		b.DeleteRange(appendAbortedKey(nil, id, index, 0), appendAbortedKey(nil, id, index, base))
		if times != nil {
			b.DeleteRange(appendDataPrefix(nil, id, index, dataTime), times)
		}
	})
	p.swept = start
	return nil
}

// baseOf returns the base offset of the batch with the record at offset, or offset
// if that record is gone.
func (p *Partition) baseOf(offset int64) (int64, error) {
	it, err := p.batches(p.End())
	if err != nil {
		return 0, err
	}
	defer it.Close()
	value, ok, err := seekBatch(it, p, offset)
	if err != nil || !ok {
		return offset, err
	}
	return min(offset, decodeHeader(value).baseOffset), it.Error()
}

// lastTimeBelow returns the last key of the time index that is of a batch below
// base, nil without one. It is kept: it tells that none before the next is as late
// as that.
func (p *Partition) lastTimeBelow(base int64) (last []byte, err error) {
	prefix := appendDataPrefix(nil, p.Topic.ID, p.Index, dataTime)
	it, err := p.Topic.log.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for it.First(); it.Valid() && int64(suffix64(it.Key())) < base; it.Next() {
		last = append(last[:0], it.Key()...)
	}
	return last, it.Error()
}

// background writes something for a partition that is not deleted, with the next
// sync there is, and waits until it is written: so there is never more than one such
// write in the committer, and no lock is held meanwhile. It returns false if nothing
// more is to be written.
func (l *Log) background(p *Partition, write func(b *store.Batch)) bool {
	written := make(chan error, 1)
	l.mu.Lock()
	if p.Topic.deleting {
		l.mu.Unlock()
		return false
	}
	l.committer.Submit(store.Op{Write: write, Done: func(err error) { written <- err }})
	l.mu.Unlock()
	return <-written == nil
}
