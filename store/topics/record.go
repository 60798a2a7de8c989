package topics

import (
	"errors"
	"io"
)

// errRecords is the only thing that is ever wrong with the records of a batch:
// they are not what the header and their own lengths say.
var errRecords = errors.New("the records do not have the form that the batch announces")

// decompressedMax bounds what is decompressed of one batch, in bytes.
const decompressedMax = 2 << 30

// record is what the store looks at in one record.
type record struct {
	index       int32
	offsetDelta int32
	timestamp   int64
	nullKey     bool
}

// scanRecords calls visit for each record of a batch until it returns false, and
// checks the form of all that it passes: every length fits, and unless it was
// stopped, count records end exactly where the data end. d is for compressed
// batches; no record in one may be larger than recordMax.
func scanRecords(h *header, body []byte, d *decompressor, recordMax int64, visit func(record) bool) error {
	s := scanner{buf: body, left: decompressedMax, recordMax: recordMax}
	if c := h.compression(); c != codecNone {
		src, err := d.open(c, body)
		if err != nil {
			return errRecords
		}
		s.buf, s.src, s.chunk = nil, src, d.chunk[:]
	}
	for i := int32(0); i < h.count; i++ {
		r := s.record(h.baseTimestamp)
		if s.failed {
			return errRecords
		}
		r.index = i
		if !visit(r) {
			return nil
		}
	}
	if !s.atEnd() {
		return errRecords
	}
	return nil
}

// scanner reads records from bytes, or from a stream piece by piece, so that a
// large batch is never decompressed as a whole. After a failure everything is zero.
type scanner struct {
	buf   []byte
	pos   int
	src   io.Reader
	chunk []byte
	// left is how many bytes may still come out of src.
	left int64
	// recordMax is the largest record that may come out of src.
	recordMax int64

	off    int64 // of buf[0] in the whole
	failed bool
}

func (s *scanner) offset() int64 { return s.off + int64(s.pos) }

// fill makes at least one byte available, false at the end.
func (s *scanner) fill() bool {
	if s.pos < len(s.buf) {
		return true
	}
	if s.src == nil {
		return false
	}
	s.off += int64(len(s.buf))
	s.buf, s.pos = nil, 0
	for range 64 { // readers may return nothing, but not for ever
		n, err := s.src.Read(s.chunk)
		if n > 0 {
			s.left -= int64(n)
			s.buf = s.chunk[:n]
			if s.left < 0 {
				s.failed = true
			}
			return s.left >= 0
		}
		if err != nil {
			s.failed = s.failed || !errors.Is(err, io.EOF)
			return false
		}
	}
	return false
}

func (s *scanner) atEnd() bool { return !s.fill() && !s.failed }

func (s *scanner) byte() byte {
	if !s.fill() {
		s.failed = true
		return 0
	}
	c := s.buf[s.pos]
	s.pos++
	return c
}

// varint reads a zigzag number of at most bytesMax bytes.
func (s *scanner) varint(bytesMax int) int64 {
	var v uint64
	for i := 0; i < bytesMax; i++ {
		c := s.byte()
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return int64(v>>1) ^ -int64(v&1)
		}
	}
	s.failed = true
	return 0
}

func (s *scanner) varint32() int32 {
	v := s.varint(5)
	if v != int64(int32(v)) {
		s.failed = true
		return 0
	}
	return int32(v)
}

func (s *scanner) skip(n int64) {
	for n > 0 {
		if !s.fill() {
			s.failed = true
			return
		}
		step := min(n, int64(len(s.buf)-s.pos))
		s.pos += int(step)
		n -= step
	}
}

// nullable skips a byte string and tells whether it is null.
func (s *scanner) nullable() (null bool) {
	n := s.varint32()
	if n < 0 {
		return true
	}
	s.skip(int64(n))
	return false
}

func (s *scanner) record(baseTimestamp int64) (r record) {
	length := s.varint32()
	end := s.offset() + int64(length)
	if length < 0 || s.src != nil && int64(length) > s.recordMax {
		s.failed = true
	}
	s.byte() // attributes, unused
	r.timestamp = baseTimestamp + s.varint(10)
	r.offsetDelta = s.varint32()
	r.nullKey = s.nullable()
	s.nullable() // value
	headers := s.varint32()
	if headers < 0 {
		s.failed = true
	}
	for i := int32(0); i < headers && !s.failed; i++ {
		if s.nullable() { // a header's key may not be null
			s.failed = true
		}
		s.nullable()
	}
	if s.offset() != end {
		s.failed = true
	}
	return r
}
