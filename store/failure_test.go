package store

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/goleak"
)

// faults makes operations fail while it is on.
type faults struct {
	on    atomic.Bool
	match func(op errorfs.Op) bool
}

func (f *faults) MaybeError(op errorfs.Op) error {
	if f.on.Load() && f.match(op) {
		return errorfs.ErrInjected
	}
	return nil
}

func (f *faults) String() string { return "faults" }

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

func isWAL(op errorfs.Op) bool {
	return strings.HasPrefix(op.Path, "data/groups/") && strings.HasSuffix(op.Path, ".log")
}

// TestFailedCommit: whatever goes wrong with the log, nobody is told that a write
// that is not durable is, nothing succeeds afterwards in either Pebble, Close
// returns, and a restart shows everything that was acknowledged.
func TestFailedCommit(t *testing.T) {
	for name, match := range map[string]func(errorfs.Op) bool{
		"write": func(op errorfs.Op) bool { return isWAL(op) && op.Kind == errorfs.OpFileWrite },
		"sync":  func(op errorfs.Op) bool { return isWAL(op) && isSync(op) },
		// Flushes in the background: the end of the manifest is the end of the store.
		"manifest": func(op errorfs.Op) bool {
			return strings.Contains(op.Path, "data/groups/MANIFEST") && isSync(op)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			f := &faults{match: match}
			s := mustOpen(t, memOptions(errorfs.Wrap(fs, f)))
			var acked, submitted atomic.Int64
			var wg sync.WaitGroup
			var failures atomic.Int64
			commit := func(db *DB) error {
				n := submitted.Add(1)
				err := put(db, fmt.Sprintf("%s-%d", db.name, n), "v")
				if err == nil && f.on.Load() && db == s.groups && name != "manifest" {
					t.Errorf("op %d was acknowledged by a broken disk", n)
				}
				return err
			}
			var mu sync.Mutex
			var keys []string
			for range 8 {
				wg.Go(func() {
					for i := range 50 {
						key := fmt.Sprintf("k%d-%d", submitted.Add(1), i)
						if err := put(s.groups, key, "v"); err != nil {
							failures.Add(1)
							return
						}
						mu.Lock()
						keys = append(keys, key)
						mu.Unlock()
						if acked.Add(1) == 100 {
							f.on.Store(true)
						}
					}
				})
			}
			wg.Wait()
			f.on.Store(true)
			if name == "manifest" {
				if _, err := s.groups.Pebble.AsyncFlush(); err != nil {
					t.Error(err)
				}
				<-s.Failed()
			}
			for _, db := range []*DB{s.groups, s.topics} {
				if err := commit(db); err == nil || !errors.Is(err, s.Err()) {
					t.Errorf("%s after the failure: %v, want %v", db.name, err, s.Err())
				}
			}
			f.on.Store(false)
			if err := commit(s.groups); err == nil {
				t.Error("a commit succeeded after the failure")
			}
			if s.Err() == nil || strings.Contains(s.Err().Error(), "\n") {
				t.Errorf("error of the store, wanted as one line: %v", s.Err())
			}
			crashed := fs.CrashClone(vfs.CrashCloneCfg{})
			if err := s.Close(); !errors.Is(err, s.Err()) {
				t.Errorf("Close: %v", err)
			}
			again := mustOpen(t, memOptions(crashed))
			defer mustClose(t, again)
			for _, key := range keys {
				if get(t, again.Groups(), key) != "v" {
					t.Errorf("%s was acknowledged and is lost", key)
				}
			}
		})
	}
}

// TestFatalf: Pebble may give up on a goroutine of its own.
func TestFatalf(t *testing.T) {
	s := mustOpen(t, memOptions(vfs.NewMem()))
	l := fatalLogger{name: "groups", failure: s.failure}
	returned := make(chan bool, 1)
	go func() {
		defer func() { returned <- false }()
		l.Fatalf("disk %s", "gone")
		returned <- true
	}()
	if <-returned {
		t.Error("Fatalf returned")
	}
	<-s.Failed()
	if got := s.Err().Error(); got != "groups: disk gone" {
		t.Errorf("error %q", got)
	}
	if err := put(s.Topics(), "k", "v"); !errors.Is(err, s.Err()) {
		t.Errorf("commit afterwards: %v", err)
	}
	if err := s.Close(); !errors.Is(err, s.Err()) {
		t.Errorf("Close: %v", err)
	}
}

// blockedFS holds back syncs of write-ahead logs.
type blockedFS struct {
	vfs.FS
	gate chan struct{}
}

type blockedFile struct {
	vfs.File
	gate chan struct{}
}

func (f blockedFile) Sync() error     { <-f.gate; return f.File.Sync() }
func (f blockedFile) SyncData() error { <-f.gate; return f.File.SyncData() }

func (fs blockedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, ".log") {
		f = blockedFile{f, fs.gate}
	}
	return f, err
}

// TestBackpressure: with a disk that hangs, Submit takes one batch that is on its
// way and one that gathers, and then blocks; Done waits; all come through in order.
func TestBackpressure(t *testing.T) {
	for name, value := range map[string][]byte{"ops": {1}, "bytes": make([]byte, 1<<20)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				db := openPebble(t, blockedFS{vfs.NewMem(), gate}, "db", NewFailure())
				c := NewCommitter(db, CommitterOptions{})
				total := 3*CommitOpsMax + 7
				most := 2 * CommitOpsMax
				if len(value) > 1 {
					total, most = 40, 2*CommitBytesMax/len(value)+1
				}
				var submitted, done atomic.Int64
				go func() {
					for i := range total {
						c.Submit(Op{
							Sync:  true,
							Write: func(b *Batch) { b.Set(fmt.Append(nil, i), value) },
							Done: func(err error) {
								if err != nil || done.Add(1) != int64(i+1) {
									t.Errorf("op %d was done as number %d: %v", i, done.Load(), err)
								}
							},
						})
						submitted.Add(1)
					}
				}()
				synctest.Wait()
				if n := submitted.Load(); n > int64(most) || n < 2 {
					t.Errorf("%d ops were taken while the disk hangs, want at most %d", n, most)
				}
				if done.Load() != 0 {
					t.Errorf("%d ops were done while the disk hangs", done.Load())
				}
				close(gate)
				synctest.Wait()
				if done.Load() != int64(total) {
					t.Errorf("%d of %d ops are done", done.Load(), total)
				}
				if err := errors.Join(c.Close(), db.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestMixedBatch: one synced op makes the whole batch wait for the disk, wherever it
// stands in it.
func TestMixedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		db := openPebble(t, blockedFS{vfs.NewMem(), gate}, "db", NewFailure())
		var commits []Commit
		c := NewCommitter(db, CommitterOptions{Observe: func(cm Commit) { commits = append(commits, cm) }})
		c.Submit(Op{Sync: true, Write: func(b *Batch) { b.Set([]byte("a"), nil) }})
		synctest.Wait() // It hangs in its sync; what follows is gathered.
		for _, sync := range []bool{false, true, false} {
			c.Submit(Op{Sync: sync, Write: func(b *Batch) { b.Set([]byte("b"), nil) }})
		}
		close(gate)
		if err := errors.Join(c.Close(), db.Close()); err != nil {
			t.Error(err)
		}
		if len(commits) != 2 || commits[1].Ops != 3 || !commits[1].Synced {
			t.Errorf("batches %+v, want a second one of 3 ops that is synced", commits)
		}
	})
}

// TestSyncs counts: a batch with a synced op costs one sync, one without costs
// none, and with NoSync nothing does; an op that writes nothing is a barrier.
func TestSyncs(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		var syncs atomic.Int64
		count := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if isSync(op) && isWAL(op) {
				syncs.Add(1)
			}
			return nil
		})
		o := memOptions(errorfs.Wrap(vfs.NewMem(), count))
		o.NoSync = noSync
		commits := make(chan Commit, 10)
		o.Observe = func(name string, c Commit) {
			if name == groupsName {
				commits <- c
			}
		}
		s := mustOpen(t, o)
		syncs.Store(0)
		want := int64(0)
		for i, op := range []Op{
			{Write: func(b *Batch) { b.Set([]byte("a"), nil) }, Sync: true},
			{Write: func(b *Batch) { b.Set([]byte("b"), nil) }},
			{Sync: true},
			{Write: func(b *Batch) { b.Delete([]byte("a")) }, Sync: true},
		} {
			done := make(chan error, 1)
			op.Done = func(err error) { done <- err }
			s.Groups().Committer.Submit(op)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if op.Sync && !noSync {
				want++
			}
			if c := <-commits; c.Ops != 1 || c.Synced != (op.Sync && !noSync) {
				t.Errorf("op %d, no sync %v: %+v", i, noSync, c)
			}
		}
		if got := syncs.Load(); got != want {
			t.Errorf("no sync %v: %d syncs, want %d", noSync, got, want)
		}
		mustClose(t, s)
	}
}

func TestBatch(t *testing.T) {
	s := mustOpen(t, memOptions(vfs.NewMem()))
	defer mustClose(t, s)
	c := s.Groups().Committer
	other := c.NewBatch()
	other.Set([]byte("a"), []byte("1"))
	other.Set([]byte("b"), []byte("2"))
	done := make(chan error, 1)
	c.Submit(Op{Sync: true, Done: func(err error) { done <- err }, Write: func(b *Batch) {
		b.SetJoined([]byte("c"), []byte("he"), []byte("ad"))
		b.Append(other)
		b.DeleteRange([]byte("a"), []byte("b"))
	}})
	other.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := get(t, s.Groups(), "a") + "," + get(t, s.Groups(), "b") + "," + get(t, s.Groups(), "c"); got != ",2,head" {
		t.Errorf("got %q", got)
	}
}

// TestCloseEndsAll: no goroutine outlives Close, and what comes late is refused.
func TestCloseEndsAll(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := mustOpen(t, memOptions(vfs.NewMem()))
	if err := put(s.Groups(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	if err := put(s.Groups(), "k", "v"); !errors.Is(err, ErrClosed) {
		t.Errorf("commit after Close: %v", err)
	}
	runtime.GC() // Pebble's cache has finalizers.
	goleak.VerifyNone(t, before)
}

// fullDisk is a disk that has no room for tables as long as it is set.
type fullDisk struct{ full atomic.Bool }

func (d *fullDisk) MaybeError(op errorfs.Op) error {
	if d.full.Load() && op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
		return syscall.ENOSPC
	}
	return nil
}

func (d *fullDisk) String() string { return "full disk" }

// TestFullDiskWhileOpening: Pebble tries for ever to write what was in its write-ahead
// log to a table. The start is refused all the same, and nothing is lost.
func TestFullDiskWhileOpening(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := mustOpen(t, memOptions(fs))
	if err := put(s.Topics(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	mustClose(t, s)

	disk := new(fullDisk)
	disk.full.Store(true)
	defer disk.full.Store(false) // or else it goes on trying
	_, err := Open(memOptions(errorfs.Wrap(crashed, disk)))
	if !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") {
		t.Errorf("opened on a full disk: %v", err)
	}
	s = mustOpen(t, memOptions(crashed.CrashClone(vfs.CrashCloneCfg{})))
	defer mustClose(t, s)
	if got := get(t, s.Topics(), "k"); got != "v" {
		t.Errorf("k is %q", got)
	}
}

var _ pebble.Logger = fatalLogger{}
