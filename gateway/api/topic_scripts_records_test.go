package api

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// batchSpec is a record batch to produce.
type batchSpec struct {
	times   []int64 // one record each
	keyless bool
	value   []byte // nil: "v"
	batch   kmsg.RecordBatch
	// edit changes the bytes before the checksum is made, breakIt after.
	edit, breakIt func([]byte) []byte
	body          func([]byte) []byte
}

func recordsAt(times ...int64) batchSpec {
	return batchSpec{times: times, batch: kmsg.RecordBatch{ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1}}
}

func someRecords(n int) batchSpec {
	return recordsAt(make([]int64, n)...)
}

// from makes the batch one of an idempotent producer.
func (b batchSpec) from(id int64, epoch int16, sequence int32) batchSpec {
	b.batch.ProducerID, b.batch.ProducerEpoch, b.batch.FirstSequence = id, epoch, sequence
	return b
}

func (b batchSpec) attributes(a int16) batchSpec {
	b.batch.Attributes |= a
	return b
}

func (b batchSpec) bytes() []byte {
	now := time.Now().UnixMilli()
	rb := b.batch
	var body []byte
	for i, at := range b.times {
		if at == 0 {
			at = now
		}
		if i == 0 {
			rb.FirstTimestamp, rb.MaxTimestamp = at, at
		}
		rb.MaxTimestamp = max(rb.MaxTimestamp, at)
		rec := kmsg.Record{TimestampDelta64: at - rb.FirstTimestamp, OffsetDelta: int32(i), Key: []byte("k"), Value: []byte("v")}
		if b.value != nil {
			rec.Value = b.value
		}
		if b.keyless {
			rec.Key = nil
		}
		rec.Length = int32(len(rec.AppendTo(nil)) - 1)
		body = rec.AppendTo(body)
	}
	if b.body != nil {
		body = b.body(body)
	}
	rb.Magic, rb.PartitionLeaderEpoch = 2, -1
	rb.NumRecords, rb.LastOffsetDelta = int32(len(b.times)), int32(len(b.times)-1)
	rb.Records = body
	raw := rb.AppendTo(nil)
	if b.edit != nil {
		raw = b.edit(raw)
	}
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	if b.breakIt != nil {
		raw = b.breakIt(raw)
	}
	return raw
}

func produceRaw(topic string, id [16]byte, acks int16, partition int32, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 5000
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, TopicID: id,
		Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: partition, Records: records}}}}
	return req
}

func produce(topic string, b batchSpec) *kmsg.ProduceRequest {
	return produceRaw(topic, [16]byte{}, -1, 0, b.bytes())
}

// fill produces without writing it down.
func (c *conversation) fill(topic string, batches ...batchSpec) {
	c.t.Helper()
	c.quiet = true
	defer func() { c.quiet = false }()
	for _, b := range batches {
		resp := c.ask(9, produce(topic, b)).(*kmsg.ProduceResponse)
		if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
			c.t.Fatalf("produce to %s: %d", topic, code)
		}
	}
}

func scriptProduceVersions(c *conversation) {
	id := c.topic("produce", 1)
	for v := int16(0); v <= 13; v++ {
		for _, acks := range []int16{-1, 1, 0, 2, -2} {
			if v < 3 && acks != -1 || v == 2 {
				continue // closes the connection anyway
			}
			c.say("acks %d", acks)
			c.ask(v, produceRaw("produce", id, acks, 0, someRecords(2).bytes()))
		}
	}
	c.say("the connection still works after acks 0, and what was sent is there")
	c.fill("produce", someRecords(1))
	c.ask(7, listOffsets("produce", -1, -1))
}

func scriptProduceRefused(c *conversation) {
	id := c.topic("refused", 1)
	good := someRecords(1).bytes()
	c.say("unknown topic, partition, id, zero id")
	for _, v := range []int16{3, 8, 12} {
		c.ask(v, produceRaw("refused-nothing", id, -1, 0, good))
		c.ask(v, produceRaw("refused", id, -1, 1, good))
		c.ask(v, produceRaw("refused", id, -1, -1, good))
	}
	c.ask(13, produceRaw("", [16]byte{7}, -1, 0, good))
	c.ask(13, produceRaw("", [16]byte{}, -1, 0, good))
	c.ask(13, produceRaw("", id, -1, 1, good))
	c.say("the same with acks 0")
	c.ask(9, produceRaw("refused-nothing", id, 0, 0, good))
	c.ask(9, produceRaw("refused", id, 0, 0, []byte{}))
	c.ask(9, produceRaw("refused", id, 0, 0, good[:30]))
	c.say("a bad name")
	c.ask(9, produceRaw("bad name", id, -1, 0, good))
	c.say("no topics, no partitions")
	none := produceRaw("refused", id, -1, 0, good)
	none.Topics[0].Partitions = nil
	c.ask(9, none)
	none.Topics = nil
	c.ask(9, none)
	none.Acks = 0
	c.ask(9, none)
	none.Acks = 7
	c.ask(9, none)
	c.say("one good and one bad partition")
	two := produceRaw("refused", id, -1, 0, good)
	two.Topics[0].Partitions = append(two.Topics[0].Partitions, kmsg.ProduceRequestTopicPartition{Partition: 5, Records: good})
	c.ask(9, two)
}

func set16(at int, v uint16) func([]byte) []byte {
	return func(b []byte) []byte { binary.BigEndian.PutUint16(b[at:], v); return b }
}

func set32(at int, v uint32) func([]byte) []byte {
	return func(b []byte) []byte { binary.BigEndian.PutUint32(b[at:], v); return b }
}

func set64(at int, v uint64) func([]byte) []byte {
	return func(b []byte) []byte { binary.BigEndian.PutUint64(b[at:], v); return b }
}

func edited(n int, edit func([]byte) []byte) []byte {
	b := someRecords(n)
	b.edit = edit
	return b.bytes()
}

func broken(n int, edit func([]byte) []byte) []byte {
	b := someRecords(n)
	b.breakIt = edit
	return b.bytes()
}

func withBody(n int, body func([]byte) []byte) []byte {
	b := someRecords(n)
	b.body = body
	return b.bytes()
}

func scriptProduceHostile(c *conversation) {
	c.topic("hostile", 1)
	good := someRecords(3).bytes()
	cases := []struct {
		what    string
		records []byte
	}{
		{"empty", []byte{}},
		{"11 bytes", good[:11]},
		{"16 bytes", good[:16]},
		{"a byte missing", good[:len(good)-1]},
		{"a byte too many", append(bytes.Clone(good), 0)},
		{"20 bytes too many", append(bytes.Clone(good), bytes.Repeat([]byte{9}, 20)...)},
		{"twice", append(bytes.Clone(good), good...)},
		{"wrong checksum", broken(3, func(b []byte) []byte { b[len(b)-1] ^= 1; return b })},
		{"wrong checksum and offset", broken(3, func(b []byte) []byte { b[7] = 5; b[len(b)-1] ^= 1; return b })},
		{"length 0", broken(3, set32(8, 0))},
		{"length 13", broken(3, set32(8, 13))},
		{"length 14", broken(3, set32(8, 14))},
		{"length 48", broken(3, set32(8, 48))},
		{"length -1", broken(3, set32(8, ^uint32(0)))},
		{"length too large", broken(3, set32(8, 1<<30))},
		{"magic 0", broken(3, func(b []byte) []byte { b[16] = 0; return b })},
		{"magic 1", broken(3, func(b []byte) []byte { b[16] = 1; return b })},
		{"magic 3", broken(3, func(b []byte) []byte { b[16] = 3; return b })},
		{"magic -1", broken(3, func(b []byte) []byte { b[16] = 255; return b })},
		{"base offset 5", edited(3, set64(0, 5))},
		{"last offset delta 3", edited(3, set32(23, 3))},
		{"last offset delta 1", edited(3, set32(23, 1))},
		{"last offset delta -1", edited(3, set32(23, ^uint32(0)))},
		{"count 4", edited(3, set32(57, 4))},
		{"count 0", edited(3, set32(57, 0))},
		{"count -1", edited(3, set32(57, ^uint32(0)))},
		{"count and delta too large", edited(3, func(b []byte) []byte { return set32(57, 4)(set32(23, 3)(b)) })},
		{"count and delta too small", edited(3, func(b []byte) []byte { return set32(57, 2)(set32(23, 1)(b)) })},
		{"count and delta huge", edited(3, func(b []byte) []byte { return set32(57, 1<<31-1)(set32(23, 1<<31-2)(b)) })},
		{"control batch", someRecords(1).attributes(0x20).bytes()},
		{"log append time", someRecords(1).attributes(0x08).bytes()},
		{"delete horizon", someRecords(1).attributes(0x40).bytes()},
		{"unused bits", edited(1, set16(21, 0x7f80))},
		{"transactional without an id", someRecords(1).attributes(0x10).bytes()},
		{"transactional with an id", someRecords(1).from(5, 0, 0).attributes(0x10).bytes()},
		{"producer without a sequence", someRecords(1).from(1234567, 0, -1).bytes()},
		{"producer without an epoch", someRecords(1).from(1234568, -1, 0).bytes()},
		{"sequence without a producer", someRecords(1).from(-1, 0, 5).bytes()},
		{"no records at all", withBody(1, func([]byte) []byte { return nil })},
		{"records cut off", withBody(3, func(b []byte) []byte { return b[:len(b)-2] })},
		{"bytes behind the records", withBody(3, func(b []byte) []byte { return append(b, 1, 2) })},
		{"record length -1", withBody(1, func(b []byte) []byte { b[0] = 1; return b })},
		{"record length 0", withBody(1, func(b []byte) []byte { b[0] = 0; return b })},
		{"record length too large", withBody(1, func(b []byte) []byte { b[0] += 2; return b })},
		{"key length too large", withBody(1, func(b []byte) []byte { b[4] = 100; return b })},
		{"key length -2", withBody(1, func(b []byte) []byte { b[4] = 3; return b })},
		{"a header count of -1", withBody(1, func(b []byte) []byte { b[len(b)-1] = 1; return b })},
		{"a header count of 60", withBody(1, func(b []byte) []byte { b[len(b)-1] = 120; return b })},
		{"record attributes", withBody(1, func(b []byte) []byte { b[1] = 0x55; return b })},
		{"largest timestamp wrong", edited(2, set64(35, 12345))},
	}
	for _, k := range cases {
		c.say("%s", k.what)
		c.ask(9, produceRaw("hostile", [16]byte{}, -1, 0, k.records))
	}
	c.say("what is in the log now")
	c.ask(12, fetchOf("hostile", 0))
	c.say("zstd before version 7")
	c.ask(6, produceRaw("hostile", [16]byte{}, -1, 0, someRecords(1).attributes(4).bytes()))
	c.say("too large by one byte")
	large := make([]byte, 1048588-61)
	over := withBody(1, func([]byte) []byte { return append(large, 0) })
	c.ask(9, produceRaw("hostile", [16]byte{}, -1, 0, over))
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func scriptProduceRecords(c *conversation) {
	now := time.Now().UnixMilli()
	c.say("B164: timestamps 0 (as 1 ms), -1, -5, and far away")
	c.topic("stamps", 1)
	for _, at := range [][]int64{{1}, {-1}, {-5}, {now + 3_500_000}, {now + 3_700_000}, {now, now + 4_000_000, now, now + 4_000_000}, {1 << 62}} {
		c.ask(9, produce("stamps", recordsAt(at...)))
	}
	late := recordsAt(now, now+4_000_000).attributes(1)
	late.body = gzipped
	c.say("compressed")
	c.ask(9, produce("stamps", late))
	c.ask(3, produce("stamps", late))
	c.topic("stamps-before", 1, "message.timestamp.before.max.ms", "1000", "message.timestamp.after.max.ms", "1000")
	c.say("too old, without a stamp, negative, too new, right")
	for _, at := range []int64{now - 100_000, -1, -5, now + 100_000, 0} {
		c.ask(9, produce("stamps-before", recordsAt(at)))
	}
	c.say("null keys on a compacted topic")
	c.topic("compacted", 1, "cleanup.policy", "compact")
	keyless := someRecords(2)
	keyless.keyless = true
	c.ask(9, produce("compacted", keyless))
	keyless.body = gzipped
	c.ask(9, produce("compacted", keyless.attributes(1)))
	c.ask(9, produce("compacted", someRecords(2)))
	c.say("a topic with small messages, compressed ones that are too large inside")
	c.topic("small", 1, "max.message.bytes", "250", "max.decompressed.message.bytes", "300")
	c.ask(9, produce("small", someRecords(40)))
	packed := someRecords(12).attributes(1)
	packed.body = gzipped
	c.ask(9, produce("small", packed))
	packed.times = make([]int64, 60)
	c.ask(9, produce("small", packed))
	for _, n := range []int{250, 400} {
		packed = someRecords(1).attributes(1)
		packed.value, packed.body = make([]byte, n), gzipped
		c.ask(9, produce("small", packed))
	}
}

func scriptProduceIdempotent(c *conversation) {
	c.topic("idem", 1)
	init := kmsg.NewPtrInitProducerIDRequest()
	id := c.initProducerID(4, init).ProducerID
	other := c.initProducerID(4, init).ProducerID
	at := time.Now().UnixMilli() - 5000
	c.names[strconv.FormatInt(at, 10)] = "(the producer's)"
	send := func(what string, id int64, epoch int16, sequence int32, n int) {
		c.say("%s", what)
		b := recordsAt(at)
		for range n - 1 {
			b.times = append(b.times, at)
		}
		c.ask(9, produce("idem", b.from(id, epoch, sequence)))
	}
	send("first", id, 0, 0, 2)
	send("the same again", id, 0, 0, 2)
	send("next", id, 0, 2, 3)
	send("the first again", id, 0, 0, 2)
	send("begins like the first, but longer", id, 0, 0, 3)
	send("ends like the last", id, 0, 3, 2)
	send("a gap", id, 0, 6, 1)
	send("next", id, 0, 5, 1)
	send("older epoch? there is none below 0; a new epoch not at 0", id, 1, 6, 1)
	send("a new epoch", id, 1, 0, 1)
	send("the old epoch goes on", id, 0, 6, 1)
	send("the old epoch repeats", id, 0, 5, 1)
	for i := int32(1); i < 7; i++ {
		c.fill("idem", recordsAt(at).from(id, 1, i))
	}
	send("within the last five", id, 1, 2, 1)
	send("before the last five", id, 1, 1, 1)
	send("a producer that is not known begins at 7", other, 3, 7, 1)
	send("and goes on", other, 3, 8, 1)
	send("an epoch far ahead", other, 30, 0, 1)
	third := other + 1_000_000
	send("near the end of the sequence", third, 0, 2147483645, 2)
	send("over the end", third, 0, 2147483647, 3)
	send("the one over the end again", third, 0, 2147483647, 3)
	send("behind the end", third, 0, 2, 1)
	fourth := third + 1
	send("up to the very end", fourth, 0, 2147483646, 2)
	send("behind the very end", fourth, 0, 0, 2)
	c.ask(7, listOffsets("idem", -1, -1))
}

func scriptLogAppendTime(c *conversation) {
	c.topic("appended", 1, "message.timestamp.type", "LogAppendTime")
	before := time.Now().UnixMilli()
	c.quiet = true
	p := c.ask(9, produce("appended", recordsAt(5, 1<<60, -1).from(77, 0, 0))).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	again := c.ask(9, produce("appended", recordsAt(5, 1<<60, -1).from(77, 0, 0))).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	c.quiet = false
	c.say("error %d, offset %d, a time of the log: %t; again error %d, offset %d, the same time: %t", p.ErrorCode, p.BaseOffset,
		p.LogAppendTime >= before, again.ErrorCode, again.BaseOffset, again.LogAppendTime == p.LogAppendTime)
	c.ask(12, fetchOf("appended", 0))
	c.say("a client that says the time is the log's")
	c.ask(9, produce("appended", someRecords(1).attributes(8)))
}

func fetchOf(topic string, offset int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 0, 1, 1<<20
	req.Topics = []kmsg.FetchRequestTopic{{Topic: topic, Partitions: []kmsg.FetchRequestTopicPartition{fetchPartition(0, offset)}}}
	return req
}

func fetchPartition(index int32, offset int64) kmsg.FetchRequestTopicPartition {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = index, offset, 1<<20
	return p
}

func listOffsets(topic string, epoch int32, times ...int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	t := kmsg.ListOffsetsRequestTopic{Topic: topic}
	for _, at := range times {
		t.Partitions = append(t.Partitions, kmsg.ListOffsetsRequestTopicPartition{CurrentLeaderEpoch: epoch, Timestamp: at, MaxNumOffsets: 1})
	}
	req.Topics = append(req.Topics, t)
	req.TimeoutMillis = 1000
	return req
}

func scriptFetchVersions(c *conversation) {
	id := c.topic("fetched", 2)
	c.fill("fetched", someRecords(3))
	for v := int16(4); v <= 18; v++ {
		for _, isolation := range []int8{0, 1} {
			req := fetchOf("fetched", 0)
			req.Topics[0].TopicID, req.IsolationLevel = id, isolation
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, fetchPartition(1, 0), fetchPartition(2, 0))
			c.ask(v, req)
		}
	}
	c.say("unknown topic, unknown id, zero id, a bad name")
	c.ask(12, fetchOf("fetched-nothing", 0))
	req := fetchOf("", 0)
	req.Topics[0].TopicID = [16]byte{5}
	c.ask(13, req)
	req.Topics[0].TopicID = [16]byte{}
	c.ask(13, req)
	c.ask(12, fetchOf("bad name", 0))
	c.say("leader epochs 0, 1, -2; the last fetched epoch 0, 1")
	for _, epoch := range []int32{0, 1, -2} {
		req := fetchOf("fetched", 0)
		req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
		c.ask(12, req)
	}
	for _, epoch := range []int32{0, 1} {
		req := fetchOf("fetched", 3)
		req.Topics[0].Partitions[0].LastFetchedEpoch = epoch
		c.ask(12, req)
	}
	c.say("nothing to fetch")
	empty := fetchOf("fetched", 0)
	empty.Topics = nil
	c.ask(12, empty)
	c.say("the same partition twice")
	twice := fetchOf("fetched", 0)
	twice.Topics[0].Partitions = append(twice.Topics[0].Partitions, fetchPartition(0, 3))
	c.ask(12, twice)
}

func scriptFetchMiddle(c *conversation) {
	c.say("B161: two batches of 5 records, each offset, one byte")
	c.topic("middle", 1)
	c.fill("middle", someRecords(5), someRecords(5))
	for _, at := range []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1, -2} {
		c.say("at %d", at)
		req := fetchOf("middle", at)
		req.Topics[0].Partitions[0].PartitionMaxBytes = 1
		c.ask(12, req)
	}
	c.say("the limit of the whole is one byte, or none")
	for _, n := range []int32{1, 0} {
		req := fetchOf("middle", 3)
		req.MaxBytes = n
		c.ask(12, req)
	}
	c.say("the limit of the partition is 0")
	req := fetchOf("middle", 3)
	req.Topics[0].Partitions[0].PartitionMaxBytes = 0
	c.ask(12, req)
}

func scriptFetchWait(c *conversation) {
	c.topic("wait", 2)
	c.fill("wait", someRecords(1))
	wait := func(what string, min int32, parts ...kmsg.FetchRequestTopicPartition) *kmsg.FetchRequest {
		c.say("%s", what)
		req := fetchOf("wait", 0)
		req.MaxWaitMillis, req.MinBytes = 300, min
		req.Topics[0].Partitions = parts
		return req
	}
	c.timed = true
	c.ask(12, wait("at the end", 1, fetchPartition(0, 1)))
	c.ask(12, wait("there is something", 1, fetchPartition(0, 0)))
	c.ask(12, wait("there is something, also at an idle one", 1, fetchPartition(1, 0), fetchPartition(0, 0)))
	c.ask(12, wait("no least size", 0, fetchPartition(0, 1)))
	c.ask(12, wait("less than the least size", 1000, fetchPartition(0, 0)))
	c.ask(12, wait("out of range", 1, fetchPartition(0, 7)))
	c.ask(12, wait("out of range beside an idle one", 1, fetchPartition(1, 0), fetchPartition(0, 7)))
	c.ask(12, wait("an unknown partition", 1, fetchPartition(9, 0)))
	c.ask(12, wait("an unknown partition beside an idle one", 1, fetchPartition(1, 0), fetchPartition(9, 0)))
	c.ask(12, wait("none", 1))
	req := wait("a wrong leader epoch beside an idle one", 1, fetchPartition(1, 0), fetchPartition(0, 0))
	req.Topics[0].Partitions[1].CurrentLeaderEpoch = 5
	c.ask(12, req)
	req = wait("the least size is above the limit", 1<<30, fetchPartition(0, 0))
	req.MaxBytes = 10
	c.ask(12, req)
	req = wait("negative wait", 1, fetchPartition(0, 1))
	req.MaxWaitMillis = -1
	c.ask(12, req)
}

func scriptFetchLimits(c *conversation) {
	c.topic("limits", 3)
	c.fill("limits", someRecords(1), someRecords(1), someRecords(1), someRecords(1))
	for _, part := range []int32{1, 2} {
		c.quiet = true
		for range 3 {
			c.ask(9, produceRaw("limits", [16]byte{}, -1, part, someRecords(1).bytes()))
		}
		c.quiet = false
	}
	size := int32(len(someRecords(1).bytes()))
	ask := func(whole, each int32) {
		c.say("%d of the whole, %d of each, in batches", whole, each)
		req := fetchOf("limits", 0)
		req.MaxBytes = whole * size
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, fetchPartition(1, 0), fetchPartition(2, 0))
		for i := range req.Topics[0].Partitions {
			req.Topics[0].Partitions[i].PartitionMaxBytes = each * size
		}
		c.ask(12, req)
	}
	ask(100, 100)
	ask(100, 2)
	ask(3, 2)
	ask(2, 100)
	ask(5, 100)
}

// session sends a fetch of a session.
func (c *conversation) session(version int16, id, epoch int32, parts ...kmsg.FetchRequestTopic) *kmsg.FetchResponse {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 0, 1, 1<<20
	req.SessionID, req.SessionEpoch = id, epoch
	req.Topics = parts
	return c.ask(version, req).(*kmsg.FetchResponse)
}

func scriptFetchSession(c *conversation) {
	id := c.topic("session", 3)
	part := func(index int32, offset int64) kmsg.FetchRequestTopic {
		return kmsg.FetchRequestTopic{Topic: "session", TopicID: id, Partitions: []kmsg.FetchRequestTopicPartition{fetchPartition(index, offset)}}
	}
	for _, v := range []int16{7, 12, 13, 18} {
		c.say("version %d: no session", v)
		c.session(v, 0, -1, part(0, 0))
		c.say("a new one")
		s := c.session(v, 0, 0, part(0, 0), part(1, 0)).SessionID
		c.say("nothing new")
		c.session(v, s, 1)
		end := int64(v)
		_ = end
		c.quiet = true
		base := c.ask(9, produceRaw("session", [16]byte{}, -1, 1, someRecords(1).bytes())).(*kmsg.ProduceResponse).Topics[0].Partitions[0].BaseOffset
		c.quiet = false
		c.say("records in one")
		c.session(v, s, 2)
		c.say("the same again, as the offset did not move")
		c.session(v, s, 3)
		c.say("it moves; one is added")
		c.session(v, s, 4, part(1, base+1), part(2, 0))
		c.say("nothing new")
		c.session(v, s, 5)
		c.say("an error comes each time")
		c.session(v, s, 6, part(0, 99))
		c.session(v, s, 7)
		c.say("partition 0 is forgotten, an unknown one is added")
		req := kmsg.NewPtrFetchRequest()
		req.MinBytes, req.MaxBytes, req.SessionID, req.SessionEpoch = 1, 1<<20, s, 8
		req.MaxWaitMillis = 0
		req.Topics = append(req.Topics, part(9, 0))
		req.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "session", TopicID: id, Partitions: []int32{0}}}
		c.ask(v, req)
		c.session(v, s, 9)
		c.say("a full one with the old id replaces it")
		s2 := c.session(v, s, 0, part(0, 0)).SessionID
		c.session(v, s, 10)
		c.say("closed")
		c.session(v, s2, -1)
		c.session(v, s2, 1)
	}
}

func scriptFetchSessionErrors(c *conversation) {
	id := c.topic("sessions", 1)
	part := kmsg.FetchRequestTopic{Topic: "sessions", TopicID: id, Partitions: []kmsg.FetchRequestTopicPartition{fetchPartition(0, 0)}}
	c.say("unknown session; wrong epochs; another kind of version")
	c.session(12, 12345, 1, part)
	s := c.session(12, 0, 0, part).SessionID
	c.session(12, s, 2)
	c.session(12, s, 1)
	c.session(12, s, 1)
	c.session(13, s, 2)
	c.session(12, s, 2)
	c.say("epoch 1 without an id; an empty new one")
	c.session(12, 0, 1)
	c.session(12, 0, 0)
	c.say("all forgotten: it ends")
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionID, req.SessionEpoch = 0, 1, 1<<20, s, 3
	req.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "sessions", Partitions: []int32{0}}}
	c.ask(12, req)
	c.session(12, s, 4)
	c.say("unknown topic and unknown id in a session")
	gone := part
	gone.Topic, gone.TopicID = "sessions-nothing", [16]byte{3}
	s = c.session(12, 0, 0, gone).SessionID
	c.session(12, s, 1)
	s = c.session(13, 0, 0, gone, part).SessionID
	c.session(13, s, 1)
	c.say("in version 4 and 6 there is none")
	c.session(4, 55, 7, part)
	c.session(6, 0, 0, part)
}

func scriptListOffsets(c *conversation) {
	c.topic("listed", 1)
	c.topic("listed-empty", 1)
	c.fill("listed", recordsAt(1000, 1000), recordsAt(1000, 1000, 1000))
	for v := int16(1); v <= 11; v++ {
		for _, at := range []int64{-1, -2, 5} {
			c.ask(v, listOffsets("listed", -1, at))
			c.ask(v, listOffsets("listed-empty", -1, at))
		}
	}
	c.say("timestamps with a meaning, where they are new and before")
	for _, k := range []struct {
		at int64
		v  int16
	}{{-3, 7}, {-3, 6}, {-4, 8}, {-4, 7}, {-5, 9}, {-5, 8}, {-6, 11}, {-6, 10}, {-7, 11}, {-100, 11}} {
		c.say("%d", k.at)
		req := listOffsets("listed-empty", -1, k.at)
		c.ask(k.v, req)
	}
	c.say("unknown topic and partition, bad name, leader epochs 0, 1 and -2")
	c.ask(9, listOffsets("listed-nothing", -1, -1))
	c.ask(9, listOffsets("bad name", -1, -1))
	req := listOffsets("listed", -1, -1)
	req.Topics[0].Partitions[0].Partition = 4
	c.ask(9, req)
	for _, epoch := range []int32{0, 1, -2} {
		c.ask(9, listOffsets("listed", epoch, -1))
	}
	c.say("read committed; the same partition twice in one request")
	req = listOffsets("listed", -1, -1)
	req.IsolationLevel = 1
	c.ask(9, req)
	c.ask(9, listOffsets("listed", -1, -1, -2))
	c.say("none")
	req.Topics = nil
	c.ask(9, req)
}

func scriptListOffsetsTimes(c *conversation) {
	c.topic("times", 1)
	packed := recordsAt(5000, 9000, 7000).attributes(1)
	packed.body = gzipped
	c.fill("times", recordsAt(1000, 3000, 2000), recordsAt(2500), recordsAt(-1), packed, recordsAt(8000), recordsAt(9000), recordsAt(1))
	for _, at := range []int64{0, 1, 999, 1000, 1001, 2500, 3000, 3001, 5000, 6999, 7000, 9000, 9001, 1 << 60} {
		c.say("%d", at)
		c.ask(9, listOffsets("times", -1, at))
	}
	c.say("the largest")
	c.ask(9, listOffsets("times", -1, -3))
	c.say("records without a time only")
	c.topic("timeless", 1)
	c.fill("timeless", recordsAt(-1), recordsAt(-5))
	c.ask(9, listOffsets("timeless", -1, -3))
	c.ask(9, listOffsets("timeless", -1, 0))
}
