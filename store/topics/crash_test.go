package topics

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// crash continues on what the disk has after a power failure: everything that was
// synced, and of the rest as much as the percentage says.
func (e *env) crash(unsynced int, rng *rand.Rand) {
	e.t.Helper()
	clone := e.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rng})
	e.close()
	e.fs = clone
	e.open()
}

// kept is a batch that was acknowledged.
type kept struct {
	topic     string
	partition int32
	raw       []byte
	base      int64
	producer  int64
	sequence  int32
}

// TestCrashKeepsWhatWasAcknowledged crashes after every single append, and appends
// on what is left.
func TestCrashKeepsWhatWasAcknowledged(t *testing.T) {
	for _, percent := range []int{0, 50, 100} {
		t.Run(fmt.Sprint(percent), func(t *testing.T) {
			seed := uint64(percent + 1)
			rng := rand.New(rand.NewPCG(seed, 2))
			e := newEnv(t)
			e.create("a", 2)
			e.create("b", 1)
			var all []kept
			next := map[string]int32{}
			for i := range 30 {
				k := kept{topic: []string{"a", "b"}[rng.IntN(2)], producer: int64(1 + rng.IntN(2))}
				if k.topic == "a" {
					k.partition = rng.Int32N(2)
				}
				at := fmt.Sprint(k.topic, k.partition, k.producer)
				b := values(fmt.Sprint("v", i), "w")
				b.producer, b.sequence = k.producer, next[at]
				k.sequence, k.raw = b.sequence, b.encode()
				k.base = e.mustAppend(e.log.Topic(k.topic).Partition(k.partition), k.raw).BaseOffset
				next[at] += 2
				all = append(all, k)
				e.crash(percent, rng)
				e.checkKept(all)
			}
		})
	}
}

// checkKept reads back every batch, and repeats the last ones of each producer.
func (e *env) checkKept(all []kept) {
	e.t.Helper()
	newer := map[string]int{}
	for i := len(all) - 1; i >= 0; i-- {
		k := all[i]
		p := e.log.Topic(k.topic).Partition(k.partition)
		got := e.read(p, k.base, 1)
		h := decodeHeader(got)
		if h.baseOffset != k.base || !bytes.Equal(got[posCRC:], k.raw[posCRC:]) {
			e.t.Fatalf("the batch at %d of %s-%d is another one", k.base, k.topic, k.partition)
		}
		at := fmt.Sprint(k.topic, k.partition, k.producer)
		if newer[at]++; newer[at] > producerBatches {
			continue
		}
		end := p.End()
		if a := e.mustAppend(p, k.raw); a.BaseOffset != k.base || a.LogAppendTime != testTime || p.End() != end {
			e.t.Fatalf("repeating the batch at %d gave %d at %d, end %d and then %d", k.base, a.BaseOffset, a.LogAppendTime, end, p.End())
		}
	}
}

func TestCrashKeepsTopics(t *testing.T) {
	e := newEnv(t)
	rng := rand.New(rand.NewPCG(3, 4))
	id := e.create("kept", 3, Config{"retention.ms", "5"}).ID
	gone := e.create("gone", 1)
	e.mustAppend(gone.Partition(0), values("x").encode())
	e.delete(gone)
	e.grow(e.log.Topic("kept"), 5)
	e.crash(0, rng)
	topic := e.log.Topic("kept")
	if topic == nil || topic.ID != id || len(topic.Partitions()) != 5 || e.log.TopicByID(id) != topic {
		t.Fatalf("the topic came back as %+v", topic)
	}
	for _, v := range topic.Configs() {
		if v.FromTopic != (v.Name == "retention.ms") {
			t.Errorf("%s is set by the topic: %t", v.Name, v.FromTopic)
		}
	}
	if e.log.Topic("gone") != nil {
		t.Error("the deleted topic came back")
	}
	if n := e.rows(appendPartitionPrefix(nil, gone.ID, 0)[:topicPrefixSize]); n != 0 {
		t.Errorf("%d rows of the deleted topic are left", n)
	}
	if a := e.mustAppend(topic.Partition(4), values("y").encode()); a.BaseOffset != 0 {
		t.Errorf("the new partition begins at %d", a.BaseOffset)
	}
}

// TestProducerIDsAreNeverHandedOutTwice crashes again and again.
func TestProducerIDsAreNeverHandedOutTwice(t *testing.T) {
	e := newEnv(t)
	rng := rand.New(rand.NewPCG(5, 6))
	seen := map[int64]bool{}
	for range 5 {
		for range 700 {
			id := e.producerID()
			if seen[id] || id < 0 {
				t.Fatalf("id %d again", id)
			}
			seen[id] = true
		}
		e.crash(0, rng)
	}
}

func (e *env) producerID() (id int64) {
	e.t.Helper()
	await(func(done func()) {
		e.log.NewProducerID(func(n int64, err error) {
			if err != nil {
				e.t.Error(err)
			}
			id = n
			done()
		})
	})
	return id
}

func (e *env) delete(topic *Topic) (r *Refusal) {
	e.t.Helper()
	await(func(done func()) {
		e.log.Delete(topic, func(refusal *Refusal, err error) {
			if err != nil {
				e.t.Error(err)
			}
			r = refusal
			done()
		})
	})
	return r
}

func (e *env) grow(topic *Topic, n int32) (r *Refusal) {
	e.t.Helper()
	await(func(done func()) {
		e.log.Grow(topic, n, func(refusal *Refusal, err error) {
			if err != nil {
				e.t.Error(err)
			}
			r = refusal
			done()
		})
	})
	return r
}

// rows counts the keys that begin with prefix.
func (e *env) rows(prefix []byte) (n int) {
	e.t.Helper()
	it, err := e.db.NewIter(nil)
	if err != nil {
		e.t.Fatal(err)
	}
	for it.SeekGE(prefix); it.Valid() && bytes.HasPrefix(it.Key(), prefix); it.Next() {
		n++
	}
	if err := it.Close(); err != nil {
		e.t.Fatal(err)
	}
	return n
}

// TestProducerIDsWaitForTheirReservation: an id is told when the disk has it, also
// the second of a block.
func TestProducerIDsWaitForTheirReservation(t *testing.T) {
	e, gate := newGatedEnv(t)
	gate.shut()
	ids := make(chan int64, 2)
	for range 2 {
		e.log.NewProducerID(func(id int64, err error) {
			if err != nil {
				t.Error(err)
			}
			ids <- id
		})
	}
	if len(ids) > 0 {
		t.Error("told before the reservation is durable")
	}
	gate.open()
	if a, b := <-ids, <-ids; a == b {
		t.Errorf("%d twice", a)
	}
	e.log.NewProducerID(func(id int64, err error) { ids <- id })
	if len(ids) != 1 {
		t.Error("a durable reservation is waited for")
	}
}
