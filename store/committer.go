package store

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Limits of what waits in a committer. While one batch is being synced the next
// may grow to this; then Submit blocks. One op that is larger by itself passes.
const (
	// CommitBytesMax bounds the bytes of a gathered batch.
	CommitBytesMax = 8 << 20
	// CommitOpsMax bounds the ops of a gathered batch.
	CommitOpsMax = 8192
	// batchRetainedMax is the largest buffer that is kept for the next batch.
	batchRetainedMax = 1 << 20
)

// unsyncedMax is how long, with NoSync, a write stays without a sync. Pebble by
// itself keeps the last ones in memory until more come, be it for days.
const unsyncedMax = time.Second

// Committer is the one writer of a Pebble: while a sync runs it gathers what all
// shards or partitions hand in and writes it as one batch with one sync.
//
// Ops are written in the order of Submit, and a later op is never durable without
// the earlier ones. The first error ends the committer, and with it the store:
// every op that is not durable by then gets that error, nothing is retried.
//
// Pebble shows a write to readers before it is synced. Who serves reads to others
// must remember in Done how far the durable writes go, and stop there.
type Committer struct {
	db      *pebble.DB
	name    string
	sync    bool
	failure *Failure
	observe func(Commit)

	mu sync.Mutex
	// work is signalled when there is something to do for run.
	work sync.Cond
	// room is broadcast when a full batch was taken.
	room sync.Cond
	// gathering takes the ops of Submit; spare is the empty one to swap in.
	gathering, spare *gathered
	closed           bool
	// overdue: a write was unsyncedMax ago and is to be synced.
	overdue bool

	// writing belongs to run: the batch that is on its way to the disk.
	writing *gathered
	// unsynced belongs to run, too: with NoSync, something was written since the last
	// sync, and overdue will be set in time.
	unsynced bool
	stopped  chan struct{}
}

// Op is one unit of a commit. It is atomic: after a crash either all of its keys
// are there or none.
type Op struct {
	// Write puts the op's keys into the shared batch, which copies them. It runs
	// within Submit, on the caller's goroutine, under the committer's lock: it must
	// be quick, must not call the committer and must not fail. What takes long or
	// calls back is encoded into a batch of its own first (see [Batch.Append]). A
	// nil Write with Sync waits until everything before it is durable.
	Write func(b *Batch)
	// Sync: Done waits for the disk. Without it the op rides along with the batch
	// of its time and starts no sync of its own; it becomes durable at the latest
	// with the next op that does.
	Sync bool
	// Done, if set, is called once with the result, in order of submission, on the
	// committer's goroutine, and must not block.
	Done func(error)
}

// Commit is what a committer reports of each batch that it wrote.
type Commit struct {
	// Ops and Bytes are what was merged into the batch.
	Ops, Bytes int
	// Synced tells whether the batch waited for the disk.
	Synced bool
	// Took is from handing the batch to Pebble until it was durable.
	Took time.Duration
}

// CommitterOptions configures a [Committer].
type CommitterOptions struct {
	// Name says in errors which Pebble it is.
	Name string
	// NoSync acknowledges without waiting for the disk (store.sync=false), and
	// syncs what was written within a second.
	NoSync bool
	// Failure is where an error goes that ends the store. Nil: one of its own.
	Failure *Failure
	// Observe, if set, is called after every batch, on the committer's goroutine,
	// and must not block.
	Observe func(Commit)
}

// gathered is a batch with what to call when it is durable.
type gathered struct {
	batch Batch
	done  []func(error)
	ops   int
	sync  bool
}

// NewCommitter starts the committer of db. Nothing else may write to db.
func NewCommitter(db *pebble.DB, o CommitterOptions) *Committer {
	c := &Committer{
		db: db, name: o.Name, sync: !o.NoSync, failure: o.Failure, observe: o.Observe,
		stopped: make(chan struct{}),
	}
	if c.failure == nil {
		c.failure = NewFailure()
	}
	c.work.L, c.room.L = &c.mu, &c.mu
	c.gathering = &gathered{batch: *newBatch(db)}
	c.spare = &gathered{batch: *newBatch(db)}
	c.failure.notify(c.wakeAll)
	go c.run()
	return c
}

// Submit adds an op to the batch that is being gathered and returns; it blocks
// while that batch is full. It never calls Done itself, so locks that Done takes
// may be held.
func (c *Committer) Submit(op Op) {
	c.mu.Lock()
	for c.gathering.full() && !c.closed && c.failure.Err() == nil {
		c.room.Wait()
	}
	if c.closed {
		c.mu.Unlock()
		if op.Done != nil {
			go op.Done(ErrClosed)
		}
		return
	}
	g := c.gathering
	if op.Write != nil {
		op.Write(&g.batch)
	}
	if op.Done != nil {
		g.done = append(g.done, op.Done)
	}
	g.ops++
	g.sync = g.sync || op.Sync
	if g.ops == 1 {
		c.work.Signal()
	}
	c.mu.Unlock()
}

// NewBatch returns an empty batch for an op that is too slow to encode under the
// committer's lock; see [Batch.Append]. Close it after use.
func (c *Committer) NewBatch() *Batch { return newBatch(c.db) }

// Failed is closed when a write has failed, here or in another Pebble of the store.
func (c *Committer) Failed() <-chan struct{} { return c.failure.Failed() }

// Err is the error that ended the store, nil as long as it works.
func (c *Committer) Err() error { return c.failure.Err() }

// Close writes what was submitted before, waits for it and stops. The Pebble stays
// open. It returns the error that ended the store, if one did.
func (c *Committer) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wakeAll()
	<-c.stopped
	return c.failure.Err()
}

func (c *Committer) wakeAll() {
	c.mu.Lock()
	c.work.Broadcast()
	c.room.Broadcast()
	c.mu.Unlock()
}

func (g *gathered) full() bool {
	return g.ops >= CommitOpsMax || g.batch.b.Len() >= CommitBytesMax
}

// run writes batches until Close. Pebble ends a failed commit with the logger's
// Fatalf, which ends the goroutine that it is called on (see [fatalLogger]): then
// a new goroutine goes on from where this one was, to give everybody the error.
func (c *Committer) run() {
	ended := false
	defer func() {
		if !ended {
			c.failure.fail(errors.New("the committer was ended by Pebble"))
			go c.run()
		}
	}()
	if c.writing != nil {
		c.finish(c.failure.Err())
	}
	for c.take() {
		c.finish(c.write(c.writing))
		// Let those that were just answered hand in their next op first: without
		// this a batch has 5 ops of 64 submitters, with it 55, at half the CPU.
		runtime.Gosched()
	}
	ended = true
	close(c.stopped)
}

// take waits for ops, or a sync that is due, and makes them the batch to write; false
// after Close when there are no ops left.
func (c *Committer) take() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.gathering.ops == 0 && !c.overdue {
		if c.closed {
			return false
		}
		c.work.Wait()
	}
	c.writing, c.gathering = c.gathering, c.spare
	c.spare = nil
	c.writing.sync = c.sync && c.writing.sync || c.overdue
	c.overdue = false
	c.room.Broadcast()
	return true
}

// requestSync makes run sync what was written.
func (c *Committer) requestSync() {
	c.mu.Lock()
	c.overdue = !c.closed
	c.work.Signal()
	c.mu.Unlock()
}

// write makes one batch durable, or only visible if none of its ops asks for more.
func (c *Committer) write(g *gathered) error {
	if err := c.failure.Err(); err != nil {
		return err
	}
	b := g.batch.b
	commit := Commit{Ops: g.ops, Bytes: b.Len(), Synced: g.sync}
	start := time.Now()
	if commit.Synced {
		if b.Empty() {
			// Pebble takes an empty batch for done; a log record carries the sync.
			_ = b.LogData(nil, nil)
		}
		// Apply with Sync would end in Fatalf; SyncWait returns the error.
		if err := c.db.ApplyNoSyncWait(b, pebble.Sync); err != nil {
			return fmt.Errorf("write to %s: %w", c.name, err)
		}
		if err := b.SyncWait(); err != nil {
			return fmt.Errorf("sync %s: %w", c.name, err)
		}
		c.unsynced = false
	} else {
		if err := c.db.Apply(b, pebble.NoSync); err != nil {
			return fmt.Errorf("write to %s: %w", c.name, err)
		}
		if !c.sync && !c.unsynced {
			c.unsynced = true
			time.AfterFunc(unsyncedMax, c.requestSync)
		}
	}
	if c.observe != nil && g.ops > 0 {
		commit.Took = time.Since(start)
		c.observe(commit)
	}
	return nil
}

// finish answers the ops of the batch that was written and makes it the spare one.
func (c *Committer) finish(err error) {
	g := c.writing
	if err != nil {
		c.failure.fail(err)
		err = c.failure.Err()
		g.batch = *newBatch(c.db) // Pebble may still hold the failed one.
	} else {
		g.batch.b.Reset()
	}
	for i, done := range g.done {
		g.done[i] = nil
		done(err)
	}
	g.done, g.ops, g.sync = g.done[:0], 0, false
	c.writing = nil
	c.mu.Lock()
	c.spare = g
	c.mu.Unlock()
}
