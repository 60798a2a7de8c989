package topics

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// entry is a record of the model.
type entry struct {
	offset int64
	key    string
	value  string
	null   bool
}

// entries reads all records of a partition.
func (e *env) entries(p *Partition) (all []entry) {
	e.t.Helper()
	err := p.walk(p.Start(), p.End(), func(h *header, batch []byte) bool {
		err := e.log.rawRecords(h, batch, func(r *rawRecord) bool {
			all = append(all, entry{offset: r.offset, key: string(r.key), value: string(r.rest), null: r.tombstone})
			return true
		})
		if err != nil {
			e.t.Fatal(err)
		}
		copyOf := append(make([]byte, 8), batch[8:]...)
		if string(seal(append([]byte(nil), copyOf...))) != string(copyOf) {
			e.t.Fatalf("the batch at %d has a wrong checksum or length", h.baseOffset)
		}
		return true
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return all
}

// TestCompactionAgainstModel compacts random logs of keys, with crashes, several
// passes, every codec and tombstones.
func TestCompactionAgainstModel(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		e := newEnv(t)
		e.stopCleaning()
		e.create("t", 1, Config{"cleanup.policy", "compact"}, Config{"min.cleanable.dirty.ratio", "0"}, Config{"delete.retention.ms", "1000"})
		var all []entry
		for step := range 12 {
			p := e.log.Topic("t").Partition(0)
			for range 1 + rng.IntN(4) {
				all = e.randomBatch(rng, p, all)
			}
			e.log.compactKeysMax = 1 + rng.IntN(8)
			if err := e.log.compact(p); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if rng.IntN(2) == 0 {
				e.crash(rng.IntN(101), rng)
				e.stopCleaning()
				p = e.log.Topic("t").Partition(0)
			}
			e.checkCompacted(fmt.Sprintf("seed %d, step %d", seed, step), p, all)
			e.nowMs += int64(rng.IntN(800))
		}
		// All tombstones are old, and something new makes the log dirty.
		p := e.log.Topic("t").Partition(0)
		for range 3 {
			e.nowMs += 2000
			e.mustAppend(p, testBatch{records: []testRecord{{timestamp: testTime, key: []byte("end"), value: []byte("x")}}}.encode())
			if err := e.log.compact(p); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[string]bool{}
		for _, r := range e.entries(p) {
			if r.null || seen[r.key] {
				t.Fatalf("seed %d: at %d is %+v, a tombstone or superseded", seed, r.offset, r)
			}
			seen[r.key] = true
		}
		e.checkCompacted(fmt.Sprint("seed ", seed), p, append(all, entry{offset: p.End() - 1, key: "end"}))
	}
}

// randomBatch appends a batch of some keys, a fifth of them tombstones.
func (e *env) randomBatch(rng *rand.Rand, p *Partition, all []entry) []entry {
	var b testBatch
	base := p.End()
	for i := range 1 + rng.IntN(4) {
		r := testRecord{timestamp: testTime + int64(rng.IntN(100)), key: []byte{'a' + byte(rng.IntN(6))}}
		if rng.IntN(5) > 0 {
			r.value = make([]byte, rng.IntN(3)) // empty is not null
		}
		b.records = append(b.records, r)
		all = append(all, entry{offset: base + int64(i), key: string(r.key), null: r.value == nil})
	}
	if codec := int16(rng.IntN(5)); codec != codecNone {
		b.codec = codec
		b.compress = func(body []byte) []byte {
			out, err := compressed(codec, body)
			if err != nil {
				e.t.Fatal(err)
			}
			return out
		}
	}
	e.mustAppend(p, b.encode())
	return all
}

// checkCompacted: the last record of each key is there, unless it is a tombstone;
// what is there was appended at that offset.
func (e *env) checkCompacted(what string, p *Partition, all []entry) {
	e.t.Helper()
	last, at := map[string]entry{}, map[int64]entry{}
	for _, r := range all {
		last[r.key], at[r.offset] = r, r
	}
	got := map[string]entry{}
	previous := int64(-1)
	there := map[int64]bool{}
	for _, r := range e.entries(p) {
		if want := at[r.offset]; r.offset <= previous || want.key != r.key || want.null != r.null {
			e.t.Fatalf("%s: at %d behind %d is %+v, want %+v", what, r.offset, previous, r, want)
		}
		previous, got[r.key], there[r.offset] = r.offset, r, true
	}
	for key, want := range last {
		r, ok := got[key]
		if ok && r.offset != want.offset || !ok && !want.null {
			e.t.Fatalf("%s: the last of %s is %+v (%t), want %+v", what, key, r, ok, want)
		}
	}
	if p.End() < int64(len(all)) {
		e.t.Fatalf("%s: the log ends at %d", what, p.End())
	}
}

// keyed is a batch of these keys, each with a value; a key behind a dash is a
// tombstone.
func keyed(timestamp int64, keys ...string) testBatch {
	var b testBatch
	for _, k := range keys {
		r := testRecord{timestamp: timestamp, key: []byte(k), value: []byte("v")}
		if k[0] == '-' {
			r.key, r.value = []byte(k[1:]), nil
		}
		b.records = append(b.records, r)
	}
	return b
}

// left compacts and returns the offsets that are left.
func (e *env) left(p *Partition) string {
	e.t.Helper()
	if err := e.log.compact(p); err != nil {
		e.t.Fatal(err)
	}
	var offsets []int64
	for _, r := range e.entries(p) {
		offsets = append(offsets, r.offset)
	}
	return fmt.Sprint(offsets)
}

func TestCompactionWaits(t *testing.T) {
	e := newEnv(t)
	e.stopCleaning()
	check := func(what string, p *Partition, want string) {
		t.Helper()
		if got := e.left(p); got != want {
			t.Errorf("%s: %s is left, want %s", what, got, want)
		}
	}
	p := e.create("ratio", 1, Config{"cleanup.policy", "compact"}).Partition(0)
	e.mustAppend(p, keyed(testTime, "a", "a").encode())
	e.mustAppend(p, keyed(testTime, "b", "c").encode())
	check("all is dirty", p, "[1 2 3]")
	e.mustAppend(p, keyed(testTime, "b").encode())
	check("too little is dirty", p, "[1 2 3 4]")

	p = e.create("lag", 1, Config{"cleanup.policy", "compact"}, Config{"min.compaction.lag.ms", "1000"}).Partition(0)
	e.mustAppend(p, keyed(testTime-2000, "a", "a").encode())
	e.mustAppend(p, keyed(testTime-500, "a", "a").encode())
	check("the second batch is too new", p, "[1 2 3]")

	p = e.create("max", 1, Config{"cleanup.policy", "compact"}, Config{"min.cleanable.dirty.ratio", "1"}, Config{"max.compaction.lag.ms", "1000"}).Partition(0)
	e.mustAppend(p, keyed(testTime-1000, "a", "a").encode())
	check("nothing is too old", p, "[0 1]")
	e.nowMs++
	check("the first batch is too old", p, "[1]")

	e.nowMs = testTime
	p = e.create("tombs", 1, Config{"cleanup.policy", "compact"}, Config{"min.cleanable.dirty.ratio", "0"}, Config{"delete.retention.ms", "1000"}).Partition(0)
	e.mustAppend(p, keyed(testTime, "a", "-a", "b").encode())
	check("a tombstone", p, "[1 2]")
	for _, step := range []struct {
		after int64
		want  string
	}{{999, "[1 2 3]"}, {1000, "[2 4]"}} {
		e.nowMs = testTime + step.after
		e.mustAppend(p, keyed(testTime, "c").encode())
		check(fmt.Sprint("a tombstone after ", step.after), p, step.want)
	}
	if at, ts, err := p.FindMaxTime(); at != 2 || ts != testTime || err != nil {
		t.Errorf("the first of the largest times is %d at %d (%v)", ts, at, err)
	}
}

// TestCompactionOfTransactions: aborted records go, markers stay, and nothing at or
// behind the last stable offset is touched or supersedes anything.
func TestCompactionOfTransactions(t *testing.T) {
	e := newEnv(t)
	e.stopCleaning()
	p := e.create("t", 1, Config{"cleanup.policy", "compact"}, Config{"min.cleanable.dirty.ratio", "0"}).Partition(0)
	sequence := map[int64]int32{}
	send := func(producer int64, keys ...string) {
		b := keyed(testTime, keys...)
		b.producer, b.sequence, b.attributes = producer, sequence[producer], attrTransactional
		sequence[producer] += int32(len(keys))
		e.mustAppend(p, b.encode())
	}
	end := func(producer int64, commit bool) {
		m := []Marker{{Partition: p, ProducerID: producer, Commit: commit}}
		await(func(done func()) { e.log.WriteMarkers(m, func(error) { done() }) })
		if m[0].Refusal != nil {
			t.Fatal(m[0].Refusal)
		}
	}
	e.mustAppend(p, keyed(testTime, "a", "b").encode()) // 0, 1
	send(1, "a")                                        // 2
	end(1, false)                                       // 3
	send(1, "b")                                        // 4
	end(1, true)                                        // 5
	send(2, "a")                                        // 6, open
	e.mustAppend(p, keyed(testTime, "b").encode())      // 7
	if got := e.left(p); got != "[0 3 4 5 6 7]" {
		t.Errorf("with an open transaction %s is left", got)
	}
	end(2, true) // 8
	if got := e.left(p); got != "[3 5 6 7 8]" {
		t.Errorf("after its end %s is left", got)
	}
}

// TestCompactionBesideAppends appends while it runs over and over: all answers come,
// in order, and so they do when the topic is deleted meanwhile.
func TestCompactionBesideAppends(t *testing.T) {
	e := newEnv(t)
	e.stopCleaning()
	topic := e.create("t", 1, Config{"cleanup.policy", "compact"}, Config{"min.cleanable.dirty.ratio", "0"})
	p := topic.Partition(0)
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			if err := e.log.compact(p); err != nil {
				stopped <- err
				return
			}
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
		}
	}()
	for i := range int64(500) {
		if a := e.mustAppend(p, keyed(testTime, fmt.Sprint(i%7)).encode()); a.BaseOffset != i {
			t.Fatalf("record %d is at %d", i, a.BaseOffset)
		}
	}
	e.delete(topic)
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if n := e.rows(appendPartitionPrefix(nil, topic.ID, 0)); n != 0 {
		t.Errorf("%d rows of the deleted topic are left", n)
	}
}
