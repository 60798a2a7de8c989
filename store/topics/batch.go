package topics

import (
	"encoding/binary"
	"hash/crc32"
)

// Layout of a record batch of magic 2: where each field begins.
const (
	posBaseOffset      = 0
	posLength          = 8
	posLeaderEpoch     = 12
	posMagic           = 16
	posCRC             = 17
	posAttributes      = 21
	posLastOffsetDelta = 23
	posBaseTimestamp   = 27
	posMaxTimestamp    = 35
	posProducerID      = 43
	posProducerEpoch   = 51
	posBaseSequence    = 53
	posCount           = 57
	// HeaderSize is the size of a batch without records.
	HeaderSize = 61

	// lengthOverhead is what the length field does not count: itself and the base
	// offset.
	lengthOverhead = 12
	// lengthMin is the least length that can reach the magic byte: that of a
	// message of magic 0.
	lengthMin = 14
	magic2    = 2
)

// Bits of a batch's attributes.
const (
	attrCompression   = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
)

// leaderEpoch is the epoch of every partition: its leader never changes.
const leaderEpoch = 0

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is the decoded header of a record batch.
type header struct {
	baseOffset      int64
	length          int32
	attributes      int16
	lastOffsetDelta int32
	baseTimestamp   int64
	maxTimestamp    int64
	producerID      int64
	producerEpoch   int16
	baseSequence    int32
	count           int32
}

// decodeHeader decodes the header of a batch of at least HeaderSize bytes.
func decodeHeader(b []byte) header {
	be := binary.BigEndian
	return header{
		baseOffset:      int64(be.Uint64(b[posBaseOffset:])),
		length:          int32(be.Uint32(b[posLength:])),
		attributes:      int16(be.Uint16(b[posAttributes:])),
		lastOffsetDelta: int32(be.Uint32(b[posLastOffsetDelta:])),
		baseTimestamp:   int64(be.Uint64(b[posBaseTimestamp:])),
		maxTimestamp:    int64(be.Uint64(b[posMaxTimestamp:])),
		producerID:      int64(be.Uint64(b[posProducerID:])),
		producerEpoch:   int16(be.Uint16(b[posProducerEpoch:])),
		baseSequence:    int32(be.Uint32(b[posBaseSequence:])),
		count:           int32(be.Uint32(b[posCount:])),
	}
}

func (h *header) compression() int16 { return h.attributes & attrCompression }
func (h *header) idempotent() bool   { return h.producerID >= 0 }

// transactional tells whether the batch is part of a transaction. Without a producer
// id the bit means nothing, as in Kafka.
func (h *header) transactional() bool {
	return h.attributes&attrTransactional != 0 && h.idempotent()
}

func (h *header) lastOffset() int64 { return h.baseOffset + int64(h.lastOffsetDelta) }

// batchMagic returns the magic of a batch whose first bytes are b.
func batchMagic(b []byte) int8 { return int8(b[posMagic]) }

// nextBatch returns the size of the batch that b begins with; 0 if b ends before it
// does. It follows Kafka's ByteBufferLogInputStream, so that what is refused is
// refused with the same code.
func nextBatch(b []byte) (size int, r *Refusal) {
	if len(b) < lengthOverhead {
		return 0, nil
	}
	length := int32(binary.BigEndian.Uint32(b[posLength:]))
	if length < lengthMin {
		return 0, refuse(CorruptMessage, "the length of a batch is less than the least there can be")
	}
	if len(b) <= posMagic {
		return 0, nil
	}
	if m := batchMagic(b); m < 0 || m > magic2 {
		return 0, refuse(CorruptMessage, "a batch has an unknown magic")
	}
	if int64(len(b)) < int64(length)+lengthOverhead {
		return 0, nil
	}
	return int(length) + lengthOverhead, nil
}

// onlyBatch returns the one batch of magic 2 that a Produce request may carry for a
// partition. Bytes behind it that are no batch are cut off, as Kafka does.
func onlyBatch(records []byte, zstd bool) ([]byte, *Refusal) {
	size, r := nextBatch(records)
	switch {
	case r != nil:
		return nil, r
	case size == 0:
		return nil, refuse(InvalidRecord, "there is no complete record batch")
	case batchMagic(records) != magic2:
		return nil, refuse(InvalidRecord, "only record batches of magic 2 are accepted")
	case size < HeaderSize:
		// Kafka looks at the compression first and fails on the missing bytes.
		return nil, refuse(CorruptMessage, "the batch is shorter than its header")
	case !zstd && int(records[posAttributes+1])&attrCompression == codecZstd:
		return nil, refuse(UnsupportedCompression, "zstd needs Produce version 7 or later")
	}
	if more, r := nextBatch(records[size:]); r != nil {
		return nil, r
	} else if more > 0 {
		return nil, refuse(InvalidRecord, "there is more than one record batch")
	}
	return records[:size], nil
}

// Transactional tells whether the first batch of records says to be part of a
// transaction.
func Transactional(records []byte) bool {
	return len(records) >= HeaderSize && batchMagic(records) == magic2 && records[posAttributes+1]&attrTransactional != 0
}

// checkBatch validates a batch that a client sent, without its records: what Kafka
// checks in UnifiedLog.analyzeAndValidateRecords and LogValidator.validateBatch, in
// that order.
func checkBatch(b []byte, s *Settings) (header, *Refusal) {
	h := decodeHeader(b)
	countFromOffsets := int64(h.lastOffsetDelta) + 1
	switch {
	case h.baseOffset != 0:
		return h, refuse(InvalidRecord, "the base offset of a new batch must be 0")
	case len(b) > s.MaxMessageBytes:
		return h, refuse(MessageTooLarge, "the batch is larger than max.message.bytes")
	case crc32.Checksum(b[posAttributes:], castagnoli) != binary.BigEndian.Uint32(b[posCRC:]):
		return h, refuse(CorruptMessage, "the checksum is wrong")
	case countFromOffsets <= 0:
		return h, refuse(InvalidRecord, "the batch has an invalid range of offsets")
	case h.count <= 0:
		return h, refuse(InvalidRecord, "the batch has an invalid number of records")
	case countFromOffsets != int64(h.count):
		return h, refuse(InvalidRecord, "the range of offsets does not fit the number of records")
	case h.attributes&attrControl != 0:
		return h, refuse(InvalidRecord, "clients may not write control records")
	case h.idempotent() && h.baseSequence < 0:
		return h, refuse(InvalidRecord, "a batch with a producer id has an invalid sequence number")
	case h.compression() > codecZstd:
		return h, refuse(InvalidRecord, "unknown compression type")
	}
	return h, nil
}

// stampHeader returns the header of the stored form of a batch whose original is b:
// the base offset and leader epoch are the broker's. With another timestamp type or
// largest timestamp than the original has, the checksum changes as well.
func stampHeader(dst *[HeaderSize]byte, b []byte, baseOffset int64, attributes int16, maxTimestamp int64) {
	be := binary.BigEndian
	copy(dst[:], b)
	be.PutUint64(dst[posBaseOffset:], uint64(baseOffset))
	be.PutUint32(dst[posLeaderEpoch:], leaderEpoch)
	be.PutUint16(dst[posAttributes:], uint16(attributes))
	be.PutUint64(dst[posMaxTimestamp:], uint64(maxTimestamp))
	if string(dst[posAttributes:]) != string(b[posAttributes:HeaderSize]) {
		crc := crc32.Checksum(dst[posAttributes:], castagnoli)
		be.PutUint32(dst[posCRC:], crc32.Update(crc, castagnoli, b[HeaderSize:]))
	}
}
