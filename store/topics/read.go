package topics

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// batches returns an iterator over the batches below end, each under its base
// offset.
func (p *Partition) batches(end int64) (*pebble.Iterator, error) {
	key := make([]byte, 0, 2*(dataPrefixSize+8))
	lower := appendBatchKey(key, p.Topic.ID, p.Index, p.Start())
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
	return p.find(ts, func(times *pebble.Iterator, prefix []byte, _ int64) bool {
		return times.SeekGE(binary.BigEndian.AppendUint64(prefix, ordered(ts)))
	})
}

// FindMaxTime returns the first of the records with the largest timestamp; -1 and
// -1 if there is none.
func (p *Partition) FindMaxTime() (offset, timestamp int64, err error) {
	return p.find(-1, func(times *pebble.Iterator, _ []byte, end int64) bool {
		for ok := times.Last(); ok; ok = times.Prev() {
			if int64(suffix64(times.Key())) < end {
				return true
			}
		}
		return false
	})
}

// find reads the batch that seek finds in the time index, and in it the first
// record with a timestamp of at least ts, or of the batch's largest for -1.
func (p *Partition) find(ts int64, seek func(times *pebble.Iterator, prefix []byte, end int64) bool) (offset, timestamp int64, err error) {
	end := p.End()
	prefix := appendDataPrefix(nil, p.Topic.ID, p.Index, dataTime)
	times, err := p.Topic.log.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return -1, -1, err
	}
	defer times.Close()
	found := seek(times, bytes.Clone(prefix), end)
	if err := times.Error(); err != nil {
		return -1, -1, err
	}
	base := p.Start()
	switch {
	case found:
		base = int64(suffix64(times.Key()))
		if ts == -1 {
			ts = unordered(binary.BigEndian.Uint64(times.Key()[dataPrefixSize:]))
		}
	case ts != -1:
		return -1, -1, nil
	}
	// With no time at all in the log, Kafka answers its first record for the largest.
	if base >= end {
		return -1, -1, nil
	}
	it, err := p.batches(end)
	if err != nil {
		return -1, -1, err
	}
	defer it.Close()
	value, ok, err := seekBatch(it, p, base)
	if !ok || err != nil {
		return -1, -1, err
	}
	return p.Topic.log.findInBatch(value, ts)
}

// findInBatch returns the first record of a batch with a timestamp of at least ts.
func (l *Log) findInBatch(batch []byte, ts int64) (offset, timestamp int64, err error) {
	h := decodeHeader(batch)
	if h.attributes&attrLogAppendTime != 0 {
		return h.baseOffset, h.maxTimestamp, nil
	}
	var d *decompressor
	if h.compression() != codecNone {
		d = l.unpack.get()
		defer l.unpack.put(d)
	}
	offset, timestamp = -1, -1
	err = scanRecords(&h, batch[HeaderSize:], d, math.MaxInt32, func(r record) bool {
		if r.timestamp < ts {
			return true
		}
		offset, timestamp = h.baseOffset+int64(r.offsetDelta), r.timestamp
		return false
	})
	return offset, timestamp, err
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
