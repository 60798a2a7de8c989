package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// manyOffsets is how many offsets the benchmarks of large requests go through.
const manyOffsets = 10_000

// offsetOrders are orders in which a request may name many partitions, or topics.
var offsetOrders = []struct {
	name  string
	order func(n int) []int32
}{
	{"ascending", ascending},
	{"descending", func(n int) []int32 {
		all := ascending(n)
		slices.Reverse(all)
		return all
	}},
	{"shuffled", func(n int) []int32 {
		all := ascending(n)
		rng := rand.New(rand.NewPCG(1, 2))
		rng.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all
	}},
}

func ascending(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// wideCommit commits partitions of one topic, tallCommit one partition of each of
// many topics.
func wideCommit(partitions []int32) *Commit {
	t := CommitTopic{Name: "t", Partitions: make([]CommitPartition, len(partitions))}
	for i, p := range partitions {
		t.Partitions[i] = CommitPartition{Partition: p, Offset: int64(p), LeaderEpoch: -1}
	}
	return &Commit{Head: Head{Req: 1}, Generation: -1, Retention: -1, Topics: []CommitTopic{t}}
}

func tallCommit(topics []int32) *Commit {
	ev := &Commit{Head: Head{Req: 1}, Generation: -1, Retention: -1}
	for _, n := range topics {
		ev.Topics = append(ev.Topics, CommitTopic{Name: fmt.Sprintf("t%06d", n), Partitions: make([]CommitPartition, 1)})
	}
	return ev
}

func wideDelete(partitions []int32) *DeleteOffsets {
	return &DeleteOffsets{Head: Head{Req: 1}, Topics: []DeleteOffsetsTopic{{Name: "t", Partitions: partitions}}}
}

func tallDelete(topics []int32) *DeleteOffsets {
	ev := &DeleteOffsets{Head: Head{Req: 1}}
	for _, n := range topics {
		ev.Topics = append(ev.Topics, DeleteOffsetsTopic{Name: fmt.Sprintf("t%06d", n), Partitions: []int32{0}})
	}
	return ev
}

// BenchmarkManyOffsets is what one request about 10,000 offsets takes, as partitions
// of one topic or as topics of one partition. No order should be much worse than
// another, and none quadratic.
func BenchmarkManyOffsets(b *testing.B) {
	all := ascending(manyOffsets)
	for _, o := range offsetOrders {
		named := o.order(manyOffsets)
		half := slices.DeleteFunc(slices.Clone(named), func(p int32) bool { return p >= manyOffsets/2 })
		rest := slices.DeleteFunc(slices.Clone(named), func(p int32) bool { return p < manyOffsets/2 })
		for _, k := range []struct {
			name          string
			before, event Event
		}{
			{"commit-new", nil, wideCommit(named)},
			{"commit-known", wideCommit(all), wideCommit(named)},
			{"commit-in-front", wideCommit(rest), wideCommit(half)},
			{"commit-topics", nil, tallCommit(named)},
			{"delete", wideCommit(all), wideDelete(named)},
			{"delete-half", wideCommit(all), wideDelete(half)},
			{"delete-topics", tallCommit(all), tallDelete(named)},
			{"fetch", wideCommit(all), &Fetch{Head: Head{Req: 1}, Topics: []FetchTopic{{Name: "t", Partitions: named}}}},
			{"topic-deleted", wideCommit(all), &TopicDeleted{Head: Head{Req: 1}, Name: "t"}},
			{"expiry", wideCommit(all), &ExpireOffsets{Head: Head{Req: 1, Wall: 1 << 50}}},
			{"delete-group", wideCommit(all), &DeleteGroup{Head: Head{Req: 1}}},
		} {
			b.Run(k.name+"/"+o.name, func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					m := New(&Env{Config: Config{MaxMetadata: 4096}}, "g")
					if k.before != nil {
						m.Step(0, k.before)
					}
					b.StartTimer()
					m.Step(0, k.event)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*manyOffsets), "ns/offset")
			})
		}
	}
}

// longRecord names up to 10,000 offsets, in any order and some more than once.
func longRecord(r *rand.Rand) Record {
	rec := Record{Kind: RecordOffsets}
	if r.IntN(3) == 0 {
		rec.Kind = RecordOffsetsDeleted
	}
	spread := 1 + r.IntN(100)
	for range 1 + r.IntN(1+r.IntN(100)) {
		t := OffsetsTopic{Name: fmt.Sprintf("t%d", r.IntN(spread)), ID: TopicID{byte(r.IntN(3))}}
		for range r.IntN(1 + r.IntN(100)) {
			t.Partitions = append(t.Partitions, OffsetsPartition{Partition: r.Int32N(int32(spread)), Offset: r.Int64(), Expire: -1})
		}
		rec.Offsets = append(rec.Offsets, t)
	}
	return rec
}

// Long records do what they would do partition by partition.
func TestManyOffsetsMatchModel(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 0))
		m, want := New(&Env{}, "g"), model{}
		for step := range 30 {
			rec := longRecord(r)
			m.Apply(&rec)
			want.apply(&rec)
			if step%10 == 9 {
				m.Step(0, &Checkpoint{}) // topics without offsets go
			}
			if err := m.Check(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if got := hardState(m); got != want.String() {
				t.Fatalf("seed %d, step %d:\n%s\nwant\n%s", seed, step, got, want)
			}
		}
	}
}
