package topics

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// bare returns partitions that belong to no store.
func bare(n int) []*Partition {
	l := &Log{}
	t := &Topic{log: l}
	parts := make([]*Partition, n)
	for i := range parts {
		parts[i] = &Partition{Topic: t, Index: int32(i)}
	}
	return parts
}

func nobodyWaits(t *testing.T, parts []*Partition) {
	t.Helper()
	for _, p := range parts {
		if p.waiting != nil {
			t.Errorf("partition %d still has a waiter", p.Index)
		}
	}
}

func TestWait(t *testing.T) {
	seen := func(parts []*Partition) (all []Seen) {
		for _, p := range parts {
			all = append(all, Seen{Partition: p, Limit: p.End()})
		}
		return all
	}
	start := func(t *testing.T, parts []Seen, bytes int64) (w *Waiter, woken func() bool) {
		var n atomic.Int32
		w = Wait(parts, bytes, time.Second, func() { n.Add(1) })
		return w, func() bool {
			t.Helper()
			synctest.Wait()
			if n.Load() > 1 {
				t.Errorf("woken %d times", n.Load())
			}
			return n.Load() == 1
		}
	}
	t.Run("until there is enough", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := bare(3)
			defer nobodyWaits(t, p)
			w, woken := start(t, seen(p), 100)
			defer w.Stop()
			p[0].advance(1, 1, 60)
			if woken() {
				t.Error("woken too early")
			}
			p[2].advance(1, 1, 40)
			if !woken() {
				t.Error("not woken")
			}
			p[1].advance(5, 5, 1000)
			woken()
		})
	})
	t.Run("until the time is over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := bare(3)
			defer nobodyWaits(t, p)
			w, woken := start(t, seen(p), 100)
			defer w.Stop()
			time.Sleep(time.Second - 1)
			if woken() {
				t.Error("woken too early")
			}
			time.Sleep(time.Nanosecond)
			if !woken() {
				t.Error("not woken")
			}
			p[0].advance(1, 1, 1000)
			woken()
		})
	})
	t.Run("stopped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := bare(3)
			defer nobodyWaits(t, p)
			w, woken := start(t, seen(p), 1)
			w.Stop()
			w.Stop()
			p[0].advance(1, 1, 1000)
			time.Sleep(time.Minute)
			if woken() {
				t.Error("woken")
			}
		})
	})
	t.Run("something has come before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := bare(3)
			defer nobodyWaits(t, p)
			s := seen(p)
			p[2].advance(1, 1, 1)
			w, woken := start(t, s, 1)
			if w != nil {
				t.Error("waits")
			}
			time.Sleep(time.Minute)
			if woken() {
				t.Error("woken")
			}
		})
	})
	t.Run("the topic goes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := bare(3)
			defer nobodyWaits(t, p)
			w, woken := start(t, seen(p), 1)
			defer w.Stop()
			p[0].Topic.deleted.Store(true)
			p[1].wakeAll()
			if !woken() {
				t.Error("not woken")
			}
			if w := Wait(seen(p), 1, time.Second, func() {}); w != nil {
				t.Error("waits for a topic that is gone")
			}
		})
	})
	t.Run("the log is released", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := bare(3)
			defer nobodyWaits(t, p)
			p[0].Topic.log.releasing.Store(true)
			w, woken := start(t, seen(p), 1)
			defer w.Stop()
			if !woken() {
				t.Error("not woken")
			}
		})
	})
	t.Run("several leave in any order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := bare(3)
			defer nobodyWaits(t, p)
			var all []*Waiter
			for range 5 {
				w, _ := start(t, seen(p), 1)
				all = append(all, w)
			}
			for _, i := range []int{2, 0, 4, 3, 1} {
				all[i].Stop()
			}
		})
	})
}
