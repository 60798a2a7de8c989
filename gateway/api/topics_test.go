package api

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicClient asks handlers on a store in memory, as a client of one connection.
type topicClient struct {
	t     testing.TB
	h     *TopicHandlers
	txns  *TxnHandlers
	table *Table
	s     *Session
}

func newTopicClient(t testing.TB, edit ...func(*TopicHandlers)) *topicClient {
	h := newTopicHandlers(t)
	for _, f := range edit {
		f(h)
	}
	txns := &TxnHandlers{Handlers: &Handlers{Auth: h.Auth}, Txns: h.Txns, Log: h.Log}
	return &topicClient{t: t, h: h, txns: txns, table: NewTable(h.Cluster, append(h.Entries(), txns.Entries()...)...), s: &Session{Listener: "PLAINTEXT"}}
}

// start starts a request. The channel gets a value when the call is ready.
func (c *topicClient) start(version int16, req kmsg.Request) (*Call, <-chan struct{}) {
	ready := make(chan struct{}, 1)
	req.SetVersion(version)
	call := newCall(c.s, req.Key(), version, "client", req, func() { ready <- struct{}{} })
	c.table.entry(req.Key()).Handle(call)
	if call.Ready() && len(ready) == 0 {
		ready <- struct{}{}
	}
	return call, ready
}

func (c *topicClient) ask(version int16, req kmsg.Request) kmsg.Response {
	c.t.Helper()
	call, ready := c.start(version, req)
	<-ready
	resp, closing := call.Response()
	if closing != "" {
		c.t.Fatalf("%T closes the connection: %s", req, closing)
	}
	if sent := call.Sent(); sent != nil {
		sent()
	}
	return resp
}

func (c *topicClient) create(name string, partitions int32, configs ...string) {
	c.t.Helper()
	resp := c.ask(7, createTopics(createTopic(name, partitions, configs...))).(*kmsg.CreateTopicsResponse)
	if code := resp.Topics[0].ErrorCode; code != 0 {
		c.t.Fatalf("create %s: %v", name, kerr.ErrorForCode(code))
	}
}

func (c *topicClient) produce(topic string, partition int32, b batchSpec) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	return c.ask(9, produceRaw(topic, [16]byte{}, -1, partition, b.bytes())).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
}

// fetchAll is a fetch of partitions of one topic from offset 0.
func fetchAll(topic string, wait time.Duration, minBytes int32, partitions ...int32) *kmsg.FetchRequest {
	req := fetchOf(topic, 0)
	req.MaxWaitMillis, req.MinBytes = int32(wait.Milliseconds()), minBytes
	req.Topics[0].Partitions = nil
	for _, p := range partitions {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, fetchPartition(p, 0))
	}
	return req
}

func TestFetchIsWoken(t *testing.T) {
	const wait = 30 * time.Second
	for name, k := range map[string]struct {
		min  int32
		wake func(c *topicClient)
		want func(r *kmsg.FetchResponse) string
	}{
		"by records": {1, func(c *topicClient) { c.produce("t", 1, someRecords(2)) }, func(r *kmsg.FetchResponse) string {
			if p := r.Topics[0].Partitions[1]; p.HighWatermark != 2 || len(p.RecordBatches) == 0 {
				return "no records"
			}
			return ""
		}},
		"by enough of them": {150, func(c *topicClient) {
			for range 3 { // of 70 bytes each
				c.produce("t", 1, someRecords(1))
			}
		}, func(r *kmsg.FetchResponse) string {
			if p := r.Topics[0].Partitions[1]; p.HighWatermark < 2 {
				return fmt.Sprint("answered at ", p.HighWatermark)
			}
			return ""
		}},
		"by the end of the topic": {1, func(c *topicClient) { c.ask(4, deleteTopics("t")) }, func(r *kmsg.FetchResponse) string {
			if code := r.Topics[0].Partitions[0].ErrorCode; code != kerr.UnknownTopicOrPartition.Code {
				return fmt.Sprint("code ", code)
			}
			return ""
		}},
		"by the end of the gateway": {1, func(c *topicClient) { c.h.Log.Release() }, func(r *kmsg.FetchResponse) string {
			if p := r.Topics[0].Partitions[0]; p.ErrorCode != 0 || len(p.RecordBatches) > 0 {
				return "something came"
			}
			return ""
		}},
		"by nothing but time": {1, func(*topicClient) {}, func(r *kmsg.FetchResponse) string {
			if p := r.Topics[0].Partitions[0]; p.ErrorCode != 0 || len(p.RecordBatches) > 0 {
				return "something came"
			}
			return ""
		}},
		"by time, with less than enough": {1 << 20, func(c *topicClient) { c.produce("t", 0, someRecords(1)) }, func(r *kmsg.FetchResponse) string {
			if p := r.Topics[0].Partitions[0]; p.HighWatermark != 1 || len(p.RecordBatches) == 0 {
				return "no records"
			}
			return ""
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newTopicClient(t)
				c.create("t", 2)
				start := time.Now()
				call, ready := c.start(12, fetchAll("t", wait, k.min, 0, 1))
				synctest.Wait()
				if call.Ready() {
					t.Fatal("not held")
				}
				k.wake(c)
				<-ready
				resp, _ := call.Response()
				if fault := k.want(resp.(*kmsg.FetchResponse)); fault != "" {
					t.Error(fault)
				}
				want := time.Duration(0)
				if name[:7] == "by time" || name == "by nothing but time" {
					want = wait
				}
				if took := time.Since(start); took != want {
					t.Errorf("held for %v, want %v", took, want)
				}
			})
		})
	}
}

// TestAbandonedFetch: the client goes away, and nothing of its fetch is left.
func TestAbandonedFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTopicClient(t)
		c.create("t", 1)
		req := fetchAll("t", time.Hour, 1, 0)
		req.SessionEpoch = 0
		call, ready := c.start(12, req)
		call.Abandon()
		c.produce("t", 0, someRecords(1))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		select {
		case <-ready:
			t.Error("woken")
		default:
		}
		// One that goes on with a session leaves that free for the next.
		session := c.ask(12, req).(*kmsg.FetchResponse).SessionID
		next := kmsg.NewPtrFetchRequest()
		next.SessionID, next.SessionEpoch, next.MaxWaitMillis, next.MinBytes, next.MaxBytes = session, 1, 1000, 1, 1<<20
		next.Topics = []kmsg.FetchRequestTopic{{Topic: "t", Partitions: []kmsg.FetchRequestTopicPartition{fetchPartition(0, 1)}}}
		call, _ = c.start(12, next)
		busy := *next
		busy.SessionEpoch = 2
		if code := c.ask(12, &busy).(*kmsg.FetchResponse).ErrorCode; code != kerr.InvalidFetchSessionEpoch.Code {
			t.Errorf("a session that is in use: %d", code)
		}
		call.Abandon()
		busy.MaxWaitMillis = 0
		if code := c.ask(12, &busy).(*kmsg.FetchResponse).ErrorCode; code != 0 {
			t.Errorf("the session after that: %d", code)
		}
	})
}

// TestParkedFetchIsSmall weighs fetches that wait.
func TestParkedFetchIsSmall(t *testing.T) {
	c := newTopicClient(t)
	c.create("t", 1)
	const n = 2000
	calls := make([]*Call, 0, n)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	goroutines, before := runtime.NumGoroutine(), heap()
	for range n {
		call, _ := c.start(12, fetchAll("t", time.Hour, 1, 0))
		call.Msg = nil // the frame's, not ours
		calls = append(calls, call)
	}
	each := (heap() - before) / n
	if more := runtime.NumGoroutine() - goroutines; more > 10 {
		t.Errorf("%d more goroutines", more)
	}
	if each > 2048 {
		t.Errorf("a parked fetch takes %d bytes", each)
	}
	t.Logf("a parked fetch takes %d bytes", each)
	for _, call := range calls {
		call.Abandon()
	}
}

// TestFetchMemoryIsShared: who comes while much is on its way gets less, but never
// nothing.
func TestFetchMemoryIsShared(t *testing.T) {
	c := newTopicClient(t)
	c.create("t", 1)
	large := someRecords(1)
	large.value = make([]byte, 900<<10)
	for range 10 {
		c.produce("t", 0, large)
	}
	req := fetchAll("t", 0, 1, 0)
	req.MaxBytes, req.Topics[0].Partitions[0].PartitionMaxBytes = 1<<30, 1<<30
	size := func() (int, func()) {
		call, _ := c.start(12, req)
		resp, _ := call.Response()
		return len(resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches), call.Sent()
	}
	whole, sent := size()
	if whole < 9_000_000 {
		t.Fatalf("%d bytes", whole)
	}
	if used := c.h.responses.used.Load(); used != int64(whole) {
		t.Errorf("%d bytes are counted", used)
	}
	sent()
	if used := c.h.responses.used.Load(); used != 0 {
		t.Errorf("%d bytes are counted after that", used)
	}
	c.h.responses.take(fetchedBytesMax - 16<<20)
	if n, _ := size(); n < 3<<20 || n > 4<<20 {
		t.Errorf("%d bytes of 16 MiB", n)
	}
	c.h.responses.take(fetchedBytesMax)
	if n, _ := size(); n < 900<<10 || n > 1<<20 {
		t.Errorf("%d bytes of nothing", n)
	}
}

func sessionFetch(id, epoch int32, partitions ...int32) *kmsg.FetchRequest {
	req := fetchAll("t", 0, 1, partitions...)
	req.SessionID, req.SessionEpoch = id, epoch
	return req
}

// TestFetchSessionsAreBounded fills the sessions up.
func TestFetchSessionsAreBounded(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	c := newTopicClient(t, func(h *TopicHandlers) {
		h.Config.FetchSessionsMax = 3
		h.Now = func() time.Time { return now }
	})
	c.create("t", 5)
	open := func(partitions ...int32) int32 {
		return c.ask(12, sessionFetch(0, 0, partitions...)).(*kmsg.FetchResponse).SessionID
	}
	use := func(id, epoch int32) int16 {
		req := sessionFetch(id, epoch)
		req.Topics = nil
		return c.ask(12, req).(*kmsg.FetchResponse).ErrorCode
	}
	ids := []int32{open(0), open(0, 1, 2), open(0, 1)}
	if slices.Contains(ids, 0) {
		t.Fatalf("sessions %v", ids)
	}
	if id := open(0, 1, 2, 3); id != 0 {
		t.Error("a fourth session while none is old")
	}
	now = now.Add(121 * time.Second)
	for _, id := range ids {
		use(id, 1)
	}
	if id := open(0); id != 0 {
		t.Error("a small session for one that is used")
	}
	larger := open(0, 1)
	if larger == 0 {
		t.Error("no larger session for the smallest")
	}
	if code := use(ids[0], 2); code != kerr.FetchSessionIDNotFound.Code {
		t.Errorf("the smallest session: %d", code)
	}
	now = now.Add(121 * time.Second)
	use(ids[1], 2)
	if id := open(0); id == 0 {
		t.Error("no session for one that nobody uses")
	}
	if code := use(ids[1], 3); code != 0 {
		t.Errorf("the session in use: %d", code)
	}
	sum := 0
	for _, s := range c.h.sessions.byID {
		sum += len(s.parts)
	}
	if sum != c.h.sessions.parts {
		t.Errorf("%d partitions are counted, there are %d", c.h.sessions.parts, sum)
	}
}

// TestFetchSessionEpochWraps goes past the largest epoch.
func TestFetchSessionEpochWraps(t *testing.T) {
	c := newTopicClient(t)
	c.create("t", 1)
	id := c.ask(12, sessionFetch(0, 0, 0)).(*kmsg.FetchResponse).SessionID
	c.h.sessions.byID[id].epoch = 2147483647
	for _, epoch := range []int32{2147483647, 1, 2} {
		if code := c.ask(12, sessionFetch(id, epoch, 0)).(*kmsg.FetchResponse).ErrorCode; code != 0 {
			t.Errorf("epoch %d: %d", epoch, code)
		}
	}
}

// TestFetchSessionTurns: with room for one batch at a time, all partitions get their
// turn.
func TestFetchSessionTurns(t *testing.T) {
	c := newTopicClient(t)
	c.create("t", 3)
	for p := range int32(3) {
		c.produce("t", p, someRecords(1))
	}
	req := sessionFetch(0, 0, 0, 1, 2)
	req.MaxBytes = 1
	id := int32(0)
	got := map[int32]int{}
	for epoch := range int32(6) {
		req.SessionID, req.SessionEpoch = id, epoch
		resp := c.ask(12, req).(*kmsg.FetchResponse)
		id = resp.SessionID
		for _, p := range resp.Topics[0].Partitions {
			if len(p.RecordBatches) > 0 {
				got[p.Partition]++
			}
		}
		req.Topics = nil
	}
	if got[0] != 2 || got[1] != 2 || got[2] != 2 {
		t.Errorf("turns: %v", got)
	}
}

// TestB114NodeIDsAndAddresses: the ids are those of every listener, the address is
// that of the one that was asked.
func TestB114NodeIDsAndAddresses(t *testing.T) {
	rack := "r"
	c := newTopicClient(t, func(h *TopicHandlers) {
		h.Cluster = NewClusterView(&Cluster{ID: "cluster", NodeID: 7, ControllerID: 7, Nodes: []Node{{ID: 7, Rack: &rack, Endpoints: []Endpoint{
			{Listener: "IN", Host: "10.0.0.1", Port: 1}, {Listener: "OUT", Host: "2001:db8::1", Port: 2}}}}})
	})
	c.create("t", 2)
	for listener, want := range map[string]string{"IN": "10.0.0.1:1", "OUT": "2001:db8::1:2"} {
		c.s.Listener = listener
		for v := int16(0); v <= 13; v++ {
			resp := c.ask(v, metadataOf("t")).(*kmsg.MetadataResponse)
			if len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 7 || fmt.Sprint(resp.Brokers[0].Host, ":", resp.Brokers[0].Port) != want {
				t.Errorf("v%d on %s: brokers %+v", v, listener, resp.Brokers)
			}
			if resp.ControllerID != 7 || *resp.ClusterID != "cluster" {
				t.Errorf("v%d: controller %d of %s", v, resp.ControllerID, *resp.ClusterID)
			}
			for _, p := range resp.Topics[0].Partitions {
				if p.Leader != 7 || !slices.Equal(p.Replicas, []int32{7}) || !slices.Equal(p.ISR, []int32{7}) {
					t.Errorf("v%d: partition %+v", v, p)
				}
			}
		}
	}
	c.s.Listener = "elsewhere"
	if resp := c.ask(12, metadataOf("t")).(*kmsg.MetadataResponse); len(resp.Brokers) != 0 {
		t.Errorf("an unknown listener: %+v", resp.Brokers)
	}
}

func TestMetadataOfAllTopics(t *testing.T) {
	c := newTopicClient(t)
	names := []string{"a", "b", "c"}
	for _, n := range names {
		c.create(n, 1)
	}
	for v := int16(0); v <= 13; v++ {
		req := metadataOf()
		if v > 0 {
			req.Topics = nil
		}
		var got []string
		for _, topic := range c.ask(v, req).(*kmsg.MetadataResponse).Topics {
			got = append(got, *topic.Topic)
		}
		if !slices.Equal(got, names) {
			t.Errorf("v%d: %v", v, got)
		}
	}
}

func TestNoAutoCreate(t *testing.T) {
	c := newTopicClient(t, func(h *TopicHandlers) { h.Config.AutoCreate = false })
	req := metadataOf("t")
	req.AllowAutoTopicCreation = true
	for range 2 {
		if code := c.ask(12, req).(*kmsg.MetadataResponse).Topics[0].ErrorCode; code != kerr.UnknownTopicOrPartition.Code {
			t.Errorf("code %d", code)
		}
	}
}

// TestReservedNames: clients cannot touch what belongs to the gateway.
func TestReservedNames(t *testing.T) {
	c := newTopicClient(t)
	want := kerr.InvalidTopicException.Code
	const name = "__consumer_offsets"
	if code := c.ask(7, createTopics(createTopic(name, 1))).(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode; code != want {
		t.Errorf("created: %d", code)
	}
	if code := c.ask(4, deleteTopics(name)).(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode; code != want {
		t.Errorf("deleted: %d", code)
	}
	if code := c.ask(3, createPartitions(name, 9)).(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode; code != want {
		t.Errorf("grown: %d", code)
	}
	if code := c.produce(name, 0, someRecords(1)).ErrorCode; code != want {
		t.Errorf("written: %d", code)
	}
	req := metadataOf(name)
	req.AllowAutoTopicCreation = true
	for range 2 {
		if code := c.ask(12, req).(*kmsg.MetadataResponse).Topics[0].ErrorCode; code != kerr.UnknownTopicOrPartition.Code {
			t.Errorf("asked for: %d", code)
		}
	}
}

func TestProduceOnAFullDisk(t *testing.T) {
	low := true
	c := newTopicClient(t, func(h *TopicHandlers) { h.DiskLow = func() bool { return low } })
	c.create("t", 1)
	if p := c.produce("t", 0, someRecords(1)); p.ErrorCode != kerr.KafkaStorageError.Code || p.BaseOffset != -1 {
		t.Errorf("code %d at %d", p.ErrorCode, p.BaseOffset)
	}
	low = false
	if p := c.produce("t", 0, someRecords(1)); p.ErrorCode != 0 || p.BaseOffset != 0 {
		t.Errorf("code %d at %d", p.ErrorCode, p.BaseOffset)
	}
}

// TestProduceOtherThanKafka has what we refuse in another way than Kafka, each with
// the reason.
func TestProduceOtherThanKafka(t *testing.T) {
	c := newTopicClient(t)
	c.create("t", 1)
	for what, k := range map[string]struct {
		records []byte
		want    *kerr.Error
	}{
		// Kafka does not answer at all.
		"null": {nil, kerr.InvalidRecord},
		// Kafka says UNKNOWN_SERVER_ERROR, which tells nobody whose fault it is.
		"unknown codec":     {someRecords(1).attributes(5).bytes(), kerr.InvalidRecord},
		"gzip that is none": {someRecords(1).attributes(1).bytes(), kerr.InvalidRecord},
		"zstd that is none": {someRecords(1).attributes(4).bytes(), kerr.InvalidRecord},
		// Kafka numbers them anew where they are compressed; we store them as they are.
		"numbered out of order": {withBody(2, func(b []byte) []byte { b[len(b)/2+3] = 4; return b }), kerr.InvalidRecord},
	} {
		p := c.ask(9, produceRaw("t", [16]byte{}, -1, 0, k.records)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if p.ErrorCode != k.want.Code || p.BaseOffset != -1 {
			t.Errorf("%s: code %d at %d", what, p.ErrorCode, p.BaseOffset)
		}
	}
}

// deny denies one operation.
type deny Operation

func (d deny) Authorize(_ *Session, op Operation, kind Resource, _ string) bool {
	return op != Operation(d) || kind == ResourceCluster && op == OpDescribe
}

func TestTopicAuthorization(t *testing.T) {
	denied := kerr.TopicAuthorizationFailed.Code
	cluster := kerr.ClusterAuthorizationFailed.Code
	for _, k := range []struct {
		op   Operation
		v    int16
		req  kmsg.Request
		code func(kmsg.Response) int16
		want int16
	}{
		{OpWrite, 9, produce("t", someRecords(1)), func(r kmsg.Response) int16 { return r.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode }, denied},
		{OpRead, 12, fetchOf("t", 0), func(r kmsg.Response) int16 { return r.(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode }, denied},
		{OpDescribe, 9, listOffsets("t", -1, -1), func(r kmsg.Response) int16 { return r.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].ErrorCode }, denied},
		{OpDescribe, 9, metadataOf("t"), func(r kmsg.Response) int16 { return r.(*kmsg.MetadataResponse).Topics[0].ErrorCode }, denied},
		{OpCreate, 7, createTopics(createTopic("u", 1)), func(r kmsg.Response) int16 { return r.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode }, denied},
		{OpDelete, 4, deleteTopics("t"), func(r kmsg.Response) int16 { return r.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode }, denied},
		{OpAlter, 3, createPartitions("t", 5), func(r kmsg.Response) int16 { return r.(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode }, denied},
		{OpIdempotentWrite, 4, kmsg.NewPtrInitProducerIDRequest(), func(r kmsg.Response) int16 { return r.(*kmsg.InitProducerIDResponse).ErrorCode }, cluster},
		{OpDescribeConfigs, 4, &kmsg.DescribeConfigsRequest{Resources: []kmsg.DescribeConfigsRequestResource{{ResourceType: 2, ResourceName: "t"}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.DescribeConfigsResponse).Resources[0].ErrorCode }, denied},
		{OpDescribeConfigs, 4, &kmsg.DescribeConfigsRequest{Resources: []kmsg.DescribeConfigsRequestResource{{ResourceType: 4, ResourceName: "1"}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.DescribeConfigsResponse).Resources[0].ErrorCode }, cluster},
	} {
		c := newTopicClient(t)
		c.create("t", 1)
		c.h.Auth, c.txns.Auth = deny(k.op), deny(k.op)
		if code := k.code(c.ask(k.v, k.req)); code != k.want {
			t.Errorf("%T without operation %d: %d", k.req, k.op, code)
		}
	}
}

// TestAcksZero: nothing is answered, and a fault closes the connection.
func TestAcksZero(t *testing.T) {
	c := newTopicClient(t)
	c.create("t", 1)
	for what, k := range map[string]struct {
		req     *kmsg.ProduceRequest
		closing bool
	}{
		"good":          {produceRaw("t", [16]byte{}, 0, 0, someRecords(1).bytes()), false},
		"unknown topic": {produceRaw("u", [16]byte{}, 0, 0, someRecords(1).bytes()), true},
		"broken":        {produceRaw("t", [16]byte{}, 0, 0, []byte("x")), true},
	} {
		call, _ := c.start(9, k.req)
		if !call.Ready() {
			t.Fatalf("%s: waits", what)
		}
		if resp, closing := call.Response(); resp != nil || (closing != "") != k.closing {
			t.Errorf("%s: %v, %q", what, resp, closing)
		}
	}
	c.produce("t", 0, someRecords(1))
	if resp := c.ask(12, fetchOf("t", 0)).(*kmsg.FetchResponse); resp.Topics[0].Partitions[0].HighWatermark != 2 {
		t.Error("the records are not there")
	}
}

// TestRequestsAreReadOnly: what is stored is a copy, and the request is as it was.
func TestRequestsAreReadOnly(t *testing.T) {
	c := newTopicClient(t)
	c.create("t", 1)
	raw := someRecords(1).bytes()
	before := slices.Clone(raw)
	for range 2 {
		if code := c.ask(9, produceRaw("t", [16]byte{}, -1, 0, raw)).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; code != 0 {
			t.Fatal(code)
		}
	}
	if !slices.Equal(raw, before) {
		t.Error("the request was changed")
	}
	clear(raw)
	batches := c.ask(12, fetchOf("t", 0)).(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
	for i, base := 0, uint64(0); base < 2; base++ {
		if got := binary.BigEndian.Uint64(batches[i:]); got != base {
			t.Errorf("batch at %d, want %d", got, base)
		}
		i += len(before)
	}
}

func TestDescribeConfigsShowsWhatWasSet(t *testing.T) {
	c := newTopicClient(t, func(h *TopicHandlers) {
		h.Config.Effective = map[string]string{"num.partitions": "4", "admin.token": "secret", "data.dir": "/d"}
	})
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1"}}
	all := map[string]kmsg.DescribeConfigsResponseResourceConfig{}
	for _, rc := range c.ask(4, req).(*kmsg.DescribeConfigsResponse).Resources[0].Configs {
		if _, twice := all[rc.Name]; twice {
			t.Errorf("%s twice", rc.Name)
		}
		all[rc.Name] = rc
	}
	for name, want := range map[string]string{"num.partitions": "4", "log.dirs": "/d", "node.id": "1", "message.max.bytes": "1048588"} {
		if rc, ok := all[name]; !ok || *rc.Value != want {
			t.Errorf("%s is %+v", name, rc)
		}
	}
	if _, ok := all["admin.token"]; ok {
		t.Error("a secret is shown")
	}
	if src := all["num.partitions"].Source; src != kmsg.ConfigSourceStaticBrokerConfig {
		t.Errorf("num.partitions comes from %v", src)
	}
}
