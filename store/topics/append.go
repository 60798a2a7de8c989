package topics

import (
	"fmt"

	"github.com/rollcall-mq/rollcall/store"
)

// Append is one partition's part of a Produce request. The caller fills the first
// fields, [Log.Append] the others.
type Append struct {
	Partition *Partition
	// Records is what the request carries: one record batch of magic 2. It must not
	// change before Append returns.
	Records []byte
	// Zstd: the request is of a version that allows zstd.
	Zstd bool

	// Refusal is why nothing was appended; nil if the records are in the log and
	// durable, by this request or by an earlier one that it repeats.
	Refusal *Refusal
	// BaseOffset is the offset of the first record, -1 if there is none.
	BaseOffset int64
	// LogAppendTime is the time that the log gave the records, -1 if it keeps the
	// producer's; for a repeated batch the largest timestamp of the original.
	LogAppendTime int64
	// LogStart is the first offset of the partition, -1 if that is not known.
	LogStart int64

	header header
	// batch is the one batch of Records, and stamped its header as it is stored.
	batch        []byte
	stamped      [HeaderSize]byte
	attributes   int16
	maxTimestamp int64
	// written: the batch is new and gets stored; newMax: it has the largest timestamp.
	written, newMax bool
	producer        *producer
	// stable is the last stable offset with this batch.
	stable int64
}

// Append appends batches, which may be of several partitions, as one op of the
// committer, and calls done when all that were accepted are durable, maybe before it
// returns. done must not block and must not call the Log. Append returns how many it
// refused at once.
func (l *Log) Append(appends []Append, done func()) (refused int) {
	for i := range appends {
		if appends[i].Refusal == nil {
			l.check(&appends[i])
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	write, wait := false, false
	for i := range appends {
		a := &appends[i]
		if a.Refusal == nil {
			wait = l.place(a) || wait
			write = write || a.written
		}
		if a.Refusal != nil {
			refused++
		}
	}
	if !wait {
		done()
		return refused
	}
	op := store.Op{Sync: true, Done: func(err error) {
		appended(appends, err)
		done()
	}}
	if write {
		op.Write = func(b *store.Batch) { writeAppends(appends, b) }
	}
	l.committer.Submit(op)
	return refused
}

func (a *Append) fail(r *Refusal) {
	a.Refusal = r
	a.BaseOffset, a.LogAppendTime, a.LogStart = -1, -1, -1
	switch r.Code {
	case UnknownTopicOrPartition, MessageTooLarge, CorruptMessage, UnsupportedCompression, KafkaStorageError:
	default: // Kafka tells the start of the log only with the other errors.
		a.LogStart = a.Partition.Start()
	}
}

// check validates a batch by itself.
func (l *Log) check(a *Append) {
	a.BaseOffset, a.LogAppendTime, a.LogStart = -1, -1, -1
	var r *Refusal
	if a.batch, r = onlyBatch(a.Records, a.Zstd); r != nil {
		a.Refusal = r
		return
	}
	s := a.Partition.Topic.Settings()
	if a.header, r = checkBatch(a.batch, s); r == nil {
		r = l.checkRecords(a, s)
	}
	if r != nil {
		a.fail(r)
	}
}

// checkRecords goes through the records of a batch as Kafka's LogValidator does,
// decompressing them if need be, and finds their largest timestamp.
func (l *Log) checkRecords(a *Append, s *Settings) *Refusal {
	h := &a.header
	var d *decompressor
	if h.compression() != codecNone {
		d = l.unpack.get()
		defer l.unpack.put(d)
	}
	now := l.nowMs()
	a.attributes = h.attributes &^ attrLogAppendTime // which is not for clients to say
	a.maxTimestamp = -1
	var faults faults
	inOrder := true
	err := scanRecords(h, a.batch[HeaderSize:], d, s.MaxDecompressedBytes, func(r record) bool {
		a.maxTimestamp = max(a.maxTimestamp, r.timestamp)
		inOrder = inOrder && r.offsetDelta == r.index
		faults.check(h, r, s, now)
		return true
	})
	switch {
	case err != nil:
		return refuse(InvalidRecord, err.Error())
	case len(faults.records) > 0:
		return faults.refusal()
	case !inOrder:
		return refuse(InvalidRecord, "the records are not numbered one by one")
	}
	if s.LogAppendTime {
		a.attributes |= attrLogAppendTime
		a.maxTimestamp, a.LogAppendTime = now, now
	}
	return nil
}

// faults collects what is wrong with single records.
type faults struct {
	code    Code
	records []RecordError
}

func (f *faults) check(h *header, r record, s *Settings, now int64) {
	switch {
	case s.Compacted && r.nullKey:
		f.add(InvalidRecord, r.index, "Compacted topic cannot accept message without key.")
	case s.LogAppendTime && h.attributes&attrLogAppendTime != 0:
		f.add(InvalidTimestamp, r.index, "Only the log may set the time of the append.")
	case s.LogAppendTime, r.timestamp == -1:
	case r.timestamp > now && r.timestamp-now > s.TimestampAfterMax,
		r.timestamp < now && now-r.timestamp > s.TimestampBeforeMax:
		f.add(InvalidTimestamp, r.index, fmt.Sprintf("Timestamp %d is too far from the time of the gateway, %d.", r.timestamp, now))
	}
}

// recordErrorsMax bounds the records that are named in one refusal.
const recordErrorsMax = 1000

func (f *faults) add(code Code, index int32, message string) {
	if len(f.records) == 0 {
		f.code = code
	}
	if len(f.records) < recordErrorsMax {
		f.records = append(f.records, RecordError{Index: index, Message: message})
	}
}

func (f *faults) refusal() *Refusal {
	return &Refusal{Code: f.code, Message: "One or more records have been rejected.", Records: f.records}
}

// place gives a valid batch its offsets. It returns whether its answer has to wait
// for the disk. Guarded by mu.
func (l *Log) place(a *Append) bool {
	p, h := a.Partition, &a.header
	a.LogStart = p.Start()
	if p.Topic.deleting {
		a.fail(refuse(UnknownTopicOrPartition, "This server does not host this topic-partition."))
		return false
	}
	if h.idempotent() {
		a.producer = p.producers[h.producerID]
		if e := a.producer.duplicate(h); e != nil {
			a.BaseOffset, a.LogAppendTime = e.baseOffset, e.timestamp
			return e.lastOffset() >= p.End()
		}
		if r := a.producer.admit(h); r != nil {
			a.fail(r)
			return false
		}
	}
	a.written = true
	a.BaseOffset, a.newMax = p.take(int64(h.lastOffsetDelta)+1, a.maxTimestamp)
	stampHeader(&a.stamped, a.batch, a.BaseOffset, a.attributes, a.maxTimestamp)
	if h.idempotent() {
		l.produced(a)
	}
	a.stable = p.stableNext()
	return true
}

// take gives the next offsets to a batch of n records, and tells whether it has the
// largest timestamp. Guarded by Log.mu.
func (p *Partition) take(n, maxTimestamp int64) (base int64, newMax bool) {
	base = p.next
	p.next += n
	if newMax = maxTimestamp > p.maxTimestamp; newMax {
		p.maxTimestamp = maxTimestamp
	}
	return base, newMax
}

// produced remembers the batch for its producer.
func (l *Log) produced(a *Append) {
	h := &a.header
	a.producer = l.writes(a.Partition, a.producer, h.producerID, h.producerEpoch)
	a.producer.add(produced{
		firstSequence:   h.baseSequence,
		lastOffsetDelta: h.lastOffsetDelta,
		baseOffset:      a.BaseOffset,
		timestamp:       a.maxTimestamp,
	})
	if h.transactional() && a.producer.txnFirst < 0 {
		a.producer.txnFirst = a.BaseOffset
		a.Partition.open = append(a.Partition.open, a.producer)
	}
}

// writes returns what is remembered of a producer that writes now with this epoch: s,
// which is nil if nothing is yet. Guarded by mu.
func (l *Log) writes(p *Partition, s *producer, id int64, epoch int16) *producer {
	if s == nil {
		l.makeRoom(p)
		s = newProducer(epoch)
		p.remember(id, s)
	}
	if s.epoch != epoch {
		s.epoch, s.n, s.next = epoch, 0, 0
	}
	s.lastMs = l.nowMs()
	return s
}

// writeAppends puts the batches with their index and producer rows into a Pebble
// batch. It runs within Submit, so under Log.mu.
func writeAppends(appends []Append, b *store.Batch) {
	var key, value []byte
	for i := range appends {
		a := &appends[i]
		if !a.written {
			continue
		}
		p := a.Partition
		key = appendBatchKey(key[:0], p.Topic.ID, p.Index, a.BaseOffset)
		b.SetJoined(key, a.stamped[:], a.batch[HeaderSize:])
		if a.newMax {
			key = appendTimeKey(key[:0], p.Topic.ID, p.Index, a.maxTimestamp, a.BaseOffset)
			b.Set(key, nil)
		}
		if a.producer != nil {
			key = appendProducerKey(key[:0], p.Topic.ID, p.Index, a.header.producerID)
			value = a.producer.encode(value[:0])
			b.Set(key, value)
		}
		a.Records = nil
	}
}

// appended makes what is durable now visible.
func appended(appends []Append, err error) {
	for i := range appends {
		a := &appends[i]
		switch {
		case a.Refusal != nil:
		case err != nil:
			a.fail(refuse(KafkaStorageError, "The records could not be written."))
		case a.written:
			a.Partition.advance(a.BaseOffset+int64(a.header.lastOffsetDelta)+1, a.stable, int64(len(a.batch)))
		}
		a.batch = nil
	}
}

// Producer returns who wrote the first batch of the records, and whether that is part
// of a transaction; all of it unchecked.
func (a *Append) Producer() (id int64, epoch int16, transactional bool) {
	if len(a.Records) < HeaderSize || batchMagic(a.Records) != magic2 {
		return -1, -1, false
	}
	h := decodeHeader(a.Records)
	return h.producerID, h.producerEpoch, h.transactional()
}

// Refuse says before [Log.Append] that nothing is to be appended.
func (a *Append) Refuse(code Code) {
	a.Refusal = refuse(code, "")
	a.BaseOffset, a.LogAppendTime, a.LogStart = -1, -1, -1
}
