package group

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The encoding of a record: the format byte, the kind byte, the group id, Wall,
// By and what the kind has. Integers are varints (zigzag where they can be
// negative), strings have their length in front, what can be nil has its length
// plus one, with 0 for nil.
//
// Formats are never changed, only added: golden files in testdata/golden hold each
// one to what it was.
const recordFormat = 1

// Flags of one offset in a record or row; what is not flagged has its usual value
// and takes no space.
const (
	flagEpoch    = 1 << iota // the leader epoch is not -1
	flagExpire               // there is an explicit expiry
	flagMetadata             // the metadata is not empty
	flagCommit               // record: committed at another time than Wall
	flagID                   // row: a topic id of its own
	flagsKnown   = 1<<iota - 1
)

var (
	errTruncated = errors.New("ends too early")
	errOverflow  = errors.New("number too large")
	errCount     = errors.New("more elements than bytes")
	errFlags     = errors.New("unknown flags")
	errOrder     = errors.New("partitions not in order")
	errTrailing  = errors.New("bytes behind the end")
)

// AppendRecord appends the encoding of a record of group id to dst.
func AppendRecord(dst []byte, id string, rec *Record) []byte {
	dst = append(dst, recordFormat, byte(rec.Kind))
	dst = appendString(dst, id)
	dst = binary.AppendVarint(dst, int64(rec.Wall))
	dst = appendString(dst, rec.By.ClientID)
	dst = appendString(dst, rec.By.Host)
	dst = appendString(dst, rec.By.Principal)
	dst = appendString(dst, rec.By.MemberID)
	dst = binary.AppendVarint(dst, int64(rec.By.Generation))
	switch rec.Kind {
	case RecordOffsets:
		dst = appendOffsets(dst, rec.Offsets, rec.Wall)
	case RecordOffsetsDeleted:
		dst = appendOffsetsDeleted(dst, rec.Offsets)
	case RecordMembership:
		dst = appendMembership(dst, rec.Membership)
	case RecordGroupDeleted:
	case RecordPending:
		dst = appendTxn(dst, &rec.Txn)
		dst = appendOffsets(dst, rec.Offsets, rec.Wall)
	case RecordResolved:
		dst = appendTxn(dst, &rec.Txn)
		dst = appendBool(dst, rec.Commit)
	case RecordPendingDeleted:
		dst = appendTxn(dst, &rec.Txn)
		dst = appendOffsetsDeleted(dst, rec.Offsets)
	default:
		invariant(false, "unknown record kind")
	}
	return dst
}

// DecodeRecord decodes one record at the start of src and returns what is left.
// It refuses what it does not know: an unknown format was written by a newer
// version. Nothing of the result refers to src.
func DecodeRecord(src []byte) (id string, rec Record, rest []byte, err error) {
	d := decoder{buf: src}
	if format := d.byte(); d.err == nil && format != recordFormat {
		return "", Record{}, nil, fmt.Errorf("record of unknown format %d, this version knows %d", format, recordFormat)
	}
	rec.Kind = RecordKind(d.byte())
	id = d.string()
	rec.Wall = Time(d.varint())
	rec.By = Provenance{
		ClientID:  d.string(),
		Host:      d.string(),
		Principal: d.string(),
		MemberID:  d.string(),
	}
	rec.By.Generation = d.varint32()
	switch rec.Kind {
	case RecordOffsets:
		rec.Offsets = d.offsets(rec.Wall)
	case RecordOffsetsDeleted:
		rec.Offsets = d.offsetsDeleted()
	case RecordMembership:
		rec.Membership = d.membership()
	case RecordGroupDeleted:
	case RecordPending:
		rec.Txn = d.txn()
		rec.Offsets = d.offsets(rec.Wall)
	case RecordResolved:
		rec.Txn = d.txn()
		rec.Commit = d.bool()
	case RecordPendingDeleted:
		rec.Txn = d.txn()
		rec.Offsets = d.offsetsDeleted()
	default:
		return "", Record{}, nil, fmt.Errorf("record of unknown kind %d", rec.Kind)
	}
	if d.err != nil {
		return "", Record{}, nil, fmt.Errorf("record of group %q: %w", id, d.err)
	}
	return id, rec, d.buf, nil
}

// appendOffsets appends offsets, most of them committed at the time wall.
func appendOffsets(dst []byte, topics []OffsetsTopic, wall Time) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(topics)))
	for i := range topics {
		t := &topics[i]
		dst = appendString(dst, t.Name)
		dst = appendID(dst, t.ID)
		dst = binary.AppendUvarint(dst, uint64(len(t.Partitions)))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			flags := offsetFlags(p.LeaderEpoch, p.Expire, p.Metadata)
			if p.Commit != wall {
				flags |= flagCommit
			}
			dst = append(dst, flags)
			dst = binary.AppendVarint(dst, int64(p.Partition))
			dst = binary.AppendVarint(dst, p.Offset)
			if flags == 0 {
				continue
			}
			if flags&flagCommit != 0 {
				dst = binary.AppendVarint(dst, int64(p.Commit))
			}
			dst = appendFlagged(dst, flags, p.LeaderEpoch, p.Expire, p.Metadata)
		}
	}
	return dst
}

func (d *decoder) offsets(wall Time) []OffsetsTopic {
	topics := make([]OffsetsTopic, d.count(3))
	for i := range topics {
		t := &topics[i]
		t.Name = d.string()
		t.ID = d.id()
		t.Partitions = make([]OffsetsPartition, d.count(3))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			flags := d.flags(flagsKnown &^ flagID)
			p.Partition = d.varint32()
			p.Offset = d.varint()
			p.Commit = wall
			if flags&flagCommit != 0 {
				p.Commit = Time(d.varint())
			}
			p.LeaderEpoch, p.Expire, p.Metadata = d.flagged(flags)
		}
	}
	return topics
}

func appendTxn(dst []byte, txn *Transaction) []byte {
	dst = appendString(dst, txn.ID)
	dst = binary.AppendVarint(dst, txn.Number)
	dst = binary.AppendVarint(dst, txn.ProducerID)
	return binary.AppendVarint(dst, int64(txn.Epoch))
}

func (d *decoder) txn() Transaction {
	return Transaction{ID: d.string(), Number: d.varint(), ProducerID: d.varint(), Epoch: d.varint16()}
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func (d *decoder) bool() bool { return d.flags(1) == 1 }

func appendOffsetsDeleted(dst []byte, topics []OffsetsTopic) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(topics)))
	for i := range topics {
		t := &topics[i]
		dst = appendString(dst, t.Name)
		dst = binary.AppendUvarint(dst, uint64(len(t.Partitions)))
		for j := range t.Partitions {
			dst = binary.AppendVarint(dst, int64(t.Partitions[j].Partition))
		}
	}
	return dst
}

func (d *decoder) offsetsDeleted() []OffsetsTopic {
	topics := make([]OffsetsTopic, d.count(2))
	for i := range topics {
		t := &topics[i]
		t.Name = d.string()
		t.Partitions = make([]OffsetsPartition, d.count(1))
		for j := range t.Partitions {
			t.Partitions[j].Partition = d.varint32()
		}
	}
	return topics
}

func appendMembership(dst []byte, s *Membership) []byte {
	dst = appendString(dst, s.ProtocolType)
	dst = binary.AppendVarint(dst, int64(s.Generation))
	dst = binary.AppendVarint(dst, int64(s.Ceiling))
	dst = appendNullable(dst, s.Protocol)
	dst = appendString(dst, s.Leader)
	dst = binary.AppendVarint(dst, int64(s.Since))
	dst = binary.AppendUvarint(dst, uint64(len(s.Members)))
	for i := range s.Members {
		m := &s.Members[i]
		dst = appendString(dst, m.MemberID)
		dst = appendNullable(dst, m.InstanceID)
		dst = appendString(dst, m.ClientID)
		dst = appendString(dst, m.ClientHost)
		dst = binary.AppendVarint(dst, int64(m.SessionTimeout))
		dst = binary.AppendVarint(dst, int64(m.RebalanceTimeout))
		dst = binary.AppendUvarint(dst, uint64(len(m.Protocols)))
		for j := range m.Protocols {
			dst = appendString(dst, m.Protocols[j].Name)
			dst = appendBytes(dst, m.Protocols[j].Metadata)
		}
		dst = appendBytes(dst, m.Assignment)
	}
	return dst
}

func (d *decoder) membership() *Membership {
	s := &Membership{
		ProtocolType: d.string(),
		Generation:   d.varint32(),
		Ceiling:      d.varint32(),
		Protocol:     d.nullable(),
		Leader:       d.string(),
		Since:        Time(d.varint()),
	}
	s.Members = make([]MemberSnapshot, d.count(8))
	for i := range s.Members {
		m := &s.Members[i]
		m.MemberID = d.string()
		m.InstanceID = d.nullable()
		m.ClientID = d.string()
		m.ClientHost = d.string()
		m.SessionTimeout = d.varint32()
		m.RebalanceTimeout = d.varint32()
		m.Protocols = make([]Protocol, d.count(2))
		for j := range m.Protocols {
			m.Protocols[j] = Protocol{Name: d.string(), Metadata: d.bytes()}
		}
		m.Assignment = d.bytes()
	}
	return s
}

// offsetFlags returns the flags that records and rows have in common.
func offsetFlags(epoch int32, expire Time, metadata string) byte {
	var flags byte
	if epoch != -1 {
		flags |= flagEpoch
	}
	if expire != -1 {
		flags |= flagExpire
	}
	if metadata != "" {
		flags |= flagMetadata
	}
	return flags
}

func appendFlagged(dst []byte, flags byte, epoch int32, expire Time, metadata string) []byte {
	if flags&flagEpoch != 0 {
		dst = binary.AppendVarint(dst, int64(epoch))
	}
	if flags&flagExpire != 0 {
		dst = binary.AppendVarint(dst, int64(expire))
	}
	if flags&flagMetadata != 0 {
		dst = appendString(dst, metadata)
	}
	return dst
}

func (d *decoder) flagged(flags byte) (epoch int32, expire Time, metadata string) {
	epoch, expire = -1, -1
	if flags&flagEpoch != 0 {
		epoch = d.varint32()
	}
	if flags&flagExpire != 0 {
		expire = Time(d.varint())
	}
	if flags&flagMetadata != 0 {
		metadata = d.string()
	}
	return epoch, expire, metadata
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendNullable(dst []byte, s *string) []byte {
	if s == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(*s))+1), *s...)
}

func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(b))+1), b...)
}

// appendID appends a topic id: one byte if it is not known, else 17.
func appendID(dst []byte, id TopicID) []byte {
	if id == (TopicID{}) {
		return append(dst, 0)
	}
	return append(append(dst, 1), id[:]...)
}

// decoder reads from the front of buf. After the first error everything it
// returns is zero, so that callers check once, at the end. It allocates no more
// than a constant times what it has read.
type decoder struct {
	buf []byte
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.buf = nil
}

func (d *decoder) byte() byte {
	if len(d.buf) == 0 {
		d.fail(errTruncated)
		return 0
	}
	b := d.buf[0]
	d.buf = d.buf[1:]
	return b
}

func (d *decoder) uvarint() uint64 {
	if len(d.buf) > 0 && d.buf[0] < 0x80 {
		v := uint64(d.buf[0])
		d.buf = d.buf[1:]
		return v
	}
	v, n := binary.Uvarint(d.buf)
	switch {
	case n == 0:
		d.fail(errTruncated)
		return 0
	case n < 0:
		d.fail(errOverflow)
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

func (d *decoder) varint() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *decoder) varint32() int32 {
	v := d.varint()
	if v != int64(int32(v)) {
		d.fail(errOverflow)
		return 0
	}
	return int32(v)
}

func (d *decoder) varint16() int16 {
	v := d.varint()
	if v != int64(int16(v)) {
		d.fail(errOverflow)
		return 0
	}
	return int16(v)
}

// count reads the number of elements that follow, each of at least size bytes.
func (d *decoder) count(size int) int {
	n := d.uvarint()
	if n > uint64(len(d.buf)/size) {
		d.fail(errCount)
		return 0
	}
	return int(n)
}

func (d *decoder) flags(known byte) byte {
	f := d.byte()
	if f&^known != 0 {
		d.fail(errFlags)
		return 0
	}
	return f
}

// take returns the next n bytes of buf itself.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.buf)) {
		d.fail(errTruncated)
		return nil
	}
	b := d.buf[:n:n]
	d.buf = d.buf[n:]
	return b
}

func (d *decoder) string() string { return string(d.take(d.uvarint())) }

func (d *decoder) nullable() *string {
	n := d.uvarint()
	if n == 0 {
		return nil
	}
	s := string(d.take(n - 1))
	return &s
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n == 0 {
		return nil
	}
	return append([]byte{}, d.take(n-1)...)
}

func (d *decoder) id() (id TopicID) {
	switch d.byte() {
	case 0:
	case 1:
		copy(id[:], d.take(uint64(len(id))))
	default:
		d.fail(errFlags)
	}
	return id
}
