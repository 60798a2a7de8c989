package bubble

import (
	"math/rand/v2"
	"path"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// disk is the disk of one life of the node.
type disk struct {
	vfs.FS
	mem *vfs.MemFS
	// syncMax is how long, in nanoseconds, a sync of a write-ahead log takes at most.
	syncMax atomic.Int64
	// free is what is left of it, in bytes.
	free atomic.Uint64
	// full: writes fail with ENOSPC. dead: they fail, whatever they are.
	full, dead atomic.Bool
	// atOnce is closed when syncs take no time, or no more. A node that stops waits for
	// them with a mutex in its hand, and so does one that trims its history.
	atOnce chan struct{}
}

// minFree is store.min.free.bytes; a disk has enough, or half of it.
const minFree = 1 << 20

func newDisk(mem *vfs.MemFS) *disk {
	d := &disk{mem: mem, atOnce: make(chan struct{})}
	d.FS = errorfs.Wrap(mem, d)
	d.syncMax.Store(int64(10 * time.Millisecond))
	d.free.Store(100 * minFree)
	return d
}

// String implements [errorfs.Injector].
func (d *disk) String() string { return "disk" }

// MaybeError implements [errorfs.Injector]: it decides what becomes of an operation.
// Only syncs of write-ahead logs take time, and only where no log is closed before the
// end: the rest happens under mutexes of Pebble, and a goroutine that waits for one of
// those stops the time of a bubble.
func (d *disk) MaybeError(op errorfs.Op) error {
	write := op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose
	switch {
	case write && d.dead.Load():
		return errorfs.ErrInjected
	case write && d.full.Load() && op.Kind != errorfs.OpRemove:
		return syscall.ENOSPC
	}
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		if path.Ext(op.Path) == ".log" {
			select {
			case <-d.atOnce:
				return nil
			default:
			}
			select {
			case <-time.After(time.Duration(rand.Int64N(d.syncMax.Load()))):
			case <-d.atOnce:
			}
		}
	}
	return nil
}

// GetDiskUsage implements [vfs.FS].
func (d *disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load(), TotalBytes: 100 * minFree, UsedBytes: 100*minFree - d.free.Load()}, nil
}
