package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// crashes returns what may be left of fs after a power loss: exactly what was
// synced, and some of the rest.
func crashes(fs *vfs.MemFS, seed uint64) map[string]*vfs.MemFS {
	rng := rand.New(rand.NewPCG(seed, 1))
	return map[string]*vfs.MemFS{
		"synced only": fs.CrashClone(vfs.CrashCloneCfg{}),
		"half":        fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng}),
		"most":        fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 90, RNG: rng}),
	}
}

// failFrom fails every write operation from the n-th on, as a dying disk does.
type failFrom struct{ left atomic.Int64 }

func (f *failFrom) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose && f.left.Add(-1) < 0 {
		return errorfs.ErrInjected
	}
	return nil
}

func (f *failFrom) String() string { return "failFrom" }

// TestBootstrapCrash is requirement S0.11: the first start is cut off after every
// single operation on the disk; the next start completes it.
func TestBootstrapCrash(t *testing.T) {
	var ops int64
	{
		var count failFrom
		count.left.Store(1 << 40)
		mustClose(t, mustOpen(t, memOptions(errorfs.Wrap(vfs.NewCrashableMem(), &count))))
		ops = 1<<40 - count.left.Load()
	}
	opened := 0
	for n := range ops {
		fs := vfs.NewCrashableMem()
		var fail failFrom
		fail.left.Store(n)
		id := ""
		s, err := Open(memOptions(errorfs.Wrap(fs, &fail)))
		if err == nil {
			opened++
			id = s.Info().ClusterID
		}
		for what, crashed := range crashes(fs, uint64(n)) {
			again, err := Open(memOptions(crashed))
			if err != nil {
				t.Fatalf("crash after %d operations, %s: %v", n, what, err)
			}
			if id != "" && again.Info().ClusterID != id {
				t.Errorf("crash after %d operations, %s: the cluster id changed", n, what)
			}
			if err := put(again.Groups(), "k", "v"); err != nil {
				t.Error(err)
			}
			mustClose(t, again)
			final := mustOpen(t, memOptions(crashed))
			if final.Info() != again.Info() || get(t, final.Groups(), "k") != "v" {
				t.Errorf("crash after %d operations, %s: %+v, then %+v", n, what, again.Info(), final.Info())
			}
			mustClose(t, final)
		}
		if s != nil {
			_ = s.Close()
		}
	}
	t.Logf("%d operations; Open had succeeded after %d of them", ops, ops-int64(opened))
}

// TestCommitCrash crashes after every acknowledged commit and while unsynced ops
// are about: what was acknowledged is there, and no op is there in part.
func TestCommitCrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := mustOpen(t, memOptions(fs))
	defer mustClose(t, s)
	const keys = 5
	for round := range 60 {
		value := fmt.Sprint(round)
		// An unsynced op goes before; both may be in one batch or in two.
		s.Groups().Committer.Submit(Op{Write: func(b *Batch) {
			for k := range keys {
				b.Set(fmt.Appendf(nil, "u%d", k), []byte(value))
			}
		}})
		done := make(chan error, 1)
		s.Groups().Committer.Submit(Op{Sync: true, Done: func(err error) { done <- err }, Write: func(b *Batch) {
			for k := range keys {
				b.Set(fmt.Appendf(nil, "s%d", k), []byte(value))
			}
		}})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		// One more that nobody waited for.
		s.Groups().Committer.Submit(Op{Write: func(b *Batch) {
			for k := range keys {
				b.Set(fmt.Appendf(nil, "u%d", k), []byte(value+"+"))
			}
		}})
		for what, crashed := range crashes(fs, uint64(round)) {
			again := mustOpen(t, memOptions(crashed))
			u := get(t, again.Groups(), "u0")
			if u != value && u != value+"+" {
				t.Errorf("round %d, %s: the op before the sync has %q", round, what, u)
			}
			for k := range keys {
				if got := get(t, again.Groups(), fmt.Sprintf("s%d", k)); got != value {
					t.Errorf("round %d, %s: s%d = %q", round, what, k, got)
				}
				if got := get(t, again.Groups(), fmt.Sprintf("u%d", k)); got != u {
					t.Errorf("round %d, %s: u%d = %q, u0 = %q", round, what, k, got, u)
				}
			}
			mustClose(t, again)
		}
	}
}

// TestNoSyncPowerFailure: with NoSync a power failure takes back the last ops only,
// over the ends of write-ahead logs too, and what is left can be opened.
func TestNoSyncPowerFailure(t *testing.T) {
	fs := vfs.NewCrashableMem()
	o := memOptions(fs)
	o.NoSync = true
	s := mustOpen(t, o)
	defer mustClose(t, s)
	value := bytes.Repeat([]byte("v"), 1<<20)
	for round := range 40 { // memTableBytes twice over
		done := make(chan error, 1)
		s.Groups().Committer.Submit(Op{Sync: true, Done: func(err error) { done <- err }, Write: func(b *Batch) {
			b.Set(fmt.Appendf(nil, "k%03d", round), value)
		}})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if round%10 != 9 {
			continue
		}
		for what, crashed := range crashes(fs, uint64(round)) {
			again := mustOpen(t, memOptions(crashed))
			missing := -1
			for k := range round + 1 {
				switch there := get(t, again.Groups(), fmt.Sprintf("k%03d", k)) != ""; {
				case !there && missing < 0:
					missing = k
				case there && missing >= 0:
					t.Errorf("round %d, %s: op %d is there, op %d is not", round, what, k, missing)
				}
			}
			mustClose(t, again)
		}
	}
}

// TestNoSyncLosesASecond: with NoSync everything is synced a second after it was
// acknowledged at the latest, be it the last for long, and at most once a second.
func TestNoSyncLosesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewCrashableMem()
		var syncs atomic.Int64
		db := openPebble(t, errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if isSync(op) && isWAL(op) {
				syncs.Add(1)
			}
			return nil
		})), "data/groups", NewFailure())
		syncs.Store(0)
		c := NewCommitter(db, CommitterOptions{NoSync: true})
		defer func() {
			if err := errors.Join(c.Close(), db.Close()); err != nil {
				t.Error(err)
			}
		}()
		written := 0
		check := func(want int) {
			t.Helper()
			after := openPebble(t, fs.CrashClone(vfs.CrashCloneCfg{}), "data/groups", NewFailure())
			defer after.Close()
			for k := range want {
				if _, closer, err := after.Get(fmt.Appendf(nil, "%03d", k)); err != nil {
					t.Fatalf("write %d of %d: %v", k, written, err)
				} else {
					closer.Close()
				}
			}
		}
		for range 30 {
			done := make(chan error, 1)
			c.Submit(Op{Sync: true, Done: func(err error) { done <- err }, Write: func(b *Batch) {
				b.Set(fmt.Appendf(nil, "%03d", written), nil)
			}})
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			written++
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			check(written - 10)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		check(written)
		time.Sleep(time.Hour)
		if n := syncs.Load(); n < 3 || n > 4 {
			t.Errorf("%d syncs in 4 seconds and an idle hour, want 3 or 4", n)
		}
	})
}
