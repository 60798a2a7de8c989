package topics

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Versions of the rows. A newer one is refused when the store is opened.
const (
	topicRowVersion    = 1
	producerRowVersion = 2
	// Before version 2 there were no transactions.
	producerRowVersion1 = 1

	groupConfigRowVersion = 1
)

var errRow = errors.New("the row ends too early or has bytes behind its end")

// topicRow is a topic as it is stored.
type topicRow struct {
	name       string
	partitions int32
	createdMs  int64
	configs    []Config
}

func (t *topicRow) encode() []byte {
	b := []byte{topicRowVersion}
	b = appendString(b, t.name)
	b = binary.AppendUvarint(b, uint64(t.partitions))
	b = binary.AppendVarint(b, t.createdMs)
	return appendConfigs(b, t.configs)
}

func appendConfigs(b []byte, configs []Config) []byte {
	b = binary.AppendUvarint(b, uint64(len(configs)))
	for _, c := range configs {
		b = appendString(b, c.Name)
		b = appendString(b, c.Value)
	}
	return b
}

func decodeTopicRow(b []byte) (t topicRow, err error) {
	r := rowReader{b: b}
	if v := r.byte(); v != topicRowVersion && !r.failed {
		return t, fmt.Errorf("unknown version %d", v)
	}
	t.name = r.string()
	t.partitions = int32(r.uvarint())
	t.createdMs = r.varint()
	t.configs = r.configs()
	return t, r.err()
}

func (r *rowReader) configs() (all []Config) {
	for n := r.uvarint(); n > 0 && !r.failed; n-- {
		all = append(all, Config{Name: r.string(), Value: r.string()})
	}
	return all
}

func (p *producer) encode(b []byte) []byte {
	b = append(b, producerRowVersion)
	b = binary.AppendVarint(b, int64(p.epoch))
	b = binary.AppendVarint(b, p.lastMs)
	b = binary.AppendVarint(b, p.txnFirst)
	b = binary.AppendVarint(b, int64(p.coordinatorEpoch))
	for _, e := range p.kept() {
		b = binary.AppendVarint(b, int64(e.firstSequence))
		b = binary.AppendVarint(b, int64(e.lastOffsetDelta))
		b = binary.AppendVarint(b, e.baseOffset)
		b = binary.AppendVarint(b, e.timestamp)
	}
	return b
}

func decodeProducer(b []byte) (*producer, error) {
	r := rowReader{b: b}
	v := r.byte()
	if v != producerRowVersion && v != producerRowVersion1 && !r.failed {
		return nil, fmt.Errorf("unknown version %d", v)
	}
	p := newProducer(int16(r.varint()))
	p.lastMs = r.varint()
	if v >= producerRowVersion {
		p.txnFirst, p.coordinatorEpoch = r.varint(), int32(r.varint())
	}
	for len(r.b) > 0 && !r.failed {
		if p.n == producerBatches {
			return nil, errRow
		}
		p.add(produced{
			firstSequence:   int32(r.varint()),
			lastOffsetDelta: int32(r.varint()),
			baseOffset:      r.varint(),
			timestamp:       r.varint(),
		})
	}
	return p, r.err()
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// rowReader reads a row; after a failure everything is zero.
type rowReader struct {
	b      []byte
	failed bool
}

func (r *rowReader) err() error {
	if r.failed || len(r.b) > 0 {
		return errRow
	}
	return nil
}

func (r *rowReader) byte() byte {
	if len(r.b) == 0 {
		r.failed = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *rowReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.failed = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *rowReader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.b, r.failed = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *rowReader) string() string {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.b, r.failed = nil, true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
