package shard

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// A batch in the change log is a version byte, the number of records (4 bytes, big
// endian) and the records as package group encodes them.
const (
	batchVersion = 1
	batchHead    = 5
)

// errBatch is what a batch that is not one of ours fails with.
var errBatch = errors.New("damaged batch in the change log")

// errBatchVersion is what a batch of a newer format fails with.
var errBatchVersion = errors.New("batch in the change log has an unknown version")

// openBatch returns the number of records of a batch and their encoding.
func openBatch(value []byte) (count int, records []byte, err error) {
	if len(value) < batchHead {
		return 0, nil, errBatch
	}
	if value[0] != batchVersion {
		return 0, nil, errBatchVersion
	}
	return int(binary.BigEndian.Uint32(value[1:])), value[batchHead:], nil
}

// DecodeBatch calls f with each record of a batch of the change log and its
// sequence number; first is that of the batch.
func DecodeBatch(first uint64, value []byte, f func(seq uint64, id string, rec *group.Record) error) error {
	count, rest, err := openBatch(value)
	if err != nil {
		return err
	}
	for i := range count {
		var id string
		var rec group.Record
		if id, rec, rest, err = group.DecodeRecord(rest); err != nil {
			return err
		}
		if err = f(first+uint64(i), id, &rec); err != nil {
			return err
		}
	}
	if len(rest) != 0 {
		return errBatch
	}
	return nil
}

// held is a reply that waits for the disk.
type held struct {
	sink  Sink
	reply group.Reply
	// since is when it began to wait.
	since group.Time
	// fetch: the request is an OffsetFetch, whose errors differ.
	fetch bool
}

// batch is a batch of records on its way to the disk. Its fields belong to the
// turn until it is handed to the log; then waiting and next belong to outbox.mu
// and the rest does not change. It is used again when it is durable.
type batch struct {
	// first is the sequence number of its first record, count how many there are.
	first uint64
	count int
	value []byte
	// start is when it was handed to the log, for the listener only.
	start time.Time
	// waiting are the replies that wait for it, in the order they were made; those
	// before next have timed out.
	waiting []held
	next    int
	// spare is an empty list to swap with waiting.
	spare []held
	// done is given to the log; it is made once for all uses of the batch.
	done func(error)
}

// end is the first sequence number after the batch.
func (b *batch) end() uint64 { return b.first + uint64(b.count) }

// seal writes the head of the value.
func (b *batch) seal() {
	b.value[0] = batchVersion
	binary.BigEndian.PutUint32(b.value[1:], uint32(b.count))
}

// outbox has the batches that are not durable yet.
type outbox struct {
	mu sync.Mutex
	// batches were handed to the log and are not durable, in order.
	batches []*batch
	free    []*batch
	// idle is closed when batches becomes empty or the log fails; nil if nobody
	// waits for that.
	idle chan struct{}
	// err is what a write failed with; failed is set then. Nothing that waited
	// leaves after it.
	err    error
	failed atomic.Bool
	// durable is the first sequence number that is not durable. It grows only when
	// every reply that waited for less has left, so whoever reads it without the
	// lock may answer at once and still be in order.
	durable atomic.Uint64
}

// Limits of what is kept for the next use of a batch.
const (
	freeBatchesMax = 4
	freeValueMax   = 64 << 10
	freeWaitingMax = 1024
)

// newBatch returns an empty batch that begins at first.
func (s *Shard) newBatch(first uint64) *batch {
	var b *batch
	s.out.mu.Lock()
	if n := len(s.out.free); n > 0 {
		b, s.out.free = s.out.free[n-1], s.out.free[:n-1]
	}
	s.out.mu.Unlock()
	if b == nil {
		b = &batch{value: make([]byte, batchHead, 512)}
		b.done = func(err error) { s.settle(b, err) }
	}
	b.first, b.count, b.next = first, 0, 0
	b.value = b.value[:batchHead]
	return b
}

// append adds the records of one step to the batch of the turn.
func (s *Shard) append(e *entry, records []group.Record) {
	b := s.cur
	for i := range records {
		b.value = group.AppendRecord(b.value, e.id, &records[i])
	}
	b.count += len(records)
	s.seq += uint64(len(records))
	e.need = s.seq
	s.touch(e)
}

// flush hands the batch of the turn to the log, if there is anything in it.
func (s *Shard) flush() {
	b := s.cur
	if b.count == 0 {
		return
	}
	b.seal()
	b.start = time.Now()
	s.turnStats.Records += b.count
	s.turnStats.Bytes += len(b.value)
	s.fold.logged += len(b.value)
	s.out.mu.Lock()
	failed := s.out.err != nil
	if !failed {
		s.out.batches = append(s.out.batches, b)
	}
	s.out.mu.Unlock()
	s.cur = s.newBatch(s.seq)
	if !failed {
		s.log.Append(s.n, s.epoch, b.first, b.count, b.value, b.done)
	}
}

// hold keeps a reply until everything before need is durable, or lets it go if it
// is by now.
func (s *Shard) hold(need uint64, h held) {
	if s.timeoutAt == never {
		s.timeoutAt = h.since + s.cfg.CommitTimeout
	}
	if need > s.cur.first {
		s.cur.waiting = append(s.cur.waiting, h)
		return
	}
	s.out.mu.Lock()
	if s.out.err != nil {
		s.out.mu.Unlock()
		return
	}
	for i := len(s.out.batches) - 1; i >= 0; i-- {
		if b := s.out.batches[i]; b.first < need {
			invariant(need <= b.end(), "a reply waits for a record that was never written")
			b.waiting = append(b.waiting, h)
			s.out.mu.Unlock()
			return
		}
	}
	s.out.mu.Unlock()
	s.release(&h)
}

// settle ends a batch that the log has written or could not write. It runs on the
// log's goroutine.
func (s *Shard) settle(b *batch, err error) {
	if err != nil {
		s.fail(err)
		return
	}
	replies := 0
	o := &s.out
	o.mu.Lock()
	if o.err != nil {
		o.mu.Unlock()
		return
	}
	invariant(len(o.batches) > 0 && o.batches[0] == b, "batches become durable out of order")
	for len(b.waiting) > b.next {
		list := b.waiting[b.next:]
		whole := b.waiting
		b.waiting, b.spare, b.next = b.spare[:0], nil, 0
		o.mu.Unlock()
		for i := range list {
			s.release(&list[i])
		}
		replies += len(list)
		clear(whole)
		o.mu.Lock()
		b.spare = whole[:0]
	}
	latency, bytes, records := time.Since(b.start), len(b.value), b.count
	o.durable.Store(b.end())
	copy(o.batches, o.batches[1:])
	o.batches[len(o.batches)-1] = nil
	o.batches = o.batches[:len(o.batches)-1]
	if len(o.free) < freeBatchesMax && cap(b.value) <= freeValueMax && cap(b.waiting)+cap(b.spare) <= freeWaitingMax {
		b.waiting = b.waiting[:0]
		o.free = append(o.free, b)
	}
	o.signal()
	o.mu.Unlock()
	s.cfg.Listener.OnDurable(s.n, Durable{Records: records, Bytes: bytes, Replies: replies, Latency: latency})
}

// signal tells who waits for an empty outbox. o.mu is held.
func (o *outbox) signal() {
	if o.idle != nil && (len(o.batches) == 0 || o.err != nil) {
		close(o.idle)
		o.idle = nil
	}
}

// fail ends the shard: what waits is dropped and Run returns the error.
func (s *Shard) fail(err error) {
	o := &s.out
	o.mu.Lock()
	if o.err == nil {
		o.err = err
		o.failed.Store(true)
		for _, b := range o.batches {
			clear(b.waiting)
			b.waiting, b.next = b.waiting[:0], 0
		}
	}
	o.signal()
	o.mu.Unlock()
	s.wakeUp()
}

// failure returns what a write failed with.
func (s *Shard) failure() error {
	if !s.out.failed.Load() {
		return nil
	}
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	return s.out.err
}

// release lets a reply go, unless the shard is not ours any more.
func (s *Shard) release(h *held) {
	if t := s.log.OwnedUntil(s.n); !t.IsZero() && !time.Now().Before(t) {
		h.reply = group.Reply{Req: h.reply.Req, Code: group.NotCoordinator}
	}
	h.sink.Reply(h.reply)
}

// timeouts answers what has waited too long for the disk.
func (s *Shard) timeouts(now group.Time) {
	if s.timeoutAt > now {
		return
	}
	s.timeoutAt = s.refuseOverdue(now)
	if len(s.cur.waiting) > 0 {
		s.timeoutAt = min(s.timeoutAt, s.cur.waiting[0].since+s.cfg.CommitTimeout)
	}
}

// RefuseOverdue answers what has waited offsets.commit.timeout.ms for the disk. A
// turn does that by itself, unless it hangs in the log; so it is to be called now
// and then, by any goroutine.
func (s *Shard) RefuseOverdue() {
	now, _ := s.cfg.Clock()
	s.refuseOverdue(now)
}

// refuseOverdue is RefuseOverdue at the given time. It returns when the next reply
// of what was handed to the log is overdue.
func (s *Shard) refuseOverdue(now group.Time) (next group.Time) {
	var late []held
	next = never
	s.out.mu.Lock()
	for _, b := range s.out.batches {
		for ; b.next < len(b.waiting); b.next++ {
			h := &b.waiting[b.next]
			if at := h.since + s.cfg.CommitTimeout; at > now {
				next = min(next, at)
				break
			}
			late = append(late, *h)
			*h = held{}
		}
	}
	s.out.mu.Unlock()
	for i := range late {
		code := group.CoordinatorNotAvailable
		if late[i].fetch {
			code = group.NotCoordinator
		}
		late[i].reply = group.Reply{Req: late[i].reply.Req, Code: code}
		s.release(&late[i])
	}
	if len(late) > 0 {
		s.cfg.Listener.OnTimeout(s.n, len(late))
	}
	return next
}
