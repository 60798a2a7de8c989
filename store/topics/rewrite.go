package topics

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// attrDeleteHorizon: the base timestamp of the batch is when its tombstones may go
// (KIP-534). The deltas of its records count from there.
const attrDeleteHorizon = 0x40

// rewrittenMax bounds what a batch may be decompressed. Compaction of a partition
// ends before a larger one.
const rewrittenMax = 256 << 20

var errBatchTooLarge = errors.New("a batch is too large to be compacted")

// rawRecord is a record as compaction sees it.
type rawRecord struct {
	offset, timestamp int64
	key               []byte // nil: null
	tombstone         bool
	attributes        byte
	// rest is what follows the offset delta, and delta that.
	delta int64
	rest  []byte
}

// rawRecords calls visit for each record of a batch until it returns false.
func (l *Log) rawRecords(h *header, batch []byte, visit func(*rawRecord) bool) error {
	body, err := l.unpacked(h, batch)
	if err != nil {
		return err
	}
	for range h.count {
		size, n := binary.Varint(body)
		if n <= 0 || size < 1 || size > int64(len(body)-n) {
			return errRecords
		}
		r, ok := parseRecord(h, body[n:n+int(size)])
		if !ok {
			return errRecords
		}
		if !visit(&r) {
			return nil
		}
		body = body[n+int(size):]
	}
	return nil
}

func (l *Log) unpacked(h *header, batch []byte) ([]byte, error) {
	body := batch[HeaderSize:]
	if h.compression() == codecNone {
		return body, nil
	}
	d := l.unpack.get()
	defer l.unpack.put(d)
	src, err := d.open(h.compression(), body)
	if err != nil {
		return nil, err
	}
	body, err = io.ReadAll(io.LimitReader(src, rewrittenMax+1))
	if err == nil && len(body) > rewrittenMax {
		err = errBatchTooLarge
	}
	return body, err
}

func parseRecord(h *header, b []byte) (r rawRecord, ok bool) {
	r.attributes = b[0]
	b = b[1:]
	varint := func() int64 {
		v, n := binary.Varint(b)
		if n <= 0 {
			b, ok = nil, false
			return 0
		}
		b = b[n:]
		return v
	}
	ok = true
	r.timestamp = h.baseTimestamp + varint()
	r.delta = varint()
	r.offset = h.baseOffset + r.delta
	r.rest = b
	if n := varint(); n >= 0 {
		if n > int64(len(b)) {
			return r, false
		}
		r.key, b = b[:n:n], b[n:]
		if r.key == nil {
			r.key = []byte{}
		}
	}
	r.tombstone = varint() < 0
	return r, ok
}

// filtered is a batch without the records that compaction removes.
type filtered struct {
	kept      int32
	unchanged bool
	batch     []byte
}

// filter removes the records that keep does not want. Batches with tombstones get a
// delete horizon, unless they have one. Offsets never change: base offset and last
// offset delta stay, also of a batch that is empty now (Kafka's MemoryRecords
// .filterTo).
func (l *Log) filter(h *header, batch []byte, horizon int64, keep func(*rawRecord) bool) (f filtered, err error) {
	var kept []rawRecord
	tombstones := false
	err = l.rawRecords(h, batch, func(r *rawRecord) bool {
		if keep(r) {
			kept = append(kept, *r)
			tombstones = tombstones || r.tombstone
		}
		return true
	})
	if err != nil {
		return f, err
	}
	f.kept = int32(len(kept))
	base, attributes := h.baseTimestamp, h.attributes
	if tombstones && attributes&attrDeleteHorizon == 0 {
		base, attributes = horizon, attributes|attrDeleteHorizon
	}
	if f.unchanged = f.kept == h.count && attributes == h.attributes; f.unchanged {
		return f, nil
	}
	if f.kept == 0 {
		attributes &^= attrCompression
	}
	largest := int64(math.MinInt64)
	var body []byte
	for i := range kept {
		largest = max(largest, kept[i].timestamp)
		body = kept[i].append(body, base)
	}
	if f.kept == 0 || attributes&attrLogAppendTime != 0 {
		largest = h.maxTimestamp
	}
	if body, err = compressed(attributes&attrCompression, body); err != nil {
		return f, err
	}
	out := append(append(make([]byte, 0, HeaderSize+len(body)), batch[:HeaderSize]...), body...)
	be := binary.BigEndian
	be.PutUint32(out[posLength:], uint32(len(out)-lengthOverhead))
	be.PutUint16(out[posAttributes:], uint16(attributes))
	be.PutUint64(out[posBaseTimestamp:], uint64(base))
	be.PutUint64(out[posMaxTimestamp:], uint64(largest))
	be.PutUint32(out[posCount:], uint32(f.kept))
	be.PutUint32(out[posCRC:], crc32.Checksum(out[posAttributes:], castagnoli))
	f.batch = out
	return f, nil
}

// append writes the record with its time counted from base.
func (r *rawRecord) append(dst []byte, base int64) []byte {
	var head [1 + 2*binary.MaxVarintLen64]byte
	head[0] = r.attributes
	n := 1 + binary.PutVarint(head[1:], r.timestamp-base)
	n += binary.PutVarint(head[n:], r.delta)
	dst = binary.AppendVarint(dst, int64(n+len(r.rest)))
	return append(append(dst, head[:n]...), r.rest...)
}

// compressed compresses the records of a batch.
func compressed(codec int16, body []byte) ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	switch codec {
	case codecNone:
		return body, nil
	case codecSnappy:
		return snappy.Encode(nil, body), nil
	case codecGzip:
		w = gzip.NewWriter(&out)
	case codecLZ4:
		w = lz4.NewWriter(&out)
	default:
		var err error
		if w, err = zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true)); err != nil {
			return nil, err
		}
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}
