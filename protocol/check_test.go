package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// nullableFields are the nulls that Kafka's group APIs allow, and from which version
// to which. It is written down by hand: requests.txt is what is tested.
var nullableFields = map[string]versions{
	"OffsetCommit.GroupInstanceId":                        {7, 99},
	"OffsetCommit.Topics.Partitions.CommittedMetadata":    {0, 99},
	"OffsetFetch.Topics":                                  {2, 7},
	"OffsetFetch.Groups.Topics":                           {8, 99},
	"OffsetFetch.Groups.MemberId":                         {9, 99},
	"JoinGroup.GroupInstanceId":                           {5, 99},
	"JoinGroup.Reason":                                    {8, 99},
	"Heartbeat.GroupInstanceId":                           {3, 99},
	"LeaveGroup.Members.GroupInstanceId":                  {3, 99},
	"LeaveGroup.Members.Reason":                           {5, 99},
	"SyncGroup.GroupInstanceId":                           {3, 99},
	"SyncGroup.ProtocolType":                              {5, 99},
	"SyncGroup.ProtocolName":                              {5, 99},
	"TxnOffsetCommit.GroupInstanceId":                     {3, 99},
	"TxnOffsetCommit.Topics.Partitions.CommittedMetadata": {0, 99},
	"ConsumerGroupHeartbeat.InstanceId":                   {0, 99},
	"ConsumerGroupHeartbeat.RackId":                       {0, 99},
	"ConsumerGroupHeartbeat.SubscribedTopicNames":         {0, 99},
	"ConsumerGroupHeartbeat.SubscribedTopicRegex":         {1, 99},
	"ConsumerGroupHeartbeat.ServerAssignor":               {0, 99},
	"ConsumerGroupHeartbeat.TopicPartitions":              {0, 99},
}

var groupAPIs = []int16{8, 9, 10, 11, 12, 13, 14, 15, 16, 28, 42, 47, 68, 69}

// writer encodes a body along a layout: one element in each array, one letter in
// each string. At the field called path it writes the given length bytes instead.
type writer struct {
	dst      []byte
	flexible bool
	path     string
	length   []byte
	seen     []string
}

func (w *writer) layout(path string, l *layout) {
	for i := range l.fields {
		w.field(path+"."+l.fields[i].name, &l.fields[i])
	}
	if w.flexible {
		w.dst = append(w.dst, 0)
	}
}

func (w *writer) field(path string, f *fieldLayout) {
	if f.kind != kindFixed && f.kind != kindStruct {
		w.seen = append(w.seen, path)
		if path == w.path {
			w.dst = append(w.dst, w.length...)
			return
		}
	}
	switch {
	case f.kind == kindFixed:
		w.dst = append(w.dst, make([]byte, f.size)...)
	case f.kind == kindStruct && f.nullable:
		w.dst = append(w.dst, 1)
		w.layout(path, f.inner)
	case f.kind == kindStruct:
		w.layout(path, f.inner)
	case w.flexible:
		w.dst = append(w.dst, 2)
	case f.kind == kindString:
		w.dst = append(w.dst, 0, 1)
	default:
		w.dst = append(w.dst, 0, 0, 0, 1)
	}
	switch {
	case f.kind == kindString, f.kind == kindBytes:
		w.dst = append(w.dst, 'x')
	case f.kind == kindArray && f.elem.kind == kindStruct:
		w.layout(path, f.elem.inner)
	case f.kind == kindArray:
		w.field(path+".element", f.elem)
	}
}

// Every length of every field of the group APIs, made wrong in every way: a null is
// taken where Kafka takes one, and everything else closes the connection.
func TestWrongLengths(t *testing.T) {
	table, schemas := everything(t)
	eachVersion(t, table, func(t *testing.T, key, version int16) {
		h := &Header{Key: key, Version: version}
		h.layout, _ = table.lookup(key, version)
		whole := writer{flexible: h.layout.flexible}
		whole.layout(schemas[key].name, &h.layout.body)
		if _, err := table.Check(h, whole.dst); err != nil {
			t.Fatalf("the example itself: %v", err)
		}
		for _, path := range whole.seen {
			for name, length := range wrongLengths(h.layout.flexible, kindAt(&h.layout.body, schemas[key].name, path)) {
				w := writer{flexible: h.layout.flexible, path: path, length: length}
				w.layout(schemas[key].name, &h.layout.body)
				_, err := table.Check(h, w.dst)
				if err == nil {
					_, err = table.Decode(h, w.dst)
				}
				nullable, listed := nullableFields[path]
				if !isGroupAPI(key) {
					// Only that nothing breaks: requests.txt says what is nullable.
					listed, nullable = false, noVersions
				}
				want := name[0] == '-' && listed && nullable.has(version)
				if got := err == nil; got != want && isGroupAPI(key) {
					t.Errorf("%s of length %s: accepted is %v, want %v (%x)", path, name, got, want, w.dst)
				}
				var refused *RequestError
				if err != nil && !errors.As(err, &refused) {
					t.Errorf("%s of length %s: error of type %T", path, name, err)
				}
			}
		}
	})
}

func isGroupAPI(key int16) bool {
	for _, k := range groupAPIs {
		if k == key {
			return true
		}
	}
	return false
}

// kindAt finds the kind of a field by its path.
func kindAt(l *layout, prefix, path string) kind {
	for i := range l.fields {
		f := &l.fields[i]
		at := prefix + "." + f.name
		if at == path {
			return f.kind
		}
		if len(path) <= len(at) || path[:len(at)+1] != at+"." {
			continue
		}
		if f.kind == kindArray && path == at+".element" {
			return f.elem.kind
		}
		if f.kind == kindArray {
			return kindAt(f.elem.inner, at, path)
		}
		return kindAt(f.inner, at, path)
	}
	panic(path)
}

// wrongLengths are lengths by name; those that begin with a minus are nulls.
func wrongLengths(flexible bool, k kind) map[string][]byte {
	if flexible {
		return map[string][]byte{
			"-1":              {0},
			"too long":        binary.AppendUvarint(nil, 30000),
			"over 32767":      append(binary.AppendUvarint(nil, 1<<15+1), make([]byte, 1<<14)...),
			"2^32-1":          {0xff, 0xff, 0xff, 0xff, 0x0f},
			"five bytes":      {0xff, 0xff, 0xff, 0xff, 0x7f},
			"ten bytes":       {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01},
			"no end in sight": {0xff},
		}
	}
	if k == kindString {
		return map[string][]byte{"-1": {0xff, 0xff}, "-2": {0xff, 0xfe}, "too long": {0x7f, 0xff, 'a', 'b', 'c'}}
	}
	return map[string][]byte{
		"-1": {0xff, 0xff, 0xff, 0xff}, "-2": {0xff, 0xff, 0xff, 0xfe},
		"too long": {0x00, 0x00, 0x7f, 0xff, 'a', 'b', 'c'}, "2^31-1": {0x7f, 0xff, 0xff, 0xff},
	}
}

// A compact string has no more than 32767 bytes, although its length could say more.
func TestLongStrings(t *testing.T) {
	table, _ := everything(t)
	for _, tc := range []struct {
		length int
		ok     bool
	}{{1<<15 - 1, true}, {1 << 15, false}} {
		req := kmsg.NewPtrJoinGroupRequest()
		req.Version = 9
		req.Reason = kmsg.StringPtr(string(make([]byte, tc.length)))
		h := &Header{Key: 11, Version: 9}
		h.layout, _ = table.lookup(11, 9)
		if _, err := table.Check(h, req.AppendTo(nil)); (err == nil) != tc.ok {
			t.Errorf("a reason of %d bytes: %v", tc.length, err)
		}
	}
}

// A frame that would become many times its size in memory is refused, whichever way
// it tries; the same number of honest elements is not.
func TestInflation(t *testing.T) {
	table, _ := everything(t)
	const n = 100_000
	repeat := func(head []byte, count int, element ...byte) []byte {
		for range count {
			head = append(head, element...)
		}
		return head
	}
	var tags []byte
	for i := range n {
		tags = append(binary.AppendUvarint(tags, uint64(i)), 0)
	}
	for _, tc := range []struct {
		name         string
		key, version int16
		body         []byte
		ok           bool
	}{
		{"empty protocols, each with an unknown tag", 11, 9,
			append(repeat(append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1}, binary.AppendUvarint(nil, n+1)...), n, 1, 1, 1, 5, 0), 0, 0), false},
		{"empty protocols", 11, 9,
			append(repeat(append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1}, binary.AppendUvarint(nil, n+1)...), n, 1, 1, 0), 0, 0), false},
		{"many unknown tags in one place", 12, 4,
			append(append([]byte{1, 0, 0, 0, 0, 1, 0}, binary.AppendUvarint(nil, n)...), tags...), false},
		{"topics with short names", 20, 5,
			append(repeat(binary.AppendUvarint(nil, n+1), n, 2, 'a'), 0, 0, 0, 0, 0), false},
		{"topics with names of ten letters", 20, 5,
			append(repeat(binary.AppendUvarint(nil, n+1), n, 11, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'), 0, 0, 0, 0, 0), true},
		{"commits of many partitions without metadata", 8, 9,
			append(repeat(append([]byte{2, 'g', 0, 0, 0, 0, 1, 0, 2, 2, 't'}, binary.AppendUvarint(nil, n+1)...), n, make([]byte, 18)...), 0, 0), true},
	} {
		h := &Header{Key: tc.key, Version: tc.version}
		h.layout, _ = table.lookup(tc.key, tc.version)
		memory, err := table.Check(h, tc.body)
		var refused *RequestError
		if errors.As(err, &refused) && refused.Problem != Inflated {
			t.Errorf("%s: %v", tc.name, err)
		} else if (err == nil) != tc.ok {
			t.Errorf("%s: %d bytes become %d: %v", tc.name, len(tc.body), memory, err)
		}
	}
}

// The memory that Check foresees is not below what decoding allocates.
func TestMemoryIsAnUpperBound(t *testing.T) {
	if raced {
		t.Skip("the race detector changes what is allocated")
	}
	table, _ := everything(t)
	h := &Header{Key: 8, Version: 9}
	h.layout, _ = table.lookup(8, 9)
	body := append([]byte{2, 'g', 0, 0, 0, 0, 1, 0, 2, 2, 't'}, binary.AppendUvarint(nil, 10001)...)
	for i := range 10000 {
		body = append(body, make([]byte, 16)...)
		body = append(body, 4, 'a', 'b', 'c') // metadata
		if i%4 == 0 {
			body = append(body, 1, 9, 3, 'x', 'y', 'z') // and a tag
		} else {
			body = append(body, 0)
		}
	}
	body = append(body, 0, 0)
	memory, err := table.Check(h, body)
	if err != nil {
		t.Fatal(err)
	}
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if _, err := table.Decode(h, body); err != nil {
				b.Fatal(err)
			}
		}
	})
	if got := int(result.AllocedBytesPerOp()); got > memory || got < memory/3 {
		t.Errorf("decoding %d bytes took %d, foreseen were %d", len(body), got, memory)
	}
}

func BenchmarkCheckHeartbeat(b *testing.B) {
	table, _ := everything(b)
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID = 4, "some-group", "consumer-some-group-1-0123456789abcdef"
	benchmarkCheck(b, table, req)
}

func BenchmarkCheckOffsetCommit(b *testing.B) {
	table, _ := everything(b)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group = 9, "some-group"
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = "some-topic"
	for i := range 10 {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Metadata = int32(i), kmsg.StringPtr("")
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	benchmarkCheck(b, table, req)
}

func benchmarkCheck(b *testing.B, table *Table, req kmsg.Request) {
	frame := new(kmsg.RequestFormatter).AppendRequest(nil, req, 1)[4:]
	for _, decode := range []bool{false, true} {
		b.Run(fmt.Sprintf("decode=%v", decode), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h, body, err := table.ReadHeader(frame)
				if err == nil {
					_, err = table.Check(&h, body)
				}
				if err == nil && decode {
					_, err = table.Decode(&h, body)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
