package group

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/golden")

func ptr[T any](v T) *T { return &v }

// goldenRecords are the records whose encoding is checked in.
func goldenRecords() map[string]Record {
	id := TopicID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	by := Provenance{ClientID: "app", Host: "/10.0.0.5", Principal: "User:ANONYMOUS", MemberID: "app-1", Generation: 7}
	return map[string]Record{
		"offsets_one": {
			Kind: RecordOffsets, Wall: 1700000000000, By: by,
			Offsets: []OffsetsTopic{{Name: "t", ID: id, Partitions: []OffsetsPartition{
				{Partition: 0, LeaderEpoch: -1, Offset: 42, Commit: 1700000000000, Expire: -1},
			}}},
		},
		"offsets_edges": {
			Kind: RecordOffsets, Wall: -1, By: Provenance{Generation: -1},
			Offsets: []OffsetsTopic{
				{Name: "t", Partitions: []OffsetsPartition{
					{Partition: math.MaxInt32, LeaderEpoch: 0, Offset: math.MaxInt64, Commit: -1, Expire: math.MaxInt64, Metadata: "m\x00\xff"},
					{Partition: math.MinInt32, LeaderEpoch: math.MinInt32, Offset: math.MinInt64, Commit: math.MinInt64, Expire: 0},
					{Partition: math.MinInt32, LeaderEpoch: math.MaxInt32, Offset: -1, Commit: math.MaxInt64, Expire: math.MinInt64},
				}},
				{Name: "", Partitions: []OffsetsPartition{}},
			},
		},
		"offsets_deleted": {
			Kind: RecordOffsetsDeleted, Wall: 1700000000000,
			Offsets: []OffsetsTopic{{Name: "t", Partitions: []OffsetsPartition{{Partition: 3}, {Partition: -1}}}},
		},
		"pending": {
			Kind: RecordPending, Wall: 1700000000000, By: by, Txn: Transaction{ID: "copy-1", Number: 12, ProducerID: 4000, Epoch: 3},
			Offsets: []OffsetsTopic{{Name: "t", ID: id, Partitions: []OffsetsPartition{
				{Partition: 0, LeaderEpoch: 5, Offset: 42, Commit: 1700000000000, Expire: -1, Metadata: "m"},
				{Partition: 1, LeaderEpoch: -1, Offset: 43, Commit: 1700000000000, Expire: -1},
			}}},
		},
		"pending_edges": {
			Kind: RecordPending, Wall: 1, Txn: Transaction{Number: math.MinInt64, ProducerID: math.MaxInt64, Epoch: math.MinInt16},
			Offsets: []OffsetsTopic{},
		},
		"resolved_commit": {Kind: RecordResolved, Wall: 1700000000000, Txn: Transaction{ID: "copy-1", Number: 12, ProducerID: 4000, Epoch: 3}, Commit: true},
		"resolved_abort":  {Kind: RecordResolved, Wall: 1700000000000, Txn: Transaction{ID: "", Number: math.MaxInt64, ProducerID: -1, Epoch: math.MaxInt16}},
		"pending_deleted": {
			Kind: RecordPendingDeleted, Wall: 1700000000000, By: by, Txn: Transaction{ID: "copy-1", Number: 12, ProducerID: 4000, Epoch: 3},
			Offsets: []OffsetsTopic{{Name: "t", Partitions: []OffsetsPartition{{Partition: 3}, {Partition: -1}}}},
		},
		"group_deleted": {Kind: RecordGroupDeleted, Wall: 1700000000000, By: by},
		"membership_empty": {
			Kind: RecordMembership, Wall: 1700000000000,
			Membership: &Membership{ProtocolType: "consumer", Generation: 9, Ceiling: 107, Since: 1699999999999, Members: []MemberSnapshot{}},
		},
		"membership": {
			Kind: RecordMembership, Wall: 1700000000000, By: by,
			Membership: &Membership{
				ProtocolType: "consumer", Generation: math.MaxInt32, Ceiling: math.MinInt32,
				Protocol: ptr("range"), Leader: "app-1", Since: 1,
				Members: []MemberSnapshot{
					{
						MemberID: "app-1", ClientID: "app", ClientHost: "/10.0.0.5", SessionTimeout: 45000, RebalanceTimeout: 300000,
						Protocols:  []Protocol{{Name: "range", Metadata: []byte{0, 1, 0, 0, 0xff}}, {Name: "roundrobin", Metadata: []byte{}}},
						Assignment: []byte{},
					},
					{
						MemberID: "s-1", InstanceID: ptr(""), SessionTimeout: -1, RebalanceTimeout: math.MaxInt32,
						Protocols: []Protocol{{Name: "", Metadata: nil}}, Assignment: nil,
					},
					{MemberID: "s-2", InstanceID: ptr("i"), Protocols: []Protocol{}, Assignment: []byte("\x00assigned")},
				},
			},
		},
	}
}

// checkGolden compares bytes with a file of testdata/golden. A difference means
// that stores in the field cannot be read any more: add a format instead.
func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".hex")
	text := hex.EncodeToString(got) + "\n"
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run with -update)", err)
	}
	if string(want) != text {
		t.Errorf("%s is encoded as\n%swas\n%s", name, text, want)
	}
}

// Every record is encoded as it always was and decoded to what it was, nil and
// empty kept apart.
func TestRecordGolden(t *testing.T) {
	for name, rec := range goldenRecords() {
		enc := AppendRecord([]byte("before"), "group", &rec)
		enc = enc[len("before"):]
		checkGolden(t, "record_"+name, enc)
		id, got, rest, err := DecodeRecord(append(enc, "behind"...))
		if err != nil || id != "group" || string(rest) != "behind" {
			t.Errorf("%s: group %q, rest %q, error %v", name, id, rest, err)
		}
		if !reflect.DeepEqual(got, rec) {
			t.Errorf("%s decoded as\n%+v\nwas\n%+v", name, got, rec)
		}
	}
}

// A golden record cut off anywhere is an error that names what is wrong, as are an
// unknown format and an unknown kind.
func TestRecordRefused(t *testing.T) {
	for name, rec := range goldenRecords() {
		enc := AppendRecord(nil, "group", &rec)
		for n := range enc {
			if _, got, _, err := DecodeRecord(enc[:n]); err == nil {
				t.Fatalf("%s cut to %d of %d bytes decoded as %+v", name, n, len(enc), got)
			}
		}
	}
	enc := AppendRecord(nil, "group", &Record{Kind: RecordGroupDeleted})
	for _, tc := range []struct {
		at   int
		to   byte
		want string
	}{{0, 2, "unknown format 2"}, {1, 9, "unknown kind 9"}} {
		bad := bytes.Clone(enc)
		bad[tc.at] = tc.to
		if _, _, _, err := DecodeRecord(bad); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %q", err, tc.want)
		}
	}
}

// Whatever bytes come, decoding does not panic and allocates in proportion to
// them, and what was decoded is encoded and decoded to the same.
func FuzzDecodeRecord(f *testing.F) {
	for _, rec := range goldenRecords() {
		f.Add(AppendRecord(nil, "group", &rec))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var before, after runtime.MemStats
		measured := len(src) < 64 // announcing much in few bytes is what could hurt
		if measured {
			runtime.ReadMemStats(&before)
		}
		id, rec, rest, err := DecodeRecord(src)
		if measured {
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<16 {
				t.Fatalf("%d bytes allocated for %d", used, len(src))
			}
		}
		if err != nil {
			return
		}
		enc := AppendRecord(nil, id, &rec)
		id2, rec2, rest2, err := DecodeRecord(append(enc, rest...))
		if err != nil || id2 != id || !bytes.Equal(rest, rest2) || !reflect.DeepEqual(rec, rec2) {
			t.Fatalf("%+v came back as %+v, error %v", rec, rec2, err)
		}
	})
}

// goldenMachine has every kind of row.
func goldenMachine(t testing.TB) *Machine {
	t.Helper()
	m := New(&Env{}, "group")
	// Behind the pending ones: one of those is superseded.
	for _, name := range []string{"pending", "offsets_one", "membership"} {
		rec := goldenRecords()[name]
		m.Apply(&rec)
	}
	m.Apply(&Record{Kind: RecordOffsets, Wall: 5, Offsets: []OffsetsTopic{
		{Name: "u", Partitions: []OffsetsPartition{
			{Partition: math.MinInt32, LeaderEpoch: -1, Offset: -1, Commit: math.MaxInt64, Expire: -1},
			{Partition: 0, LeaderEpoch: 3, Offset: 1, Commit: math.MinInt64, Expire: -1},
			{Partition: math.MaxInt32, LeaderEpoch: -1, Offset: 5, Commit: 5, Expire: 0, Metadata: "m"},
		}},
		{Name: "u", ID: TopicID{9}, Partitions: []OffsetsPartition{{Partition: 1, LeaderEpoch: -1, Offset: 7, Commit: 5, Expire: -1}}},
		{Name: "", Partitions: []OffsetsPartition{{Partition: 0, LeaderEpoch: -1, Commit: 5, Expire: -1}}},
	}})
	for _, txn := range []Transaction{{ID: "copy-1", Number: 12, ProducerID: 4000, Epoch: 3}, {ID: "other", Number: -1, ProducerID: -1, Epoch: -1}} {
		m.Apply(&Record{Kind: RecordPending, Wall: 6, Txn: txn, Offsets: []OffsetsTopic{
			{Name: "u", Partitions: []OffsetsPartition{{Partition: 7, LeaderEpoch: -1, Offset: 8, Commit: 6, Expire: -1}}},
			{Name: "u", ID: TopicID{9}, Partitions: []OffsetsPartition{{Partition: 8, LeaderEpoch: 0, Offset: 9, Commit: 6, Expire: -1, Metadata: "m"}}},
		}})
	}
	return m
}

// rows returns copies of what a checkpoint puts out.
func rows(m *Machine) []Row {
	return cloneRows(m.Step(0, &Checkpoint{}).Rows)
}

func cloneRows(rows []Row) []Row {
	rows = slices.Clone(rows)
	for i, r := range rows {
		rows[i] = Row{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)}
	}
	return rows
}

// hardState renders the hard state of a machine; equal states give equal strings.
func hardState(m *Machine) string {
	var b strings.Builder
	if m.snap != nil {
		fmt.Fprintf(&b, "%x\n", appendMembership(nil, m.snap))
	}
	for _, t := range m.off.topics {
		for i := range t.entries {
			e := &t.entries[i]
			fmt.Fprintf(&b, "%q-%d offset=%d epoch=%d commit=%d expire=%d metadata=%q id=%x\n",
				t.name, e.partition, e.offset, e.leaderEpoch, e.commit, e.expire(), e.metadata(), t.topicID(e))
		}
	}
	if m.pend != nil {
		b.WriteString(m.pend.String())
	}
	return b.String()
}

// String renders what is pending, with each offset's place among those of its
// partition: positions themselves may differ after a restart.
func (p *pendings) String() string {
	var b strings.Builder
	for _, x := range p.txns {
		lines := make([]string, len(x.offsets))
		for i, e := range x.offsets {
			place := 0
			for _, other := range p.at[e.key()] {
				if other.position < e.position {
					place++
				}
			}
			lines[i] = fmt.Sprintf("pending %q-%d offset=%d epoch=%d commit=%d metadata=%q id=%x txn=%q/%d producer=%d/%d place=%d superseded=%t\n",
				e.topic, e.Partition, e.Offset, e.LeaderEpoch, e.Commit, e.Metadata, e.id, x.txn.ID, x.txn.Number, x.txn.ProducerID, x.txn.Epoch, place, e.superseded)
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, ""))
	}
	return b.String()
}

// Every row is encoded as it always was and restores the hard state it came from.
func TestRowGolden(t *testing.T) {
	m := goldenMachine(t)
	restored := New(&Env{}, "group")
	got := rows(m)
	if len(got) != 6 {
		t.Fatalf("%d rows", len(got))
	}
	for i, r := range got {
		checkGolden(t, fmt.Sprintf("row_%d_key", i), r.Key)
		checkGolden(t, fmt.Sprintf("row_%d_value", i), r.Value)
		if id, err := RowGroup(r.Key); err != nil || id != "group" {
			t.Errorf("row of group %q, error %v", id, err)
		}
		if !bytes.HasPrefix(r.Key, AppendRowPrefix(nil, "group")) {
			t.Errorf("key %x has not the prefix of its group", r.Key)
		}
		if err := restored.ApplyRow(r.Key, r.Value); err != nil {
			t.Error(err)
		}
	}
	if want, have := hardState(m), hardState(restored); want != have {
		t.Errorf("restored\n%s\nwas\n%s", have, want)
	}
	if err := restored.Check(); err != nil {
		t.Error(err)
	}
	if again := rows(m); len(again) != 0 {
		t.Errorf("a second checkpoint has %d rows", len(again))
	}
	if again := rows(restored); len(again) != 0 {
		t.Errorf("a checkpoint after a load has %d rows", len(again))
	}
}

// No group's rows lie under another group's prefix, whatever the ids.
func TestRowPrefixes(t *testing.T) {
	ids := []string{"", "a", "aa", "a\x00", "a/b", "..", "\xff", "\x00", strings.Repeat("g", 127), strings.Repeat("g", 128), strings.Repeat("g", 40000)}
	for _, a := range ids {
		key := append(AppendRowPrefix(nil, a), rowOffsets, 't')
		if id, err := RowGroup(key); err != nil || id != a {
			t.Errorf("RowGroup(%x) = %q, %v", key, id, err)
		}
		for _, b := range ids {
			if a != b && bytes.HasPrefix(key, AppendRowPrefix(nil, b)) {
				t.Errorf("a row of %q has the prefix of %q", a, b)
			}
		}
	}
}

func TestRowRefused(t *testing.T) {
	key := append(AppendRowPrefix(nil, "group"), rowOffsets, 't')
	value := []byte{rowFormat, 0, 1, 0, 0, 0, 0}
	pending := append(AppendRowPrefix(nil, "group"), rowPending, 0, 0, 0, 0, 0, 0, 0, 1, 'x')
	for _, tc := range []struct {
		name, want string
		key, value []byte
	}{
		{"tenant", "tenant", append([]byte{1, 'x'}, key[1:]...), value},
		{"kind", "unknown kind 9", append(AppendRowPrefix(nil, "group"), 9), value},
		{"no kind", "ends too early", AppendRowPrefix(nil, "group"), value},
		{"other group", `"other" applied`, append(AppendRowPrefix(nil, "other"), rowOffsets), value},
		{"format", "unknown format 2", key, append([]byte{2}, value[1:]...)},
		{"flags", "unknown flags", key, []byte{rowFormat, 0, 1, 0x80, 0, 0, 0}},
		{"id", "unknown flags", key, []byte{rowFormat, 2, 1, 0, 0, 0, 0}},
		{"count", "more elements", key, []byte{rowFormat, 0, 100, 0, 0, 0, 0}},
		{"no entries", "more elements", key, []byte{rowFormat, 0, 0}},
		{"order", "not in order", key, []byte{rowFormat, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0}},
		{"partition", "too large", key, append(append([]byte{rowFormat, 0, 1, 0}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), 0, 0)},
		{"trailing", "behind the end", key, append(bytes.Clone(value), 0)},
		{"empty", "ends too early", key, nil},
		{"pending, name", "ends too early", append(AppendRowPrefix(nil, "group"), rowPending, 0, 0, 0, 0, 0, 0, 1), []byte{rowFormat, 0, 0, 0}},
		{"pending, nothing", "more elements", pending, []byte{rowFormat, 0, 0, 1, 1, 0, 0}},
		{"pending, flag", "unknown flags", pending, []byte{rowFormat, 0, 0, 1, 1, 2, 1, 1, 't', 0, 1, 0, 0, 0}},
		{"pending, order", "not in order", pending, []byte{rowFormat, 0, 0, 2, 2, 0, 1, 1, 't', 0, 1, 0, 0, 0, 1, 0, 1, 1, 't', 0, 1, 0, 1, 0}},
		{"pending, epoch", "too large", pending, []byte{rowFormat, 0, 0xff, 0xff, 0xff, 0x7f, 1, 1, 0, 1, 1, 't', 0, 1, 0, 0, 0}},
	} {
		m := New(&Env{}, "group")
		err := m.ApplyRow(tc.key, tc.value)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
		if hardState(m) != "" {
			t.Errorf("%s: refused but applied", tc.name)
		}
	}
	if err := New(&Env{}, "group").ApplyRow(key, value); err != nil {
		t.Errorf("the good row: %v", err)
	}
}

// Whatever bytes come as a row, restoring does not panic, and what it restored
// gives rows that restore the same.
func FuzzApplyRow(f *testing.F) {
	for _, r := range rows(goldenMachine(f)) {
		f.Add(r.Key, r.Value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		id, err := RowGroup(key)
		m := New(&Env{}, id)
		if applyErr := m.ApplyRow(key, value); applyErr != nil {
			if hardState(m) != "" {
				t.Fatal("refused but applied")
			}
			return
		}
		if err != nil {
			t.Fatalf("applied a row whose group is not known: %v", err)
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		if m.pend != nil {
			for _, x := range m.pend.txns {
				m.pend.touch(x)
			}
		}
		for _, topic := range m.off.topics {
			m.off.touch(topic)
		}
		m.snapDirty = m.snap != nil
		again := New(&Env{}, id)
		for _, r := range rows(m) {
			if err := again.ApplyRow(r.Key, r.Value); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := hardState(m), hardState(again); a != b {
			t.Fatalf("restored\n%s\nwas\n%s", b, a)
		}
	})
}
