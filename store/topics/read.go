package topics

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// batches returns an iterator over the batches below end, each under its base
// offset.
func (p *Partition) batches(end int64) (*pebble.Iterator, error) {
	key := make([]byte, 0, 2*(dataPrefixSize+8))
	lower := appendBatchKey(key, p.Topic.ID, p.Index, 0) // the start may be within a batch
	upper := appendBatchKey(lower[len(lower):], p.Topic.ID, p.Index, end)
	return p.Topic.log.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
}

// Read appends batches to dst from the one that has the record at offset, whole,
// or from the next one if that record is gone, as long as they fit into limit
// bytes. With one, the first comes even if it does not fit. Only what is durable is
// read: below end, which must be a Limit of the partition. offset must be from Start
// to end.
func (p *Partition) Read(dst []byte, offset, end int64, limit int, one bool) ([]byte, error) {
	if offset >= end || (limit <= 0 && !one) {
		return dst, nil
	}
	it, err := p.batches(end)
	if err != nil {
		return dst, fmt.Errorf("read topic %s: %w", p.Topic.Name, err)
	}
	defer it.Close()
	value, ok, err := seekBatch(it, p, offset)
	for read := 0; ok && err == nil; {
		if read+len(value) > limit && (read > 0 || !one) {
			break
		}
		dst = append(dst, value...)
		read += len(value)
		if ok = it.Next(); ok {
			value, err = it.ValueAndErr()
		}
	}
	if err == nil {
		err = it.Error()
	}
	if err != nil {
		return dst, fmt.Errorf("read topic %s: %w", p.Topic.Name, err)
	}
	return dst, nil
}

// seekBatch goes to the batch with the record at offset, or to the next one.
func seekBatch(it *pebble.Iterator, p *Partition, offset int64) (value []byte, ok bool, err error) {
	var key [dataPrefixSize + 8]byte
	ok = it.SeekLT(appendBatchKey(key[:0], p.Topic.ID, p.Index, offset+1))
	if !ok {
		if ok = it.First(); !ok {
			return nil, false, nil
		}
		value, err = it.ValueAndErr()
		return value, true, err
	}
	value, err = it.ValueAndErr()
	if err != nil {
		return nil, false, err
	}
	if len(value) < HeaderSize {
		return nil, false, errRow
	}
	if h := decodeHeader(value); h.lastOffset() >= offset {
		return value, true, nil
	}
	if !it.Next() {
		return nil, false, nil
	}
	value, err = it.ValueAndErr()
	return value, true, err
}

// FindTime returns the first record with a timestamp of at least ts, and its
// timestamp; -1 and -1 if there is none.
func (p *Partition) FindTime(ts int64) (offset, timestamp int64, err error) {
	end := p.End()
	base, _, err := p.seekTime(func(times *pebble.Iterator, prefix []byte) bool {
		return times.SeekGE(binary.BigEndian.AppendUint64(prefix, ordered(ts)))
	})
	if err != nil || base < 0 {
		return -1, -1, err
	}
	return p.firstSince(base, end, ts)
}

// FindMaxTime returns the first of the records with the largest timestamp; -1 and
// -1 if there is none. With no time at all in the log, it is the first record, as in
// Kafka.
func (p *Partition) FindMaxTime() (offset, timestamp int64, err error) {
	end := p.End()
	base, ts, err := p.seekTime(func(times *pebble.Iterator, _ []byte) bool {
		for ok := times.Last(); ok; ok = times.Prev() {
			if int64(suffix64(times.Key())) < end {
				return true
			}
		}
		return false
	})
	if err != nil {
		return -1, -1, err
	}
	if base >= 0 {
		if offset, timestamp, err = p.firstSince(base, end, ts); offset >= 0 || err != nil {
			return offset, timestamp, err
		}
		// That record is gone, and none since is as late.
		if ts, err = p.maxTime(end); err != nil {
			return -1, -1, err
		}
	}
	return p.firstSince(p.Start(), end, ts)
}

// seekTime returns the batch and the time of the row of the time index that seek
// finds; -1 and -1 if it finds none. The batch may be gone, with the records that the
// row is of; then it tells that none before it is as late.
func (p *Partition) seekTime(seek func(times *pebble.Iterator, prefix []byte) bool) (base, ts int64, err error) {
	prefix := appendDataPrefix(nil, p.Topic.ID, p.Index, dataTime)
	times, err := p.Topic.log.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return -1, -1, err
	}
	defer times.Close()
	if !seek(times, bytes.Clone(prefix)) {
		return -1, -1, times.Error()
	}
	return int64(suffix64(times.Key())), unordered(binary.BigEndian.Uint64(times.Key()[dataPrefixSize:])), nil
}

// firstSince returns the first record with a timestamp of at least ts among those
// from offset from up to end; -1 and -1 if there is none. Almost always the first
// batch has it.
func (p *Partition) firstSince(from, end, ts int64) (offset, timestamp int64, err error) {
	offset, timestamp = -1, -1
	start := p.Start()
	var broken error
	err = p.walk(max(from, start), end, func(h *header, batch []byte) bool {
		if h.maxTimestamp >= ts {
			offset, timestamp, broken = p.Topic.log.findInBatch(batch, start, ts)
		}
		return offset < 0 && broken == nil
	})
	return offset, timestamp, cmp.Or(err, broken)
}

// maxTime returns the largest timestamp of the records from the start up to end.
func (p *Partition) maxTime(end int64) (ts int64, err error) {
	ts = -1
	start := p.Start()
	var broken error
	err = p.walk(start, end, func(h *header, batch []byte) bool {
		if h.baseOffset >= start {
			ts = max(ts, h.maxTimestamp)
			return true
		}
		broken = p.Topic.log.scanBatch(batch, func(offset, timestamp int64) bool {
			if offset >= start {
				ts = max(ts, timestamp)
			}
			return true
		})
		return broken == nil
	})
	return ts, cmp.Or(err, broken)
}

// findInBatch returns the first record of a batch, from offset start on, with a
// timestamp of at least ts; -1 and -1 if there is none.
func (l *Log) findInBatch(batch []byte, start, ts int64) (offset, timestamp int64, err error) {
	offset, timestamp = -1, -1
	err = l.scanBatch(batch, func(at, t int64) bool {
		if t < ts || at < start {
			return true
		}
		offset, timestamp = at, t
		return false
	})
	return offset, timestamp, err
}

// scanBatch calls visit for each record of a batch until it returns false.
func (l *Log) scanBatch(batch []byte, visit func(offset, timestamp int64) bool) error {
	h := decodeHeader(batch)
	var d *decompressor
	if h.compression() != codecNone {
		d = l.unpack.get()
		defer l.unpack.put(d)
	}
	return scanRecords(&h, batch[HeaderSize:], d, math.MaxInt32, func(r record) bool {
		if h.attributes&attrLogAppendTime != 0 {
			r.timestamp = h.maxTimestamp
		}
		return visit(h.baseOffset+int64(r.offsetDelta), r.timestamp)
	})
}

// Available returns how many bytes Read would find, counting up to limit.
func (p *Partition) Available(offset, end int64, limit int) int {
	if offset >= end || limit <= 0 {
		return 0
	}
	it, err := p.batches(end)
	if err != nil {
		return limit // Read tells the error
	}
	defer it.Close()
	size := 0
	value, ok, err := seekBatch(it, p, offset)
	for ok && err == nil && size < limit {
		size += len(value)
		if ok = it.Next(); ok {
			value, err = it.ValueAndErr()
		}
	}
	return min(size, limit)
}
