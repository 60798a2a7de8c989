package topics

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall-mq/rollcall/store"
)

// Marker ends a transaction in one partition: a control batch, as Kafka's
// EndTransactionMarker has it. The caller fills the first fields.
type Marker struct {
	Partition  *Partition
	ProducerID int64
	// Epoch is the producer's; later batches of an older one are refused.
	Epoch            int16
	CoordinatorEpoch int32
	Commit           bool
	// Newer: only an epoch above the producer's own is accepted (KIP-1228).
	Newer bool

	// Refusal is why nothing was appended.
	Refusal *Refusal

	offset, timestamp int64
	newMax            bool
	producer          *producer
	stable            int64
	// first is the first offset of the transaction that it ends, -1 if there is none.
	first int64
}

// AbortedTransaction tells a reader of committed records what to leave out: the
// transactional records of the producer from First to its next marker.
type AbortedTransaction struct{ ProducerID, First int64 }

// abortedRowVersion is the version of the rows of aborted transactions.
const abortedRowVersion = 1

// markerSize is the size of a control batch that ends a transaction.
const markerSize = HeaderSize + 17

// placeMarker gives a marker its offset and ends the producer's transaction, or
// refuses it. Guarded by mu.
func (l *Log) placeMarker(m *Marker) {
	p := m.Partition
	s := p.producers[m.ProducerID]
	switch {
	case p.Topic.deleting:
		m.Refusal = refuse(UnknownTopicOrPartition, "This server does not host this topic-partition.")
	case s != nil && (m.Epoch < s.epoch || m.Newer && m.Epoch == s.epoch):
		m.Refusal = refuse(InvalidProducerEpoch, "the producer has a newer epoch")
	case s != nil && m.CoordinatorEpoch < s.coordinatorEpoch:
		m.Refusal = refuse(TransactionCoordinatorFenced, "the coordinator of the transaction has a newer epoch")
	}
	if m.Refusal != nil {
		return
	}
	m.producer = l.writes(p, s, m.ProducerID, m.Epoch)
	m.producer.coordinatorEpoch = m.CoordinatorEpoch
	m.timestamp = l.nowMs()
	m.offset, m.newMax = p.take(1, m.timestamp)
	if m.first = m.producer.txnFirst; m.first >= 0 {
		m.producer.txnFirst = -1
		p.closed(m.producer)
	}
	m.stable = p.stableNext()
}

// closed takes a producer out of those with an open transaction. Guarded by Log.mu.
func (p *Partition) closed(s *producer) {
	for i, other := range p.open {
		if other == s {
			p.open = append(p.open[:i], p.open[i+1:]...)
			return
		}
	}
}

// aborts tells whether the marker aborts records.
func (m *Marker) aborts() bool { return !m.Commit && m.first >= 0 }

// write puts the marker and its rows into a Pebble batch.
func (m *Marker) write(b *store.Batch) {
	p := m.Partition
	id := p.Topic.ID
	b.Set(appendBatchKey(nil, id, p.Index, m.offset), m.encode())
	if m.newMax {
		b.Set(appendTimeKey(nil, id, p.Index, m.timestamp, m.offset), nil)
	}
	b.Set(appendProducerKey(nil, id, p.Index, m.ProducerID), m.producer.encode(nil))
	if m.aborts() {
		row := []byte{abortedRowVersion}
		for _, n := range []int64{m.ProducerID, m.first, m.stable} {
			row = binary.AppendVarint(row, n)
		}
		b.Set(appendAbortedKey(nil, id, p.Index, m.offset), row)
	}
}

// encode returns the control batch: one record whose key says what it is, and whose
// value has the epoch of the coordinator.
func (m *Marker) encode() []byte {
	record := []byte{16 << 1, 0, 0, 0, 4 << 1, 0, 0, 0, 0, 6 << 1, 0, 0, 0, 0, 0, 0, 0}
	if m.Commit {
		record[8] = 1
	}
	be := binary.BigEndian
	be.PutUint32(record[12:], uint32(m.CoordinatorEpoch))
	b := append(make([]byte, HeaderSize, markerSize), record...)
	be.PutUint64(b[posBaseOffset:], uint64(m.offset))
	be.PutUint32(b[posLength:], uint32(len(b)-lengthOverhead))
	be.PutUint32(b[posLeaderEpoch:], leaderEpoch)
	b[posMagic] = magic2
	be.PutUint16(b[posAttributes:], attrTransactional|attrControl)
	be.PutUint64(b[posBaseTimestamp:], uint64(m.timestamp))
	be.PutUint64(b[posMaxTimestamp:], uint64(m.timestamp))
	be.PutUint64(b[posProducerID:], uint64(m.ProducerID))
	be.PutUint16(b[posProducerEpoch:], uint16(m.Epoch))
	be.PutUint32(b[posBaseSequence:], ^uint32(0))
	be.PutUint32(b[posCount:], 1)
	be.PutUint32(b[posCRC:], crc32.Checksum(b[posAttributes:], castagnoli))
	return b
}

// durable makes the marker visible.
func (m *Marker) durable() {
	if m.aborts() {
		m.Partition.aborted.Store(m.offset)
	}
	m.Partition.advance(m.offset+1, m.stable, markerSize)
}

// writeMarkers writes those that were not refused.
func writeMarkers(markers []Marker, b *store.Batch) {
	for i := range markers {
		if m := &markers[i]; m.Refusal == nil {
			m.write(b)
		}
	}
}

func markersDurable(markers []Marker) {
	for i := range markers {
		if m := &markers[i]; m.Refusal == nil {
			m.durable()
		}
	}
}

// Aborted returns the transactions that were aborted and have records from from up
// to to, which a reader has read; none costs nothing.
func (p *Partition) Aborted(from, to int64) ([]AbortedTransaction, error) {
	if p.aborted.Load() < from {
		return nil, nil
	}
	prefix := appendDataPrefix(nil, p.Topic.ID, p.Index, dataAborted)
	it, err := p.Topic.log.db.NewIter(&pebble.IterOptions{
		LowerBound: appendAbortedKey(nil, p.Topic.ID, p.Index, from), UpperBound: after(prefix),
	})
	if err != nil {
		return nil, fmt.Errorf("read topic %s: %w", p.Topic.Name, err)
	}
	defer it.Close()
	var all []AbortedTransaction
	for it.First(); it.Valid(); it.Next() {
		r := rowReader{b: it.Value()}
		if v := r.byte(); v != abortedRowVersion && !r.failed {
			return nil, fmt.Errorf("read topic %s: an aborted transaction of unknown version %d", p.Topic.Name, v)
		}
		t, stable := AbortedTransaction{ProducerID: r.varint(), First: r.varint()}, r.varint()
		if err := r.err(); err != nil {
			return nil, fmt.Errorf("read topic %s: aborted transactions: %w", p.Topic.Name, err)
		}
		if t.First < to {
			all = append(all, t)
		}
		if stable >= to { // all others begin behind it
			break
		}
	}
	return all, it.Error()
}

// EndOffset returns the offset behind the last of the batches that a reader got.
func EndOffset(batches []byte) (end int64) {
	for len(batches) >= HeaderSize {
		h := decodeHeader(batches)
		end = h.lastOffset() + 1
		batches = batches[min(int(h.length)+lengthOverhead, len(batches)):]
	}
	return end
}
