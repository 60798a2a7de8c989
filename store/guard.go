package store

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardInterval is how often the free space is looked at.
const guardInterval = time.Second

// guardPart is the part of the limit after which written bytes cause a look. Each
// byte is written more than once: to the write-ahead log and, later, to tables.
const guardPart = 32

// guard watches the free space of the data directory's file system. A write that
// fails ends the store, so a full disk must be refused before it comes to that:
// the space below the limit is left to what must go on (trimming, expiry,
// compactions, ends of transactions).
type guard struct {
	low  atomic.Bool
	free atomic.Int64

	// written is how many bytes were written since the last look.
	written atomic.Int64

	fs     vfs.FS
	dir    string
	min    int64
	logger Logger
	quit   chan struct{}
	done   sync.WaitGroup
}

// startGuard looks once before it returns, then every guardInterval and whenever much
// was written.
func startGuard(fs vfs.FS, dir string, minFree int64, logger Logger) *guard {
	g := &guard{fs: fs, dir: dir, min: minFree, logger: logger, quit: make(chan struct{})}
	g.look()
	g.done.Go(g.run)
	return g
}

func (g *guard) run() {
	ticker := time.NewTicker(guardInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			g.look()
		case <-g.quit:
			return
		}
	}
}

// wrote counts bytes that were written. A fast writer could fill the space below the
// limit between two ticks, so after a small part of it this looks at once.
func (g *guard) wrote(n int) {
	if g.written.Add(int64(n)) > g.min/guardPart {
		g.look()
	}
}

// look updates low and free. It ends "low" a little above the limit, so that the
// gateway does not flap between ready and not ready.
func (g *guard) look() {
	g.written.Store(0)
	usage, err := g.fs.GetDiskUsage(g.dir)
	if err != nil {
		// Not every file system tells. Refusing commits for that would be worse.
		g.free.Store(-1)
		g.set(false)
		return
	}
	free := int64(min(usage.AvailBytes, 1<<62))
	g.free.Store(free)
	limit := g.min
	if g.low.Load() {
		limit += limit / 16
	}
	g.set(free < limit)
}

func (g *guard) set(low bool) {
	if g.low.Swap(low) == low {
		return
	}
	switch {
	case low && g.logger.Errorf != nil:
		g.logger.Errorf("disk low: %d bytes free in %s, less than %d: commits and produce requests are refused",
			g.free.Load(), g.dir, g.min)
	case !low && g.logger.Infof != nil:
		g.logger.Infof("disk has room again: %d bytes free in %s", g.free.Load(), g.dir)
	}
}

func (g *guard) stop() {
	close(g.quit)
	g.done.Wait()
}
