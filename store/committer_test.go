package store

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func openPebble(t testing.TB, fs vfs.FS, dir string, failure *Failure) *pebble.DB {
	t.Helper()
	db, err := pebble.Open(dir, &pebble.Options{
		FS: fs, Logger: fatalLogger{name: "test", failure: failure}, FormatMajorVersion: pebble.FormatNewest,
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestCommitterMergesInOrder(t *testing.T) {
	db := openPebble(t, vfs.NewMem(), "db", NewFailure())
	defer db.Close()
	var mu sync.Mutex
	var commits []Commit
	c := NewCommitter(db, CommitterOptions{Observe: func(cm Commit) {
		mu.Lock()
		commits = append(commits, cm)
		mu.Unlock()
	}})
	const writers, each = 8, 200
	var wg sync.WaitGroup
	var got [writers][]int
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				key := binary.BigEndian.AppendUint32([]byte{byte(w)}, uint32(i))
				c.Submit(Op{
					Write: func(b *Batch) { b.Set(key, key) },
					Sync:  i%3 != 0,
					Done: func(err error) {
						if err != nil {
							t.Error(err)
						}
						got[w] = append(got[w], i)
					},
				})
			}
		})
	}
	wg.Wait()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for w := range writers {
		for i := range each {
			if got[w][i] != i {
				t.Fatalf("writer %d: done %d came at %d", w, got[w][i], i)
			}
			if _, cl, err := db.Get(binary.BigEndian.AppendUint32([]byte{byte(w)}, uint32(i))); err != nil {
				t.Fatal(err)
			} else {
				cl.Close()
			}
		}
	}
	ops := 0
	for _, cm := range commits {
		ops += cm.Ops
	}
	if ops != writers*each {
		t.Errorf("observed %d ops, want %d", ops, writers*each)
	}
}

// BenchmarkSync is what the disk takes to sync 450 more bytes of a file: the latency
// that a single submitter of BenchmarkCommitter should come close to.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	data := make([]byte, 450)
	for b.Loop() {
		if _, err := f.Write(data); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommitter has submitters that wait for each op of two keys, some 450
// bytes, on the disk.
func BenchmarkCommitter(b *testing.B) {
	for _, submitters := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("submitters=%d", submitters), func(b *testing.B) {
			db := openPebble(b, vfs.Default, b.TempDir(), NewFailure())
			defer db.Close()
			batches := 0
			c := NewCommitter(db, CommitterOptions{Observe: func(Commit) { batches++ }})
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			cpu := cpuTime()
			for w := range submitters {
				wg.Go(func() {
					done := make(chan error, 1)
					value := make([]byte, 400)
					var log, state [12]byte
					binary.BigEndian.PutUint32(log[:], uint32(w))
					state = log
					state[0] = 1
					seq := uint64(0)
					op := Op{Sync: true, Done: func(err error) { done <- err }, Write: func(b *Batch) {
						b.Set(log[:], value)
						b.Set(state[:], value[:50])
					}}
					for range b.N / submitters {
						seq++
						binary.BigEndian.PutUint64(log[4:], seq)
						c.Submit(op)
						<-done
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/1e3, "cpu-µs/op")
			b.ReportMetric(float64(b.N)/float64(max(batches, 1)), "ops/batch")
			c.Close()
		})
	}
}

// cpuTime is the CPU time of the process in nanoseconds.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
