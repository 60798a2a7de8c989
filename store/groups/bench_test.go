package groups

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/rollcall-mq/rollcall/store"
)

func openDisk(b *testing.B, dir string, shards uint32) (*store.Store, *Log) {
	b.Helper()
	s, err := store.Open(store.Options{Dir: dir, Shards: shards})
	if err != nil {
		b.Fatal(err)
	}
	l, err := Open(s.Groups(), shards)
	if err != nil {
		b.Fatal(err)
	}
	return s, l
}

func own(b *testing.B, l *Log, n uint32) (epoch uint64) {
	b.Helper()
	_, epoch, err := l.Load(context.Background(), n, func(k, v []byte) error { return nil }, func(uint64, []byte) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
	return epoch
}

// BenchmarkAppend is the store's part of commits of 10 partitions (some 400 bytes)
// by shards that wait for each.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16, 50} {
		b.Run(fmt.Sprintf("shards=%d", writers), func(b *testing.B) {
			s, l := openDisk(b, b.TempDir(), 50)
			defer s.Close()
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			cpu := cpuTime()
			for w := range uint32(writers) {
				wg.Go(func() {
					epoch := own(b, l, w)
					value := make([]byte, 400)
					done := make(chan error, 1)
					finish := func(err error) { done <- err }
					for i := range uint64(b.N / writers) {
						l.Append(w, epoch, i*10, 10, value, finish)
						if err := <-done; err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/1e3, "cpu-µs/op")
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

// BenchmarkLoad opens a store of 1,000,000 committed offsets (10,000 groups of 100,
// 2 KB each in one row) on 50 shards and loads all of it, after a clean stop. Half
// of the groups are in the tail as well.
func BenchmarkLoad(b *testing.B) {
	const shards, perShard = 50, 200
	dir := b.TempDir()
	s, l := openDisk(b, dir, shards)
	rng := rand.New(rand.NewPCG(1, 1))
	row := make([]byte, 2048)
	var wg sync.WaitGroup
	for n := range uint32(shards) {
		epoch := own(b, l, n)
		for i := range uint64(perShard) {
			for j := range row {
				row[j] = byte(rng.Uint32() & 0x3f)
			}
			wg.Add(1)
			l.Append(n, epoch, i, 1, row, func(err error) { wg.Done() })
			l.Checkpoint(n, epoch, i/2, func(yield func(k, v []byte) bool) { yield(fmt.Appendf(nil, "group-%d", i), row) })
		}
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		s, l := openDisk(b, dir, shards)
		var loads sync.WaitGroup
		work := make(chan uint32)
		for range 2 {
			loads.Go(func() {
				for n := range work {
					rows, batches := 0, 0
					_, _, err := l.Load(context.Background(), n,
						func(k, v []byte) error { rows++; return nil }, func(uint64, []byte) error { batches++; return nil })
					if err != nil || rows != perShard || batches < perShard/2 {
						b.Errorf("shard %d: %d rows, %d batches, %v", n, rows, batches, err)
					}
				}
			})
		}
		for n := range uint32(shards) {
			work <- n
		}
		close(work)
		loads.Wait()
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
