package topics

import (
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// retentionInterval is Kafka's default of log.retention.check.interval.ms.
	retentionInterval = 5 * time.Minute
	// walkMax is how many bytes of batches are read with one iterator in the
	// background: an iterator keeps Pebble from deleting what it replaced.
	walkMax = 64 << 20
)

// usage is what cleanLoop knows of the size of a partition: the bytes of its batches
// from the start at offset from up to offset end.
type usage struct {
	from, end int64
	bytes     int64
}

// cleanLoop applies retention and compacts until the log is closed, and deletes what
// is below the start of partitions. It is the only one that deletes or replaces
// batches of topics that stay.
func (l *Log) cleanLoop(interval time.Duration) {
	retention := time.NewTicker(interval)
	defer retention.Stop()
	compaction := time.NewTicker(compactInterval)
	defer compaction.Stop()
	for {
		select {
		case <-l.closed:
			return
		case <-retention.C:
			l.eachPartition(l.retain)
		case <-compaction.C:
			l.eachPartition(l.compact)
		case <-l.cleanerWake:
		}
		l.eachPartition(l.sweep)
	}
}

// wakeCleaner makes cleanLoop sweep soon.
func (l *Log) wakeCleaner() {
	select {
	case l.cleanerWake <- struct{}{}:
	default:
	}
}

// eachPartition calls f for every partition until the log is closed.
func (l *Log) eachPartition(f func(*Partition) error) {
	for _, t := range l.All() {
		for _, p := range t.Partitions() {
			select {
			case <-l.closed:
				return
			default:
			}
			if err := f(p); err != nil {
				l.onCleanError(t.Name, p.Index, err)
			}
		}
	}
}

// walk calls visit for each batch from the one with the record at offset from on,
// below end, until it returns false. The batch is valid until visit returns.
func (p *Partition) walk(from, end int64, visit func(h *header, batch []byte) bool) error {
	for more := true; more && from < end; {
		it, err := p.batches(end)
		if err != nil {
			return err
		}
		from, more, err = p.walkPiece(it, from, visit)
		_ = it.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// walkPiece is walk with one iterator. It returns where to go on, if more is to come.
func (p *Partition) walkPiece(it *pebble.Iterator, from int64, visit func(h *header, batch []byte) bool) (next int64, more bool, err error) {
	value, ok, err := seekBatch(it, p, from)
	for read := 0; ok && err == nil; {
		if len(value) < HeaderSize {
			return 0, false, errRow
		}
		h := decodeHeader(value)
		if !visit(&h, value) {
			return 0, false, nil
		}
		if read += len(value); read >= walkMax {
			return h.lastOffset() + 1, true, nil
		}
		if ok = it.Next(); ok {
			value, err = it.ValueAndErr()
		}
	}
	if err == nil {
		err = it.Error()
	}
	return 0, false, err
}

// measure brings what is known of the size of a partition, from an offset on, up to
// its end: each batch is looked at once in the life of the process.
func (p *Partition) measure(u *usage, from int64) error {
	end := p.End()
	if u.from != from || u.end < from {
		*u = usage{from: from, end: from}
	}
	err := p.walk(u.end, end, func(_ *header, batch []byte) bool {
		u.bytes += int64(len(batch))
		return true
	})
	if err != nil {
		*u = usage{}
		return err
	}
	u.end = end
	return nil
}

// retain raises the start of a partition above what is too old (retention.ms) or too
// much (retention.bytes), as Kafka's UnifiedLog.deleteOldSegments does, batch by
// batch. It holds no lock while it looks.
func (l *Log) retain(p *Partition) error {
	s := p.Topic.Settings()
	if !s.Deleted || s.RetentionMs < 0 && s.RetentionBytes < 0 {
		return nil
	}
	start, freed := p.Start(), int64(0)
	to := start
	var err error
	if s.RetentionMs >= 0 {
		if to, freed, err = p.expired(l.nowMs() - s.RetentionMs); err != nil {
			return err
		}
	}
	if s.RetentionBytes >= 0 {
		if err = p.measure(&p.usage, start); err != nil {
			return err
		}
		if to, freed, err = p.surplus(to, freed, s.RetentionBytes); err != nil {
			return err
		}
	}
	if to == start {
		return nil
	}
	if s.RetentionBytes >= 0 {
		p.usage.bytes, p.usage.from = p.usage.bytes-freed, to
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !p.Topic.deleting && to > p.row.start {
		l.raiseStart(p, to, false, func(error) {})
	}
	return nil
}

// expired returns where the first batch begins whose newest record is of before or
// later, and the bytes below it. A batch without times is as old as the next one.
func (p *Partition) expired(before int64) (to, freed int64, err error) {
	to = p.Start()
	passed := int64(0)
	err = p.walk(to, p.End(), func(h *header, batch []byte) bool {
		passed += int64(len(batch))
		if h.maxTimestamp >= before {
			return false
		}
		if h.maxTimestamp >= 0 {
			to, freed = h.lastOffset()+1, passed
		}
		return true
	})
	return to, freed, err
}

// surplus goes on from to, behind freed bytes, as long as bytes or more are left.
func (p *Partition) surplus(to, freed, bytes int64) (int64, int64, error) {
	over := p.usage.bytes - bytes
	if over-freed <= 0 {
		return to, freed, nil
	}
	err := p.walk(to, p.usage.end, func(h *header, batch []byte) bool {
		size := int64(len(batch))
		if over-freed < size {
			return false
		}
		to, freed = h.lastOffset()+1, freed+size
		return true
	})
	return to, freed, err
}
