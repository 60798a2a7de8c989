package bubble

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"github.com/rollcall-mq/rollcall/compat-tests/sim/actor"
)

var soak = flag.Bool("soak", false, "let TestSoak live for a week of virtual time, instead of seven hours")

// usage is what a node takes, at one moment.
type usage struct {
	heap       uint64
	goroutines int
	disk       int64
}

// TestSoak lets groups live for seven days, or a shorter unit of time: members come and
// go, groups that nobody knows of again appear all the time, offsets expire, the history
// is trimmed, connections break, and the node is killed or stopped at the end of each
// day. What it takes after the seventh is what it took after the second.
func TestSoak(t *testing.T) {
	day, pace := time.Hour, 60
	if *soak {
		day, pace = 24*time.Hour, 120
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, zap.NewNop(), true, map[string]string{
			"offsets.retention.minutes":           fmt.Sprint(day.Minutes()),
			"offsets.retention.check.interval.ms": "60000",
			"offsets.history.retention.ms":        fmt.Sprint(day.Milliseconds()),
		})
		w.Pace, w.History.Off = pace, true
		for i := range 3 {
			g := fmt.Sprint("group-", i)
			w.Spawn(1, func(e actor.World) { actor.Admin(e, "admin of "+g, g, 5) })
			for j := range 3 {
				w.Spawn(1, func(e actor.World) { actor.Consumer(e, fmt.Sprintf("member %d of %s", j, g), g, nil) })
			}
		}
		w.Spawn(1, func(e actor.World) { actor.Writer(e, "writer", "simple-0") })
		var days [8]usage
		for d := 1; d <= 7; d++ {
			for i := range 200 {
				<-time.After(day / 200)
				g := fmt.Sprintf("visited-%d-%d", d, i)
				w.Spawn(1, func(e actor.World) { actor.Visitor(e, "visitor", g) })
				if i%10 == 0 {
					w.Break(w.rnd)
				}
			}
			days[d] = w.usage()
			t.Logf("after day %d: %d KiB of heap, %d goroutines, %d KiB on the disk", d, days[d].heap>>10, days[d].goroutines, days[d].disk>>10)
			if d%2 == 0 {
				w.crash(50)
			} else {
				w.stop()
			}
		}
		w.Over()
		w.Cut()
		if err := w.end(w.life); err != nil {
			t.Error(err)
		}
		for _, p := range w.History.Problems {
			t.Error(p)
		}
		early, late := days[2], days[7]
		if late.heap > early.heap*11/10+(256<<10) || late.goroutines > early.goroutines+20 || late.disk > early.disk*5/4+(128<<10) {
			t.Errorf("after the second day %+v, after the seventh %+v", early, late)
		}
	})
}

// usage measures what the process and the disk of the node take.
func (w *world) usage() (u usage) {
	synctest.Wait()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{m.HeapAlloc, runtime.NumGoroutine(), diskSize(w.t, w.life.disk.mem, "data")}
}

// diskSize is how many bytes the files below a directory have.
func diskSize(t *testing.T, fs vfs.FS, dir string) (size int64) {
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file := fs.PathJoin(dir, name)
		info, err := fs.Stat(file)
		switch {
		case err != nil:
			t.Fatal(file, err)
		case info.IsDir():
			size += diskSize(t, fs, file)
		default:
			size += info.Size()
		}
	}
	return size
}
