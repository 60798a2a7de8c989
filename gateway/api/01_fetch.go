package api

import (
	"bytes"
	"sync"
	"time"

	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Fetch, key 1, versions 4 to 18: version 5 has log start offsets, 7 fetch sessions
// (KIP-227), 9 leader epochs (KIP-320), 11 racks (KIP-392; there is one replica), 12
// is flexible and has diverging epochs, 13 topic ids, 15 the state of a replica, 16
// new leaders (KIP-951), 17 directory ids, 18 high watermarks of followers. Left
// out: replicas; who says to be one is served like a consumer.

// recordsPart is one partition of a fetch, or of a session.
type recordsPart struct {
	recordsKey
	topic *topics.Topic // nil while it does not exist
	part  *topics.Partition

	offset      int64
	limit       int32
	leaderEpoch int32
	// lastEpoch is the leader epoch of the last record that the client has.
	lastEpoch int32

	// code, end, stable, start and until are of the last look: until is where this
	// reader stops, at end or at stable. absent: there is no such partition for this
	// client.
	code               int16
	absent             bool
	end, stable, start int64
	until              int64
	// sentEnd and sentStart are what the client of the session was told last.
	sentEnd, sentStart int64
}

// recordsKey is what a fetch or a session knows a partition by. Up to version 12 the
// id is zero, from 13 on the name is empty.
type recordsKey struct {
	name  string
	id    topics.ID
	index int32
}

// recordsCall is one request.
type recordsCall struct {
	call     *Call
	h        *TopicHandlers
	ctx      recordsContext
	maxBytes int
	// committed: the isolation level is READ_COMMITTED.
	committed bool
	// waiter is set while the call is parked.
	waiter *topics.Waiter
}

func (h *TopicHandlers) fetch(c *Call) {
	req := c.Msg.(*kmsg.FetchRequest)
	f := &recordsCall{call: c, h: h, committed: req.IsolationLevel == 1}
	f.maxBytes = int(min(max(req.MaxBytes, 0), h.Config.FetchMaxBytes))
	if code := h.sessions.open(req, h.Now().UnixMilli(), &f.ctx); code != 0 {
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		resp.ErrorCode = code
		c.Respond(resp)
		return
	}
	wait := time.Duration(req.MaxWaitMillis) * time.Millisecond
	want := min(int(req.MinBytes), f.maxBytes)
	c.OnAbandon(f.abandon)
	for {
		if f.look() || wait <= 0 || want <= 0 {
			break
		}
		have := f.available(want)
		if have >= want {
			break
		}
		if f.park(int64(want-have), wait) {
			return
		}
	}
	c.AwaitBuilder(0, f)
}

// abandon gives up what the call holds. Nobody will take its response.
func (f *recordsCall) abandon() {
	if f.waiter != nil {
		f.waiter.Stop()
	}
	f.ctx.close(f.h.Now().UnixMilli())
}

// look finds what can be said of every partition now. It returns whether there is
// nothing to wait for: a partition has an error, or none is there. One that is not
// there beside others does not end the waiting, as in Kafka.
func (f *recordsCall) look() (final bool) {
	there := false
	for _, p := range f.ctx.parts {
		p.start, p.end, p.stable, p.until = -1, -1, -1, -1
		p.code = f.resolve(p)
		if p.absent = p.code != 0; p.absent {
			continue
		}
		there = true
		if p.code = leaderEpochFault(p.part, p.leaderEpoch); p.code == 0 {
			start, stable, end := p.part.Start(), p.part.Stable(), p.part.End() // in this order, as all only grow
			if p.offset >= start && p.offset <= end && p.lastEpoch <= p.part.LeaderEpoch() {
				p.start, p.end, p.stable, p.until = start, end, stable, end
				if f.committed {
					p.until = stable
				}
				continue
			}
			p.code = kerr.OffsetOutOfRange.Code
		}
		final = true
	}
	return final || !there
}

// resolve finds the partition, which may have come or gone since the last look.
func (f *recordsCall) resolve(p *recordsPart) int16 {
	byID := f.call.Version >= 13
	if p.topic == nil || p.topic.Deleted() {
		p.part = nil
		if byID {
			p.topic = f.h.Log.TopicByID(p.id)
		} else {
			p.topic = f.h.Log.Topic(p.name)
		}
	}
	name := p.name
	if byID {
		if p.topic == nil {
			return kerr.UnknownTopicID.Code
		}
		name = p.topic.Name
	}
	if !f.h.allowed(f.call, OpRead, ResourceTopic, name) {
		return kerr.TopicAuthorizationFailed.Code
	}
	if p.topic != nil && p.part == nil {
		p.part = p.topic.Partition(p.index)
	}
	if p.part == nil {
		return kerr.UnknownTopicOrPartition.Code
	}
	return 0
}

// available returns how many bytes can be read at once, counting no further than
// needed to know that want are there.
func (f *recordsCall) available(want int) (have int) {
	for _, p := range f.ctx.parts {
		if p.code != 0 || p.offset >= p.until {
			continue
		}
		if want == 1 {
			return 1
		}
		have += p.part.Available(p.offset, p.until, min(int(p.limit), want-have))
		if have >= want {
			break
		}
	}
	return have
}

// park holds the call until missing bytes more have come. It returns false if
// something has come since the last look.
func (f *recordsCall) park(missing int64, wait time.Duration) bool {
	seen := make([]topics.Seen, 0, len(f.ctx.parts))
	for _, p := range f.ctx.parts {
		if p.code == 0 {
			seen = append(seen, topics.Seen{Partition: p.part, Limit: p.until, Committed: f.committed})
		}
	}
	f.call.AwaitBuilder(1, f)
	f.waiter = topics.Wait(seen, missing, wait, f.call.Done)
	return f.waiter != nil
}

// Build reads what there is now.
func (f *recordsCall) Build() kmsg.Response {
	if f.waiter != nil {
		f.waiter.Stop()
		f.look()
	}
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = f.call.Version
	resp.Topics = make([]kmsg.FetchResponseTopic, 0, 1)
	f.maxBytes = f.h.responses.grant(f.maxBytes)
	read, absent := 0, 0
	for _, p := range f.ctx.parts {
		if p.absent {
			absent++
			continue
		}
		read += f.answer(resp, p, read)
	}
	if absent > 0 { // Kafka puts these behind the others
		for _, p := range f.ctx.parts {
			if p.absent {
				f.answer(resp, p, read)
			}
		}
	}
	if read > 0 {
		f.h.responses.take(read)
		f.call.OnSent(func() { f.h.responses.take(-read) })
	}
	f.ctx.close(f.h.Now().UnixMilli())
	resp.SessionID = f.ctx.sessionID
	return resp
}

// answer adds a partition to the response, unless its client knows all of that, and
// returns how many bytes it read. before have been read.
func (f *recordsCall) answer(resp *kmsg.FetchResponse, p *recordsPart, before int) int {
	var records []byte
	var aborted []topics.AbortedTransaction
	if p.code == 0 && p.offset < p.until {
		records, aborted = f.read(p, before)
	}
	if f.ctx.omits(p, len(records)) {
		return 0
	}
	f.ctx.sent(p, len(records))
	rp := addFetched(resp, p)
	if len(records) > 0 { // never null: librdkafka takes that for a broken frame
		rp.RecordBatches = records
	}
	if f.committed && p.code == 0 {
		rp.AbortedTransactions = make([]kmsg.FetchResponseTopicPartitionAbortedTransaction, len(aborted))
		for i, t := range aborted {
			rp.AbortedTransactions[i].ProducerID, rp.AbortedTransactions[i].FirstOffset = t.ProducerID, t.First
		}
	}
	return len(records)
}

// readBuffers are what partitions are read into before their size is known; what is
// larger than readBufferMax is not copied again.
var readBuffers = sync.Pool{New: func() any { return new([]byte) }}

const readBufferMax = 128 << 10

// read reads one partition, and which of the transactions in it were aborted, if the
// reader is to leave those out; before have been read. Only the first records of an
// answer may be more than was asked for.
func (f *recordsCall) read(p *recordsPart, before int) ([]byte, []topics.AbortedTransaction) {
	limit := max(min(int(p.limit), f.maxBytes-before), 0)
	buf := readBuffers.Get().(*[]byte)
	records, err := p.part.Read((*buf)[:0], p.offset, p.until, limit, before == 0)
	var aborted []topics.AbortedTransaction
	if err == nil && f.committed && len(records) > 0 {
		aborted, err = p.part.Aborted(p.offset, topics.EndOffset(records))
	}
	if err != nil {
		p.code = kerr.KafkaStorageError.Code
		p.start, p.end, p.stable = -1, -1, -1
		return nil, nil
	}
	if cap(records) > readBufferMax {
		return records, aborted
	}
	*buf = records[:0]
	records = bytes.Clone(records)
	readBuffers.Put(buf)
	return records, aborted
}

// addFetched adds a partition to the response, to the last topic if it is the same.
func addFetched(resp *kmsg.FetchResponse, p *recordsPart) *kmsg.FetchResponseTopicPartition {
	n := len(resp.Topics)
	if n == 0 || resp.Topics[n-1].Topic != p.name || resp.Topics[n-1].TopicID != p.id {
		resp.Topics = append(resp.Topics, kmsg.FetchResponseTopic{Topic: p.name, TopicID: p.id})
		n++
	}
	t := &resp.Topics[n-1]
	rp := kmsg.NewFetchResponseTopicPartition()
	rp.Partition = p.index
	rp.ErrorCode = p.code
	rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset = p.end, p.stable, p.start
	rp.RecordBatches = []byte{}
	t.Partitions = append(t.Partitions, rp)
	return &t.Partitions[len(t.Partitions)-1]
}
