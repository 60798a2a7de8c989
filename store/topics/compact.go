package topics

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall-mq/rollcall/store"
)

const (
	// compactInterval is how often topics to compact are looked for (Kafka's default
	// of log.cleaner.backoff.ms).
	compactInterval = 15 * time.Second
	// compactKeysMax bounds the keys that one pass knows, about 64 bytes each; with
	// more there are several passes.
	compactKeysMax = 1 << 20
	// compactWriteMax is how many bytes of batches are replaced with one write.
	compactWriteMax = 256 << 10
)

// keyHash stands for a key.
type keyHash [16]byte

func hashKey(key []byte) (h keyHash) {
	sum := sha256.Sum256(key)
	copy(h[:], sum[:])
	return h
}

// abortedRange are the offsets of the records of an aborted transaction.
type abortedRange struct{ first, marker int64 }

// compact removes from a partition what newer records of the same key supersede, if
// enough of it is new (Kafka's LogCleanerManager.grabFilthiestCompactedLog).
func (l *Log) compact(p *Partition) error {
	s := p.Topic.Settings()
	if !s.Compacted {
		return nil
	}
	end := p.Stable()
	first := max(p.cleaned, p.Start())
	if first >= end {
		return nil
	}
	if err := p.measure(&p.usage, p.Start()); err != nil {
		return err
	}
	if err := p.measure(&p.dirty, first); err != nil {
		return err
	}
	now := l.nowMs()
	oldest := int64(math.MaxInt64)
	dirty := int64(0)
	err := p.walk(first, end, func(h *header, batch []byte) bool {
		oldest = min(oldest, h.maxTimestamp)
		if s.CompactionLagMin > 0 && h.maxTimestamp > now-s.CompactionLagMin {
			end = h.baseOffset
			return false
		}
		dirty += int64(len(batch))
		return s.CompactionLagMin > 0
	})
	if err != nil || first >= end {
		return err
	}
	if s.CompactionLagMin == 0 {
		dirty = p.dirty.bytes
	}
	total := p.usage.bytes - p.dirty.bytes + dirty
	if float64(dirty) <= s.DirtyRatioMin*float64(total) && now-oldest <= s.CompactionLagMax {
		return nil
	}
	for first < end && err == nil {
		first, err = l.compactOnce(p, first, end, now, s.DeleteRetentionMs)
	}
	return err
}

// compactOnce takes as many keys as fit from the records from first up to end, and
// removes what they supersede from the beginning of the partition on. It returns up
// to where the partition is clean now. The order of the writes is that of the
// offsets, so that a tombstone never goes before what it deletes.
func (l *Log) compactOnce(p *Partition, first, end, now, deleteRetention int64) (int64, error) {
	aborted, err := p.abortedRanges()
	if err != nil {
		return end, err
	}
	newest := map[keyHash]int64{}
	reached := first
	var broken error
	err = p.walk(first, end, func(h *header, batch []byte) bool {
		if reached > first && len(newest)+int(h.count) > l.compactKeysMax {
			return false
		}
		if h.attributes&attrControl == 0 && !isAborted(h, aborted) {
			broken = l.rawRecords(h, batch, func(r *rawRecord) bool {
				if r.key != nil {
					newest[hashKey(r.key)] = r.offset
				}
				return true
			})
		}
		if broken == nil {
			reached = h.lastOffset() + 1
		}
		return broken == nil
	})
	if err == nil && reached == first {
		err = broken
	}
	if err != nil || reached == first {
		return end, err
	}
	c := &compaction{log: l, p: p, newest: newest, aborted: aborted, end: reached, now: now, horizon: saturated(now, deleteRetention)}
	err = p.walk(p.Start(), reached, c.visit)
	if err == nil {
		err = c.err
	}
	if err != nil || !c.flush() {
		return end, err
	}
	l.background(p, func(b *store.Batch) {
		p.row.cleaned = reached
		b.Set(partitionKey(p.Topic.ID, p.Index), p.row.encode())
	})
	p.cleaned = reached
	p.usage, p.dirty = usage{}, usage{}
	if broken != nil {
		return end, broken
	}
	return reached, nil
}

func saturated(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// compaction is one pass over a partition.
type compaction struct {
	log     *Log
	p       *Partition
	newest  map[keyHash]int64
	aborted map[int64][]abortedRange
	// end is where it ends; the last batch before that stays, be it empty.
	end          int64
	now, horizon int64

	writes  []replaced
	pending int
	err     error
}

// replaced is a batch with another value, nil to delete it.
type replaced struct {
	base  int64
	value []byte
}

func (c *compaction) visit(h *header, batch []byte) bool {
	if h.attributes&attrControl != 0 {
		return true
	}
	gone := isAborted(h, c.aborted)
	tombstonesGo := h.attributes&attrDeleteHorizon != 0 && c.now >= h.baseTimestamp
	f, err := c.log.filter(h, batch, c.horizon, func(r *rawRecord) bool {
		if gone || r.key == nil || r.tombstone && tombstonesGo {
			return false
		}
		newest, known := c.newest[hashKey(r.key)]
		return !known || r.offset >= newest
	})
	if c.err = err; err != nil {
		return false
	}
	last := h.lastOffset()+1 >= c.end
	switch {
	case f.kept == 0 && !last:
		c.writes = append(c.writes, replaced{base: h.baseOffset})
	case !f.unchanged:
		c.writes = append(c.writes, replaced{h.baseOffset, f.batch})
	default:
		return true
	}
	c.pending += len(f.batch) + HeaderSize
	return c.pending < compactWriteMax || c.flush()
}

// flush writes what was replaced; false if there is no more to do.
func (c *compaction) flush() bool {
	if len(c.writes) == 0 {
		return true
	}
	id, index := c.p.Topic.ID, c.p.Index
	ok := c.log.background(c.p, func(b *store.Batch) {
		var key []byte
		for _, w := range c.writes {
			key = appendBatchKey(key[:0], id, index, w.base)
			if w.value == nil {
				b.Delete(key)
			} else {
				b.Set(key, w.value)
			}
		}
	})
	c.writes, c.pending = c.writes[:0], 0
	return ok
}

// isAborted tells whether the batch is of an aborted transaction.
func isAborted(h *header, aborted map[int64][]abortedRange) bool {
	if !h.transactional() {
		return false
	}
	for _, r := range aborted[h.producerID] {
		if r.first <= h.baseOffset && h.baseOffset < r.marker {
			return true
		}
	}
	return false
}

// abortedRanges reads the aborted transactions of the partition by producer.
func (p *Partition) abortedRanges() (map[int64][]abortedRange, error) {
	prefix := appendDataPrefix(nil, p.Topic.ID, p.Index, dataAborted)
	it, err := p.Topic.log.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	all := map[int64][]abortedRange{}
	for it.First(); it.Valid(); it.Next() {
		r := rowReader{b: it.Value()}
		r.byte()
		producer := r.varint()
		all[producer] = append(all[producer], abortedRange{r.varint(), int64(binary.BigEndian.Uint64(it.Key()[dataPrefixSize:]))})
	}
	return all, it.Error()
}
