package group

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// modelKey and model are the plainest thing that does what offsets should do.
type modelKey struct {
	topic     string
	partition int32
}

type modelOffset struct {
	OffsetsPartition
	id TopicID
}

type model map[modelKey]modelOffset

func (o model) apply(rec *Record) {
	if rec.Kind == RecordGroupDeleted {
		clear(o)
	}
	for _, t := range rec.Offsets {
		for _, p := range t.Partitions {
			if rec.Kind == RecordOffsets {
				o[modelKey{t.Name, p.Partition}] = modelOffset{p, t.ID}
			} else {
				delete(o, modelKey{t.Name, p.Partition})
			}
		}
	}
}

// String renders as hardState does.
func (o model) String() string {
	keys := slices.SortedFunc(maps.Keys(o), func(a, b modelKey) int {
		if a.topic != b.topic {
			return strings.Compare(a.topic, b.topic)
		}
		return int(int64(a.partition) - int64(b.partition))
	})
	var b strings.Builder
	for _, k := range keys {
		p := o[k]
		fmt.Fprintf(&b, "%q-%d offset=%d epoch=%d commit=%d expire=%d metadata=%q id=%x\n",
			k.topic, k.partition, p.Offset, p.LeaderEpoch, p.Commit, p.Expire, p.Metadata, p.id)
	}
	return b.String()
}

// randomRecord makes a record about few partitions, or about many topics, so that
// it meets what others wrote.
func randomRecord(r *rand.Rand, topics int) Record {
	if r.IntN(40) == 0 {
		return Record{Kind: RecordGroupDeleted}
	}
	rec := Record{Kind: RecordOffsets, Wall: Time(r.IntN(100))}
	if r.IntN(3) == 0 {
		rec.Kind = RecordOffsetsDeleted
	}
	for range r.IntN(4) {
		t := OffsetsTopic{Name: fmt.Sprintf("t%d", r.IntN(topics))}
		if r.IntN(3) == 0 {
			t.ID = TopicID{byte(r.IntN(3))}
		}
		for range r.IntN(5) {
			p := OffsetsPartition{Partition: int32(r.IntN(8)), LeaderEpoch: int32(r.IntN(3)) - 1, Offset: r.Int64N(1000), Commit: Time(r.IntN(100)), Expire: -1}
			if r.IntN(4) == 0 {
				p.Metadata = strings.Repeat("m", r.IntN(3))
			}
			if r.IntN(4) == 0 {
				p.Expire = Time(r.IntN(1000))
			}
			t.Partitions = append(t.Partitions, p)
		}
		rec.Offsets = append(rec.Offsets, t)
	}
	return rec
}

// rowStore is what a store keeps of one group's rows.
type rowStore map[string][]byte

func (s rowStore) put(rows []Row) {
	for _, r := range rows {
		if r.Value == nil {
			delete(s, string(r.Key))
		} else {
			s[string(r.Key)] = r.Value
		}
	}
}

// restore applies all rows, in whatever order, to machines.
func (s rowStore) restore(machines ...*Machine) error {
	for key, value := range s {
		for _, m := range machines {
			if err := m.ApplyRow([]byte(key), value); err != nil {
				return err
			}
		}
	}
	return nil
}

// load makes a machine from rows, in whatever order, and records behind them.
func (s rowStore) load(t *testing.T, tail []Record) *Machine {
	t.Helper()
	m := New(&Env{}, "g")
	if err := s.restore(m); err != nil {
		t.Fatal(err)
	}
	for i := range tail {
		m.Apply(&tail[i])
	}
	if err := m.off.check(); err != nil {
		t.Fatal(err)
	}
	return m
}

// Random records give what the model gives, at every step. Rows of a checkpoint
// and the records since give the same, and so does a base that is folded without
// the live machine, the way history is trimmed.
func TestOffsetsMatchModel(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 0))
		topics := []int{2, 6, 3 * topicIndexMin}[seed%3]
		m, want := New(&Env{}, "g"), model{}
		var tail, untrimmed []Record
		checkpoint, base := rowStore{}, rowStore{}
		for step := range 400 {
			rec := randomRecord(r, topics)
			m.Apply(&rec)
			want.apply(&rec)
			tail, untrimmed = append(tail, rec), append(untrimmed, rec)
			check := func(what string, m *Machine) {
				t.Helper()
				if got := hardState(m); got != want.String() {
					t.Fatalf("seed %d, step %d, %s:\n%s\nwant\n%s", seed, step, what, got, want)
				}
			}
			check("applied", m)
			if err := m.off.check(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			switch r.IntN(10) {
			case 0:
				checkpoint.put(rows(m))
				tail = tail[:0]
			case 1:
				check("from the checkpoint", checkpoint.load(t, tail))
			case 2:
				cut := r.IntN(len(untrimmed) + 1)
				base.put(rows(base.load(t, untrimmed[:cut])))
				untrimmed = slices.Clone(untrimmed[cut:])
			case 3:
				check("from the base", base.load(t, untrimmed))
			}
		}
	}
}

// A group that is gone is held until a checkpoint has removed its rows, and a
// topic that came back in between keeps its row.
func TestGoneAfterCheckpoint(t *testing.T) {
	env := &Env{Config: Config{MaxMetadata: 4096}}
	m := New(env, "g")
	if out := m.Step(0, &Fetch{}); !out.Gone {
		t.Error("an unknown group is not gone")
	}
	commit(m, "t", 0, 1)
	commit(m, "u", 0, 1)
	if got := len(rows(m)); got != 2 {
		t.Fatalf("%d rows", got)
	}
	if out := m.Step(0, &DeleteGroup{}); out.Gone {
		t.Error("gone although its rows are stored")
	}
	commit(m, "u", 0, 2)
	got := rows(m)
	var b strings.Builder
	for _, r := range got {
		fmt.Fprintf(&b, "%q %t\n", r.Key, r.Value != nil)
	}
	if want := "\"\\x00\\x01g\\x02t\" false\n\"\\x00\\x01g\\x02u\" true\n"; b.String() != want {
		t.Errorf("rows\n%swant\n%s", b.String(), want)
	}
	m.Step(0, &DeleteGroup{})
	if out := m.Step(0, &Checkpoint{}); len(out.Rows) == 0 || !out.Gone {
		t.Errorf("%d rows, gone %t", len(out.Rows), out.Gone)
	}
	// Made and removed between two checkpoints: nothing to remove.
	commit(m, "v", 0, 2)
	m.Step(0, &DeleteGroup{})
	for _, r := range rows(m) {
		if bytes.HasSuffix(r.Key, []byte("v")) {
			t.Errorf("row %q of a topic that never was in a checkpoint", r.Key)
		}
	}
}

// commit commits one offset as a simple consumer does.
func commit(m *Machine, topic string, partition int32, offset int64) Output {
	return m.Step(0, &Commit{Head: Head{Req: 1}, Generation: -1, Retention: -1, Topics: []CommitTopic{
		{Name: topic, Partitions: []CommitPartition{{Partition: partition, Offset: offset, LeaderEpoch: -1}}},
	}})
}

// The sum of a commit's time and its retention saturates, and is never the number
// that means none (B48, B66).
func TestExplicitExpiry(t *testing.T) {
	const end = Time(1<<63 - 1)
	for _, tc := range []struct{ wall, retention, want Time }{
		{1000, 0, 1000}, {1000, 60000, 61000}, {1000, end, end}, {end, 1, end}, {0, end, end},
		{1000, -2, 998}, {1000, -1001, 0}, {1000, -1000, 0}, {1000, -end - 1, 0}, {-5, -end - 1, 0}, {-5, 1, 0},
	} {
		if got := explicitExpiry(tc.wall, tc.retention); got != tc.want {
			t.Errorf("%d + %d = %d, want %d", tc.wall, tc.retention, got, tc.want)
		}
	}
}

// Metadata is measured in UTF-16 units.
func TestMetadataTooLarge(t *testing.T) {
	m := New(&Env{Config: Config{MaxMetadata: 4}}, "g")
	for s, want := range map[string]bool{
		"": false, "1234": false, "12345": true, "éééé": false, "ééééé": true,
		"😀😀": false, "😀😀x": true, "xxx😀": true, "\xff\xff\xff\xff": false, "\xff\xff\xff\xff\xff": true,
	} {
		if got := m.metadataTooLarge(s); got != want {
			t.Errorf("%q: %t", s, got)
		}
	}
}

// What was needed once is given back: room for partitions that were named many
// times or are gone, and the strings of an earlier, larger commit.
func TestMemoryGivenBack(t *testing.T) {
	env := &Env{Config: Config{MaxMetadata: 4096}}
	m := New(env, "g")
	ev := &Commit{Generation: -1, Retention: -1, Topics: []CommitTopic{{Name: "t"}}}
	for range 1000 {
		ev.Topics[0].Partitions = append(ev.Topics[0].Partitions, CommitPartition{Metadata: "m"})
	}
	m.Step(0, ev)
	if got := cap(m.off.lookup("t").entries); got > 2 {
		t.Errorf("room for %d partitions, there is 1", got)
	}
	m.Step(0, commitOf(1, 1, 0))
	for _, p := range env.commit.partitions[:cap(env.commit.partitions)] {
		if p.Metadata != "" {
			t.Fatal("the scratch space holds on to an earlier commit's metadata")
		}
	}
	m.Step(0, commitOf(1, 1000, 0))
	for p := range int32(999) {
		m.Step(0, &DeleteOffsets{Topics: []DeleteOffsetsTopic{{Name: "topic-000000", Partitions: []int32{p}}}})
	}
	if got := cap(m.off.lookup("topic-000000").entries); got > 2 {
		t.Errorf("room for %d partitions, there is 1", got)
	}
}

// What a group costs in memory, without what the runtime keeps of it. The figures
// are logged; the bounds are those of the product.
func TestMemoryPerGroup(t *testing.T) {
	const groups = 2000
	for _, tc := range []struct {
		name               string
		topics, partitions int
		limit              float64 // bytes a group
	}{
		{"one offset", 1, 1, 1024},
		{"100 partitions of a topic", 1, 100, 100*40 + 1024},
		{"100 topics", 100, 1, 100*256 + 1024},
	} {
		env := &Env{Config: Config{MaxMetadata: 4096}}
		all := make([]*Machine, 0, groups)
		before := heap()
		for i := range groups {
			m := New(env, fmt.Sprintf("group-%06d", i))
			m.Step(0, commitOf(tc.topics, tc.partitions, 1))
			all = append(all, m)
		}
		per := float64(heap()-before) / groups
		runtime.KeepAlive(all)
		t.Logf("%s: %.0f bytes a group", tc.name, per)
		if per > tc.limit {
			t.Errorf("%s: %.0f bytes a group, more than %.0f", tc.name, per, tc.limit)
		}
	}
}

// What a Stable group of one member with 100 bytes of metadata costs in memory.
func TestMemoryPerStableGroup(t *testing.T) {
	const groups, limit = 2000, 2048
	env := &Env{Config: Config{MaxMetadata: 4096}}
	all := make([]*Machine, 0, groups)
	before := heap()
	for i := range groups {
		m := New(env, fmt.Sprintf("group-%06d", i))
		id := fmt.Sprintf("consumer-%036d", i)
		m.Step(0, &Join{
			Head: Head{Req: 1}, NewID: id, Client: Client{ID: "consumer", Host: "/127.0.0.1"}, SessionTimeout: 45_000, RebalanceTimeout: 300_000,
			ProtocolType: "consumer", Protocols: []Protocol{{Name: "range", Metadata: make([]byte, 100)}},
		})
		m.Step(1, &Tick{})
		m.Step(2, &Sync{Head: Head{Req: 2}, MemberID: id, Generation: 1, Assignments: []Assignment{{MemberID: id, Bytes: make([]byte, 100)}}})
		if m.state() != Stable {
			t.Fatalf("the group is %v", m.state())
		}
		all = append(all, m)
	}
	per := float64(heap()-before) / groups
	runtime.KeepAlive(all)
	t.Logf("%.0f bytes a group", per)
	if per > limit {
		t.Errorf("%.0f bytes a group, more than %d", per, limit)
	}
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// commitOf makes a simple consumer's commit with its own strings, as the handler
// does.
func commitOf(topics, partitions int, offset int64) *Commit {
	ev := &Commit{Head: Head{Req: 1, Wall: 1700000000000}, Generation: -1, Retention: -1}
	for i := range topics {
		t := CommitTopic{Name: fmt.Sprintf("topic-%06d", i), ID: TopicID{1}}
		for p := range partitions {
			t.Partitions = append(t.Partitions, CommitPartition{Partition: int32(p), Offset: offset + int64(p), LeaderEpoch: 3})
		}
		ev.Topics = append(ev.Topics, t)
	}
	return ev
}

// The commit of known partitions: what every commit of a running consumer costs.
func BenchmarkCommit10(b *testing.B) {
	for _, tc := range []struct {
		name               string
		topics, partitions int
	}{{"1 topic", 1, 10}, {"10 topics", 10, 1}} {
		b.Run(tc.name, func(b *testing.B) {
			m := New(&Env{Config: Config{MaxMetadata: 4096}}, "group")
			ev := commitOf(tc.topics, tc.partitions, 1000)
			b.ReportAllocs()
			for b.Loop() {
				m.Step(0, ev)
			}
		})
	}
}

func BenchmarkAppendRecord10(b *testing.B) {
	m := New(&Env{Config: Config{MaxMetadata: 4096}}, "group")
	out := m.Step(0, commitOf(1, 10, 1000))
	buf := AppendRecord(nil, "group", &out.Records[0])
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendRecord(buf[:0], "group", &out.Records[0])
	}
	b.ReportMetric(float64(len(buf)), "bytes/record")
}

func BenchmarkDecodeRecord10(b *testing.B) {
	m := New(&Env{Config: Config{MaxMetadata: 4096}}, "group")
	out := m.Step(0, commitOf(1, 10, 1000))
	buf := AppendRecord(nil, "group", &out.Records[0])
	b.ReportAllocs()
	for b.Loop() {
		if _, _, _, err := DecodeRecord(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// Loading: 100 offsets a group, as in the goal of 1,000,000 offsets in under a
// second, in rows of one topic and of ten.
func BenchmarkLoadRows(b *testing.B) {
	for _, tc := range []struct {
		name               string
		topics, partitions int
	}{{"1 topic", 1, 100}, {"10 topics", 10, 10}} {
		b.Run(tc.name, func(b *testing.B) {
			env := &Env{Config: Config{MaxMetadata: 4096}}
			m := New(env, "group")
			m.Step(0, commitOf(tc.topics, tc.partitions, 1000))
			stored := rows(m)
			b.ReportAllocs()
			for b.Loop() {
				id, err := RowGroup(stored[0].Key)
				if err != nil {
					b.Fatal(err)
				}
				m := New(env, id)
				for _, r := range stored {
					if err := m.ApplyRow(r.Key, r.Value); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(tc.topics*tc.partitions*b.N)/b.Elapsed().Seconds()/1e6, "Moffsets/s")
		})
	}
}

func BenchmarkFetch10(b *testing.B) {
	m := New(&Env{Config: Config{MaxMetadata: 4096}}, "group")
	m.Step(0, commitOf(1, 100, 1000))
	ev := &Fetch{Head: Head{Req: 1}, Topics: []FetchTopic{{Name: "topic-000000", Partitions: []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}}}
	b.ReportAllocs()
	for b.Loop() {
		m.Step(0, ev)
	}
}
