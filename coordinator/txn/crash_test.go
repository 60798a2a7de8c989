package txn

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
)

// TestCrashAllOrNothing runs transactions that write to two partitions and two groups,
// and goes on after a crash from moments that come at any time, also between the
// writes of an end. Records and offsets always agree, an acknowledged commit is there,
// and an aborted transaction is not.
func TestCrashAllOrNothing(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			w := newWorld(t)
			w.create("in", 1)
			w.create("out", 2)
			acknowledged := 0
			for range 8 {
				acknowledged = w.transactUntilCrash(rng, acknowledged)
			}
		})
	}
}

// transactUntilCrash takes a copy of the disk at a random moment of a transaction,
// goes on from it, and returns how many transactions have committed.
func (w *world) transactUntilCrash(rng *rand.Rand, committed int) int {
	w.t.Helper()
	o := w.init("copy", NoProducer)
	for o.code == kerr.ConcurrentTransactions.Code {
		o = w.init("copy", NoProducer)
	}
	if o.code != 0 {
		w.t.Fatalf("init: %d", o.code)
	}
	clones := make(chan *vfs.MemFS, 1)
	seed, spins := rng.Uint64(), rng.IntN(3000)
	commit, v2, percent := rng.IntN(4) > 0, rng.IntN(2) == 0, rng.IntN(3)*50
	begun := make(chan struct{})
	go func() {
		<-begun
		for range spins { // let more or less of the end happen
			runtime.Gosched()
		}
		clones <- w.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 3))})
	}()
	next := int64(committed + 1)
	for i := range int32(2) {
		if code := w.produce("copy", o.p, 0, "out", i); code != topics.None {
			w.t.Fatalf("produce: %d", code)
		}
	}
	for _, g := range []string{"g", "h"} {
		if code := w.commit("copy", o.p, g, "in", next); code != 0 {
			w.t.Fatalf("commit offsets: %d", code)
		}
	}
	close(begun)
	ended := w.end("copy", o.p, commit, v2)
	if ended.code != 0 {
		w.t.Fatalf("end: %d", ended.code)
	}
	if rng.IntN(4) == 0 { // not in the middle, but right after the answer
		<-clones
		clones <- w.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
		if commit {
			defer func(before int) {
				if got := w.records("out", 0); got != before+1 {
					w.t.Errorf("an acknowledged commit is gone: %d records, want %d", got, before+1)
				}
			}(committed)
		}
	}
	w.restart(<-clones)
	for o = w.init("copy", NoProducer); o.code == kerr.ConcurrentTransactions.Code; { // what was open is aborted
		o = w.init("copy", NoProducer)
	}
	a, b, g, h := w.records("out", 0), w.records("out", 1), w.committed("g", "in"), w.committed("h", "in")
	if a != b || int64(a) != max(g, 0) || g != h || a != committed && (a != committed+1 || !commit) {
		w.t.Fatalf("%d and %d records, offsets %d and %d, after %d transactions and one with commit %t", a, b, g, h, committed, commit)
	}
	return a
}

// TestCrashKeepsOpenTransactions: one that is open goes on after a restart, is not
// shown, and times out.
func TestCrashKeepsOpenTransactions(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(1, 2))
	w.create("in", 1)
	w.create("out", 1)
	o := w.init("open", NoProducer)
	w.produce("open", o.p, 0, "out", 0)
	w.commit("open", o.p, "g", "in", 5)
	w.crash(0, rng)
	p := w.log.Topic("out").Partition(0)
	if p.Stable() != 0 || p.End() != 1 {
		t.Errorf("stable %d, end %d", p.Stable(), p.End())
	}
	if code := w.produce("open", o.p, 1, "out", 0); code != topics.None {
		t.Errorf("it does not go on: %d", code)
	}
	w.now = w.now.Add(61e9)
	w.txns.AbortOverdue()
	if got := w.committed("g", "in"); got != -1 {
		t.Errorf("an offset of it is committed: %d", got)
	}
	if got := w.records("out", 0); got != 0 {
		t.Errorf("%d of its records are committed", got)
	}
	if code := w.produce("open", o.p, 2, "out", 0); code != topics.InvalidProducerEpoch {
		t.Errorf("its producer is not fenced: %d", code)
	}
	w.crash(0, rng)
	d, _ := w.txns.Describe("open")
	for d.State == topics.TransactionPrepareAbort { // the group is told again
		d, _ = w.txns.Describe("open")
	}
	if d.State != topics.TransactionCompleteAbort || d.Epoch != o.p.Epoch+1 {
		t.Errorf("after another crash: %+v", d)
	}
	if p := w.log.Topic("out").Partition(0); p.Stable() != p.End() {
		t.Errorf("stable %d, end %d", p.Stable(), p.End())
	}
}

// TestEpochsRunOut: the last epoch is followed by a new producer id, whoever ends it.
func TestEpochsRunOut(t *testing.T) {
	w := newWorld(t)
	w.create("out", 1)
	o := w.init("long", NoProducer)
	tx := w.txns.find("long")
	tx.row.Epoch = 32766
	tx.mu.Unlock()
	o.p.Epoch = 32766
	if code := w.produce("long", o.p, 0, "out", 0); code != topics.None {
		t.Fatalf("produce: %d", code)
	}
	next := w.end("long", o.p, true, true)
	if next.code != 0 || next.p.ID == o.p.ID || next.p.Epoch != 0 {
		t.Fatalf("after the last epoch: %+v", next)
	}
	if again := w.end("long", o.p, true, true); again != next {
		t.Errorf("the same again: %+v, want %+v", again, next)
	}
	if other := w.end("long", o.p, false, true); other.code != kerr.InvalidTxnState.Code {
		t.Errorf("the other way: %+v", other)
	}
	if code := w.produce("long", o.p, 1, "out", 0); code != 49 {
		t.Errorf("the old id writes: %d", code)
	}
	if got := w.records("out", 0); got != 1 {
		t.Errorf("%d records", got)
	}
	w.crash(0, rand.New(rand.NewPCG(1, 2)))
	tx = w.txns.find("long")
	tx.row.Epoch = 32766
	tx.mu.Unlock()
	renewed := w.init("long", Producer{next.p.ID, 32766})
	if renewed.code != 0 || renewed.p.ID == next.p.ID || renewed.p.Epoch != 0 {
		t.Errorf("init after the last epoch: %+v", renewed)
	}
	if again := w.init("long", Producer{next.p.ID, 32766}); again != renewed {
		t.Errorf("the same again: %+v, want %+v", again, renewed)
	}
}

// TestIDsExpire: an id without a transaction is forgotten, one with stays.
func TestIDsExpire(t *testing.T) {
	w := newWorld(t)
	w.create("out", 1)
	w.init("quiet", NoProducer)
	o := w.init("busy", NoProducer)
	w.produce("busy", o.p, 0, "out", 0)
	w.now = w.now.Add(testConfig().IDExpiration)
	w.txns.ExpireIDs()
	for range 2 {
		if all := w.txns.List(); len(all) != 1 || all[0].ID != "busy" {
			t.Errorf("left are %+v", all)
		}
		w.init("other", NoProducer) // what is submitted before is durable with this
		w.now = w.now.Add(1)
		w.crash(0, rand.New(rand.NewPCG(1, 2)))
		w.now = w.now.Add(testConfig().IDExpiration)
		w.txns.ExpireIDs()
	}
}
