package api

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func init() {
	topicScripts = append(topicScripts,
		topicScript{"transaction_v1", scriptTransactionV1},
		topicScript{"transaction_v2", scriptTransactionV2},
		topicScript{"transaction_init", scriptTransactionInit},
		topicScript{"transaction_add", scriptTransactionAdd},
		topicScript{"transaction_offsets", scriptTransactionOffsets},
		topicScript{"transaction_isolation", scriptTransactionIsolation},
		topicScript{"transaction_admin", scriptTransactionAdmin},
	)
}

// transactor is a transactional producer of a script.
type transactor struct {
	c     *conversation
	id    string
	pid   int64
	epoch int16
}

// again tells whether a code asks to repeat the request: Kafka ends transactions in
// the background, and has no coordinator at first.
func again(code int16) bool {
	switch code {
	case kerr.ConcurrentTransactions.Code, kerr.NotCoordinator.Code, kerr.CoordinatorNotAvailable.Code, kerr.CoordinatorLoadInProgress.Code:
		return true
	}
	return false
}

// eventually asks until the answer is final, and writes that down.
func (c *conversation) eventually(version int16, req kmsg.Request, code func(kmsg.Response) int16) kmsg.Response {
	c.t.Helper()
	before := c.out.String()
	for tries := 0; ; tries++ {
		resp := c.ask(version, req)
		if !again(code(resp)) {
			return resp
		}
		if tries == 200 {
			c.t.Fatalf("%s v%d is still refused with %d\n%s", kmsg.NameForKey(req.Key()), version, code(resp), before)
		}
		c.out.Reset()
		c.out.WriteString(before)
		<-time.After(20 * time.Millisecond)
	}
}

// coordinator waits until there is one: Kafka makes the topic that it needs.
func (c *conversation) coordinator(kind int8, key string) {
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorType, find.CoordinatorKeys = kind, []string{key}
	c.eventually(4, find, func(r kmsg.Response) int16 { return r.(*kmsg.FindCoordinatorResponse).Coordinators[0].ErrorCode })
}

// transactor begins a transactional producer. Its id is written down as a name.
func (c *conversation) transactor(version int16, id string) *transactor {
	c.quiet = true
	defer func() { c.quiet = false }()
	c.coordinator(1, id)
	t := &transactor{c: c, id: id, pid: -1, epoch: -1}
	t.init(version)
	return t
}

func (t *transactor) initRequest() *kmsg.InitProducerIDRequest {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &t.id, 60_000
	req.ProducerID, req.ProducerEpoch = t.pid, t.epoch
	return req
}

// init asks for a producer id and epoch, and keeps them.
func (t *transactor) init(version int16) {
	quiet := t.c.quiet
	t.c.quiet = true
	resp := t.c.eventually(version, t.initRequest(), func(r kmsg.Response) int16 { return r.(*kmsg.InitProducerIDResponse).ErrorCode }).(*kmsg.InitProducerIDResponse)
	t.c.quiet = quiet
	if t.pid >= 0 && !quiet {
		t.c.say("init v%d: %v, the same id: %t, epoch %d, was %d", version, kerr.ErrorForCode(resp.ErrorCode), resp.ProducerID == t.pid, resp.ProducerEpoch, t.epoch)
	}
	if resp.ErrorCode == 0 {
		t.pid, t.epoch = resp.ProducerID, resp.ProducerEpoch
	}
}

func (t *transactor) produce(version int16, topic string, partition int32, b batchSpec) {
	t.produceRaw(version, topic, partition, b.attributes(0x10).bytes())
}

func (t *transactor) produceRaw(version int16, topic string, partition int32, b []byte) {
	req := produceRaw(topic, [16]byte{}, -1, partition, b)
	req.TransactionID = &t.id
	t.c.eventually(version, req, func(r kmsg.Response) int16 { return r.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode })
}

func (t *transactor) batch(sequence int32) batchSpec {
	return someRecords(1).from(t.pid, t.epoch, sequence)
}

func (t *transactor) add(version int16, topic string, partitions ...int32) {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.id, t.pid, t.epoch
	req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: partitions}}
	t.c.eventually(version, req, func(r kmsg.Response) int16 {
		return r.(*kmsg.AddPartitionsToTxnResponse).Topics[0].Partitions[0].ErrorCode
	})
}

// end writes down the outcome, and with version 5 how the epoch changed.
func (t *transactor) end(version int16, commit bool) (next transactor) {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = t.id, t.pid, t.epoch, commit
	t.c.quiet = true
	resp := t.c.eventually(version, req, func(r kmsg.Response) int16 { return r.(*kmsg.EndTxnResponse).ErrorCode }).(*kmsg.EndTxnResponse)
	t.c.quiet = false
	same, by := "", int16(0)
	next = *t
	if resp.ErrorCode == 0 && version >= 5 {
		if resp.ProducerID != t.pid {
			same = ", a new id"
		}
		by = resp.ProducerEpoch - t.epoch
		next.pid, next.epoch = resp.ProducerID, resp.ProducerEpoch
	}
	t.c.say("end v%d, commit %t: %v, epoch +%d%s", version, commit, kerr.ErrorForCode(resp.ErrorCode), by, same)
	if resp.ErrorCode == 0 {
		t.settle()
	}
	return next
}

// settle waits until the end is complete.
func (t *transactor) settle() {
	t.c.quiet = true
	defer func() { t.c.quiet = false }()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{t.id}
	for {
		switch t.c.ask(0, req).(*kmsg.DescribeTransactionsResponse).TransactionStates[0].State {
		case "PrepareCommit", "PrepareAbort":
			<-time.After(20 * time.Millisecond)
		default:
			return
		}
	}
}

// describe writes down the state and what takes part.
func (t *transactor) describe() {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{t.id}
	t.c.quiet = true
	s := t.c.ask(0, req).(*kmsg.DescribeTransactionsResponse).TransactionStates[0]
	t.c.quiet = false
	t.c.say("%s is %s %v, begun %t, timeout %d, id as known %t, epoch as known %t", t.id, s.State, kerr.ErrorForCode(s.ErrorCode),
		s.StartTimestamp > 0, s.TimeoutMillis, s.ProducerID == t.pid, s.ProducerEpoch == t.epoch)
	for _, topic := range s.Topics {
		if topic.Topic == "__consumer_offsets" {
			topic.Partitions = topic.Partitions[:1]
			topic.Partitions[0] = -1 // the group's, of as many as there are
		}
		t.c.say("  %s %v", topic.Topic, topic.Partitions)
	}
}

func scriptTransactionV1(c *conversation) {
	c.topic("txn-one", 2)
	t := c.transactor(2, "one")
	t.describe()
	c.say("not added: versions 9, 11")
	t.produce(9, "txn-one", 1, t.batch(0))
	t.produce(11, "txn-one", 1, t.batch(0))
	t.end(3, true)
	t.end(3, false)
	t.add(3, "txn-one", 0)
	t.produce(9, "txn-one", 0, t.batch(0))
	t.produce(9, "txn-one", 0, t.batch(1))
	c.say("not transactional, of the same producer, while its transaction is open")
	t.produceRaw(9, "txn-one", 0, t.batch(2).bytes())
	t.describe()
	t.end(3, true)
	t.end(3, true)
	t.end(3, false)
	t.describe()
	c.say("the next one goes on in epoch and sequence")
	t.add(3, "txn-one", 0)
	t.add(3, "txn-one", 0)
	t.produce(9, "txn-one", 0, t.batch(2))
	t.end(3, false)
	t.end(1, false)
	t.end(3, true)
	c.say("an older and a newer epoch, another id, an unknown transactional id")
	for _, other := range []transactor{{c, t.id, t.pid, t.epoch + 1}, {c, t.id, t.pid + 1000, t.epoch}, {c, "nobody", t.pid, t.epoch}, {c, "", t.pid, t.epoch}} {
		other.end(1, true)
		other.end(3, true)
		other.end(5, true)
		other.produce(9, "txn-one", 0, other.batch(3))
		other.produce(12, "txn-one", 0, other.batch(3))
	}
	c.ask(12, fetchOf("txn-one", 0))
}

func scriptTransactionV2(c *conversation) {
	c.topic("txn-two", 2)
	t := c.transactor(5, "two")
	t.end(5, true)
	first := *t
	t.produce(12, "txn-two", 0, t.batch(0))
	t.produce(12, "txn-two", 0, t.batch(1))
	t.describe()
	*t = t.end(5, true)
	c.say("the same again, and the other way")
	first.end(5, true)
	first.end(5, false)
	c.say("the old epoch goes on")
	first.produce(12, "txn-two", 0, first.batch(2))
	t.produce(12, "txn-two", 0, t.batch(1))
	t.produce(12, "txn-two", 0, t.batch(0))
	aborted := *t
	*t = t.end(5, false)
	aborted.end(5, false)
	aborted.end(5, true)
	c.say("an abort of nothing, a commit of nothing")
	*t = t.end(5, false)
	t.end(5, true)
	t.describe()
	c.say("the epoch before the last one")
	aborted.end(5, false)
	c.say("ended as one of version 1")
	t.produce(12, "txn-two", 1, t.batch(0))
	t.end(4, true)
	t.end(4, true)
	t.describe()
	req := fetchOf("txn-two", 0)
	req.IsolationLevel = 1
	c.ask(12, req)
}

func scriptTransactionInit(c *conversation) {
	c.topic("txn-init", 1)
	t := c.transactor(4, "init")
	old := *t
	for _, v := range []int16{3, 4, 5} {
		c.say("goes on, the same again, then an older epoch")
		before := *t
		t.init(v)
		repeated := before
		repeated.init(v)
		old.init(v)
	}
	c.say("a new one of the same transactional id fences")
	fenced := *t
	t.pid, t.epoch = -1, -1
	t.init(4)
	c.say("epoch +%d", t.epoch-fenced.epoch)
	fenced.init(3)
	fenced.init(4)
	fenced.produce(12, "txn-init", 0, fenced.batch(0))
	fenced.add(3, "txn-init", 0)
	c.say("a new one while a transaction is open aborts it")
	t.produce(12, "txn-init", 0, t.batch(0))
	fenced = *t
	t.pid, t.epoch = -1, -1
	t.init(5)
	c.say("epoch +%d", t.epoch-fenced.epoch)
	t.describe()
	fenced.produce(12, "txn-init", 0, fenced.batch(1))
	fenced.end(5, true)
	c.say("timeouts: 0, -1, the most, more; no id with an epoch, and the reverse; an empty transactional id")
	for _, ms := range []int32{0, -1, 900_000, 900_001} {
		req := t.initRequest()
		req.ProducerID, req.ProducerEpoch, req.TransactionTimeoutMillis = t.pid+5000, 0, ms
		c.ask(4, req)
	}
	for _, p := range []producerish{{-1, 3}, {5, -1}} {
		req := t.initRequest()
		req.ProducerID, req.ProducerEpoch = p.id, p.epoch
		c.ask(4, req)
	}
	empty := *t
	empty.id = ""
	c.ask(4, empty.initRequest())
	req := fetchOf("txn-init", 0)
	req.IsolationLevel = 1
	c.ask(12, req)
}

// producerish is a producer id with an epoch.
type producerish struct {
	id    int64
	epoch int16
}

func scriptTransactionAdd(c *conversation) {
	c.topic("txn-add", 3)
	t := c.transactor(4, "add")
	for v := int16(0); v <= 3; v++ {
		t.add(v, "txn-add", int32(v%3))
		for _, other := range []transactor{{c, t.id, t.pid, t.epoch + 1}, {c, t.id, t.pid + 1000, t.epoch}, {c, "nobody", t.pid, t.epoch}, {c, "", t.pid, t.epoch}} {
			other.add(v, "txn-add", 0)
		}
		t.add(v, "txn-nothing", 0)
		t.add(v, "txn-add", 9)
	}
	c.say("brokers: verify, add, verify; nobody; what does not exist")
	for v := int16(4); v <= 5; v++ {
		for _, k := range []struct {
			verify bool
			id     string
			pid    int64
			topic  string
			part   int32
		}{{true, t.id, t.pid, "txn-add", 0}, {true, t.id, t.pid + 1, "txn-add", 0}, {true, "nobody", t.pid, "txn-add", 0}, {true, "", t.pid, "txn-add", 0}, {false, t.id, t.pid, "txn-add", 0}} {
			req := kmsg.NewPtrAddPartitionsToTxnRequest()
			req.Transactions = []kmsg.AddPartitionsToTxnRequestTransaction{{TransactionalID: k.id, ProducerID: k.pid, ProducerEpoch: t.epoch, VerifyOnly: k.verify,
				Topics: []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: k.topic, Partitions: []int32{k.part}}}}}
			c.ask(v, req)
		}
	}
	t.end(3, false)
	c.say("groups")
	for v := int16(0); v <= 4; v++ {
		for _, p := range []transactor{*t, {c, t.id, t.pid, t.epoch + 1}, {c, t.id, t.pid + 1000, t.epoch}, {c, "nobody", t.pid, t.epoch}, {c, "", t.pid, t.epoch}} {
			p.addGroup(v, "g")
		}
		t.addGroup(v, "")
	}
	t.end(3, true)
}

func (t *transactor) addGroup(version int16, group string) {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = t.id, t.pid, t.epoch, group
	t.c.eventually(version, req, func(r kmsg.Response) int16 { return r.(*kmsg.AddOffsetsToTxnResponse).ErrorCode })
}

func (t *transactor) commit(version int16, group, topic string, id [16]byte, partition int32, offset int64) {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = t.id, t.pid, t.epoch, group
	req.Generation = -1
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch = partition, offset, -1
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: topic, TopicID: id, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}}}
	t.c.eventually(version, req, func(r kmsg.Response) int16 {
		return r.(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
	})
}

// committed asks what a group has committed for partitions 0 and 1.
func (c *conversation) committed(group, topic string, stable bool) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = stable
	req.Groups = []kmsg.OffsetFetchRequestGroup{{Group: group, MemberEpoch: -1, Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, Partitions: []int32{0, 1}}}}}
	c.eventually(8, req, func(r kmsg.Response) int16 { return r.(*kmsg.OffsetFetchResponse).Groups[0].ErrorCode })
}

func scriptTransactionOffsets(c *conversation) {
	topic := "txn-offsets"
	id := c.topic(topic, 2)
	t := c.transactor(4, "offsets")
	c.quiet = true
	c.coordinator(0, "group")
	c.committed("group", topic, true)
	c.quiet = false
	c.say("the group does not take part")
	for v := int16(0); v <= 4; v++ {
		t.commit(v, "group", topic, id, 0, 5)
	}
	t.addGroup(3, "group")
	for v := int16(0); v <= 4; v++ {
		t.commit(v, "group", topic, id, 0, 10+int64(v))
	}
	t.describe()
	c.committed("group", topic, false)
	c.committed("group", topic, true)
	t.end(3, true)
	c.committed("group", topic, true)
	c.say("version 5: it takes part by itself; aborted")
	t.commit(5, "group", topic, id, 0, 20)
	c.committed("group", topic, true)
	*t = t.end(5, false)
	c.committed("group", topic, true)
	c.say("version 6: by id; committed")
	t.commit(6, "group", "", id, 1, 30)
	*t = t.end(5, true)
	c.committed("group", topic, true)
	c.say("refused: unknown topic, partition, id; other producers; no group")
	t.commit(5, "group", "txn-nothing", id, 0, 1)
	t.commit(5, "group", topic, id, 7, 1)
	t.commit(6, "group", "", [16]byte{1}, 0, 1)
	for _, v := range []int16{1, 3, 4, 5, 6} {
		for _, p := range []transactor{{c, t.id, t.pid, t.epoch + 1}, {c, t.id, t.pid + 1000, t.epoch}, {c, "nobody", t.pid, t.epoch}, {c, "", t.pid, t.epoch}} {
			p.commit(v, "group", topic, id, 0, 1)
		}
		t.commit(v, "", topic, id, 0, 1)
	}
	c.committed("group", topic, true)
}

func scriptTransactionIsolation(c *conversation) {
	topic := "txn-isolation"
	c.topic(topic, 1)
	started := time.Now().UnixMilli() - 60_000
	look := func() {
		for _, isolation := range []int8{0, 1} {
			req := fetchOf(topic, 0)
			req.IsolationLevel = isolation
			c.ask(12, req)
			for _, when := range []int64{-1, -3, started + 1, started + 2} {
				list := listOffsets(topic, -1, when)
				list.IsolationLevel = isolation
				c.ask(9, list)
			}
		}
	}
	// Not long ago: Kafka begins a new segment where times are far apart.
	at := func(n int64) batchSpec {
		ms := started + n
		c.names[strconv.FormatInt(ms, 10)] = "(time " + strconv.FormatInt(n, 10) + ")"
		return recordsAt(ms)
	}
	a, b := c.transactor(4, "isolation-a"), c.transactor(4, "isolation-b")
	c.fill(topic, at(1))
	a.produce(12, topic, 0, at(2).from(a.pid, a.epoch, 0))
	c.say("one is open")
	look()
	c.fill(topic, at(3))
	b.produce(12, topic, 0, at(4).from(b.pid, b.epoch, 0))
	a.end(4, true)
	c.say("the other is open; the first is committed")
	req := fetchOf(topic, 0)
	req.IsolationLevel = 1
	c.ask(12, req)
	b.end(4, false)
	c.say("aborted")
	c.ask(12, req)
	for _, offset := range []int64{1, 4, 5, 6} {
		c.say("from %d", offset)
		from := fetchOf(topic, offset)
		from.IsolationLevel = 1
		c.ask(12, from)
	}
	c.say("an open one at the end holds a fetch that waits")
	a.produce(12, topic, 0, at(5).from(a.pid, a.epoch, 1))
	c.timed = true
	wait := fetchOf(topic, 6)
	wait.MaxWaitMillis, wait.IsolationLevel = 300, 1
	c.ask(12, wait)
	wait.IsolationLevel = 0
	c.ask(12, wait)
	a.end(4, false)
}

func scriptTransactionAdmin(c *conversation) {
	topic := "txn-admin"
	c.topic(topic, 1)
	t := c.transactor(4, "admin")
	list := func(v int16, states []string, pattern string, duration int64) {
		req := kmsg.NewPtrListTransactionsRequest()
		req.StateFilters, req.ProducerIDFilters, req.DurationFilterMillis = states, []int64{t.pid}, duration
		if v >= 2 {
			req.TransactionalIDPattern = &pattern
		}
		c.ask(v, req)
	}
	t.produce(12, topic, 0, t.batch(0))
	for v := int16(0); v <= 2; v++ {
		list(v, nil, "", -1)
		list(v, []string{"Ongoing", "Dead", "Nonsense"}, "adm.*", -1)
		list(v, []string{"Empty"}, "adm.*", -1)
		list(v, nil, "adm", -1)
		list(v, nil, "[", 1_000_000)
		list(v, nil, "", 1_000_000)
	}
	c.say("producers")
	producers := kmsg.NewPtrDescribeProducersRequest()
	producers.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: []int32{0, 5}}, {Topic: "txn-nothing", Partitions: []int32{0}}}
	c.quiet = true
	for _, rt := range c.ask(0, producers).(*kmsg.DescribeProducersResponse).Topics {
		c.quiet = false
		for _, p := range rt.Partitions {
			c.say("%s-%d: %v", rt.Topic, p.Partition, kerr.ErrorForCode(p.ErrorCode))
			for _, s := range p.ActiveProducers {
				c.say("  epoch %d, sequence %d, a time %t, coordinator %d, open from %d", s.ProducerEpoch, s.LastSequence, s.LastTimestamp > 0, s.CoordinatorEpoch, s.CurrentTxnStartOffset)
			}
		}
	}
	marker := func(v int16, epoch int16, version int8, partitions ...int32) {
		req := kmsg.NewPtrWriteTxnMarkersRequest()
		m := kmsg.NewWriteTxnMarkersRequestMarker()
		m.ProducerID, m.ProducerEpoch, m.TransactionVersion = t.pid, epoch, version
		m.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: topic, Partitions: partitions}}
		req.Markers = []kmsg.WriteTxnMarkersRequestMarker{m}
		c.ask(v, req)
	}
	c.say("markers: no such partition; of version 2, the same epoch, a newer one; of version 1, an older, the same, a negative epoch")
	marker(1, t.epoch, 0, 5)
	marker(2, t.epoch, 2, 0)
	marker(2, t.epoch+1, 2, 0)
	marker(1, t.epoch, 0, 0)
	marker(1, t.epoch+1, 0, 0)
	marker(1, -1, 0, 0)
	req := fetchOf(topic, 0)
	req.IsolationLevel = 1
	c.ask(12, req)
	t.describe()
}
