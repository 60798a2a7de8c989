package topics

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// deleteRecords cuts a partition and waits for it.
func (e *env) deleteRecords(p *Partition, offset int64) (start int64, r *Refusal) {
	e.t.Helper()
	await(func(done func()) {
		e.log.DeleteRecords(p, offset, func(n int64, refusal *Refusal, err error) {
			if err != nil {
				e.t.Error(err)
			}
			start, r = n, refusal
			done()
		})
	})
	return start, r
}

// stopCleaning ends cleanLoop, so that a test can do its work step by step.
func (e *env) stopCleaning() {
	close(e.log.closed)
	e.log.running.Wait()
	e.log.closed = make(chan struct{})
}

// retained does one look of the retention and returns the start that it leads to.
func (e *env) retained(p *Partition) int64 {
	e.t.Helper()
	for _, f := range []func(*Partition) error{e.log.retain, func(*Partition) error { e.barrier(); return nil }, e.log.sweep} {
		if err := f(p); err != nil {
			e.t.Fatal(err)
		}
	}
	return p.Start()
}

// barrier waits for all that was submitted.
func (e *env) barrier() { await(func(done func()) { e.log.AwaitDurable(func(error) { done() }) }) }

// at is a batch with one record of this time and size of value.
func at(timestamp int64, size int) []byte {
	return testBatch{records: []testRecord{{timestamp: timestamp, key: []byte("k"), value: make([]byte, size)}}}.encode()
}

func TestRetentionByTime(t *testing.T) {
	e := newEnv(t)
	e.stopCleaning()
	p := e.create("t", 1, Config{"retention.ms", "1000"}).Partition(0)
	for _, timestamp := range []int64{-1, testTime - 500, -1, testTime - 100, testTime - 700, testTime} {
		e.mustAppend(p, at(timestamp, 1))
	}
	for _, step := range []struct {
		now, want int64
	}{
		{testTime, 0},
		{testTime + 500, 0}, // not older than, but as old as
		{testTime + 501, 2},
		{testTime + 900, 2}, // the older record behind a newer one waits for that
		{testTime + 901, 5},
		{testTime + 1001, 6}, // nothing is kept for its own sake
	} {
		e.nowMs = step.now
		if got := e.retained(p); got != step.want {
			t.Errorf("at %d the log begins at %d, want %d", step.now-testTime, got, step.want)
		}
	}
	if n := e.rows(appendDataPrefix(nil, p.Topic.ID, 0, dataBatch)); n != 0 {
		t.Errorf("%d batches are left", n)
	}
	if a := e.mustAppend(p, at(e.nowMs, 1)); a.BaseOffset != 6 || a.LogStart != 6 {
		t.Errorf("the next record is at %d, the start at %d", a.BaseOffset, a.LogStart)
	}
	e.close()
	e.open()
	if p = e.log.Topic("t").Partition(0); p.Start() != 6 || p.End() != 7 {
		t.Errorf("after a restart it goes from %d to %d", p.Start(), p.End())
	}
}

func TestRetentionByBytes(t *testing.T) {
	size := int64(len(at(testTime, 100)))
	for _, c := range []struct {
		limit, want int64
	}{{-1, 0}, {10 * size, 0}, {10*size - 1, 0}, {9 * size, 1}, {9*size - 1, 1}, {size, 9}, {size - 1, 9}, {0, 10}} {
		e := newEnv(t)
		e.stopCleaning()
		p := e.create("t", 1, Config{"retention.bytes", fmt.Sprint(c.limit)}, Config{"retention.ms", "-1"}).Partition(0)
		for range 5 {
			e.mustAppend(p, at(testTime, 100))
		}
		e.retained(p)
		for range 5 {
			e.mustAppend(p, at(testTime, 100))
		}
		e.retained(p)
		if got := e.retained(p); got != c.want {
			t.Errorf("with %d bytes the log begins at %d, want %d", c.limit, got, c.want)
		}
	}
}

// TestRetentionLeavesCompactedTopics: without delete in the policy nothing is too old.
func TestRetentionLeavesCompactedTopics(t *testing.T) {
	e := newEnv(t)
	e.stopCleaning()
	for policy, want := range map[string]int64{"compact": 0, "delete": 1, "compact,delete": 1, "delete,compact": 1} {
		p := e.create(strings.ReplaceAll(policy, ",", "-"), 1, Config{"cleanup.policy", policy}, Config{"retention.ms", "1"}).Partition(0)
		e.mustAppend(p, at(testTime-2, 1))
		if got := e.retained(p); got != want {
			t.Errorf("with %s the log begins at %d, want %d", policy, got, want)
		}
	}
}

// TestDeletedRecordsAgainstModel deletes and appends at random, with a crash after
// each step, sweeps or not, and looks up every time.
func TestDeletedRecordsAgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		e := newEnv(t)
		e.stopCleaning()
		e.create("t", 1, Config{"retention.ms", "-1"})
		var times []int64
		start := int64(0)
		for range 12 {
			p := e.log.Topic("t").Partition(0)
			if rng.IntN(3) > 0 {
				var b testBatch
				for range 1 + rng.IntN(4) {
					b.records = append(b.records, testRecord{timestamp: int64(rng.IntN(30))})
				}
				e.mustAppend(p, b.encode())
				for _, r := range b.records {
					times = append(times, r.timestamp)
				}
			} else {
				start += rng.Int64N(p.End() - start + 1)
				if got, r := e.deleteRecords(p, start); got != start || r != nil {
					t.Fatalf("seed %d: cut at %d: %d %+v", seed, start, got, r)
				}
			}
			if rng.IntN(2) == 0 {
				if err := e.log.sweep(p); err != nil {
					t.Fatal(err)
				}
			}
			if rng.IntN(2) == 0 {
				e.crash(rng.IntN(101), rng)
				e.stopCleaning()
				p = e.log.Topic("t").Partition(0)
			}
			e.checkTimes(seed, p, start, times)
		}
	}
}

// checkTimes compares a partition with the times of its records, of which those
// below start are deleted.
func (e *env) checkTimes(seed uint64, p *Partition, start int64, times []int64) {
	e.t.Helper()
	if p.Start() != start || p.End() != int64(len(times)) {
		e.t.Fatalf("seed %d: from %d to %d, want %d to %d", seed, p.Start(), p.End(), start, len(times))
	}
	first := func(ts int64) int64 {
		for i := start; i < int64(len(times)); i++ {
			if times[i] >= ts {
				return i
			}
		}
		return -1
	}
	largest := int64(-1)
	for _, ts := range times[start:] {
		largest = max(largest, ts)
	}
	for ts := range int64(32) {
		if offset, _, err := p.FindTime(ts); offset != first(ts) || err != nil {
			e.t.Fatalf("seed %d: time %d is at %d (%v), want %d, start %d", seed, ts, offset, err, first(ts), start)
		}
	}
	if offset, ts, err := p.FindMaxTime(); offset != first(largest) || ts != largest || err != nil {
		e.t.Fatalf("seed %d: the largest time is %d at %d (%v), want %d at %d", seed, ts, offset, err, largest, first(largest))
	}
	if start < int64(len(times)) {
		if h := decodeHeader(e.read(p, start, 1)); h.baseOffset > start || h.lastOffset() < start {
			e.t.Fatalf("seed %d: at the start %d is the batch from %d to %d", seed, start, h.baseOffset, h.lastOffset())
		}
	}
}
