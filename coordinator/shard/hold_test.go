package shard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// TestReplyWaitsForItsGroup stalls the disk: no reply of the group with the write
// leaves, without records or not; those of another group do. A fetch that wants what
// is stable waits as well, and both see the write that they waited for (S1.5, S1.7).
func TestReplyWaitsForItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		r.log.Hold()
		r.submit("commit a", "a", commit(1))
		plain := r.submit("fetch a", "a", fetch())
		stable := r.submit("stable fetch a", "a", &group.Fetch{RequireStable: true, Topics: fetch().Topics})
		r.submit("describe a", "a", new(group.Describe))
		r.submit("fetch b", "b", fetch())
		r.submit("describe b", "b", new(group.Describe))
		r.book.wantOrder(t, "fetch b", "describe b")
		r.log.Sync(1)
		r.book.wantOrder(t, "fetch b", "describe b", "commit a", "fetch a", "stable fetch a", "describe a")
		if a, b := plain.offset(t), stable.offset(t); a != 1 || b != 1 {
			t.Errorf("offsets %d and %d after the write, want 1", a, b)
		}
	})
}

// TestReplyWaitsForNoOtherGroup: a group whose records are durable does not wait
// for those of a later batch, nor for others of its own turn.
func TestReplyWaitsForNoOtherGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		r.log.Hold()
		r.submit("commit b", "b", commit(1))
		r.submit("commit a", "a", commit(1))
		r.submit("fetch a", "a", fetch())
		r.submit("fetch b", "b", fetch())
		r.submit("commit b2", "b", commit(2))
		r.submit("fetch b2", "b", fetch())
		r.book.wantOrder(t)
		r.log.Sync(1)
		r.book.wantOrder(t, "commit b", "fetch b")
		r.submit("fetch a2", "a", fetch())
		r.log.Sync(1)
		r.book.wantOrder(t, "commit b", "fetch b", "commit a", "fetch a", "fetch a2")
		r.log.Sync(1)
		r.book.wantOrder(t, "commit b", "fetch b", "commit a", "fetch a", "fetch a2", "commit b2", "fetch b2")
	})
}

// TestWaitOutlivesTheMachine: after DeleteGroups the group does not exist, but what
// is said about it still waits for the deletion; also when a fold has been handed
// to the log, and nothing but that wait is left of the group.
func TestWaitOutlivesTheMachine(t *testing.T) {
	for _, bytes := range []int{1 << 20, 1} {
		t.Run(fmt.Sprint("fold after ", bytes), func(t *testing.T) { testWaitOutlivesTheMachine(t, bytes) })
	}
}

func testWaitOutlivesTheMachine(t *testing.T, checkpointBytes int) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.CheckpointBytes = checkpointBytes
		r := run(t, shardtest.NewLog(), cfg)
		r.submit("commit", "a", commit(7))
		r.log.Hold()
		r.submit("delete", "a", new(group.DeleteGroup))
		gone := r.submit("fetch", "a", fetch())
		r.submit("describe", "a", new(group.Describe))
		listed := -1
		r.shard.Each(t.Context(), func() group.Event { return new(group.List) },
			func(_ uint32, _ group.Code, replies []group.Reply) { listed = len(replies) })
		synctest.Wait()
		r.book.wantOrder(t, "commit")
		if listed != -1 {
			t.Error("a list left before the deletion it shows was durable")
		}
		r.log.Release()
		r.book.wantOrder(t, "commit", "delete", "fetch", "describe")
		if got := gone.offset(t); got != -1 {
			t.Errorf("offset of a deleted group: %d", got)
		}
		if listed != 0 {
			t.Errorf("%d groups listed, want 0", listed)
		}
	})
}

// TestTurnsArePipelined: while one batch waits for the disk, the next are stepped
// and handed to the log.
func TestTurnsArePipelined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		r.log.Hold()
		for i := range 5 {
			r.submit("commit", key(i), commit(1))
		}
		if got := r.log.Pending(); got != 5 {
			t.Fatalf("%d batches handed to the log, want 5", got)
		}
		r.log.Release()
		if got := len(r.book.order()); got != 5 {
			t.Errorf("%d replies, want 5", got)
		}
	})
}

// TestTurnIsOneBatch: what waits in the inbox becomes one append.
func TestTurnIsOneBatch(t *testing.T) {
	r := load(t, shardtest.NewLog(), config())
	for i := range 100 {
		r.send("commit", key(i%10), commit(int64(i)))
	}
	r.turns()
	if got := r.log.Appends(); got != 1 {
		t.Errorf("%d appends, want 1", got)
	}
	if got := r.log.Batches(0)[0].Count; got != 100 {
		t.Errorf("%d records in the batch, want 100", got)
	}
	if got := len(r.book.order()); got != 100 {
		t.Errorf("%d replies, want 100", got)
	}
}

// TestBatchBytesMax: a batch that has become too large takes no further step.
func TestBatchBytesMax(t *testing.T) {
	cfg := config()
	cfg.BatchBytesMax = 200
	r := load(t, shardtest.NewLog(), cfg)
	for i := range 100 {
		r.send("commit", key(i), commit(1))
	}
	r.turns()
	for _, b := range r.log.Batches(0) {
		if len(b.Value) > 300 {
			t.Errorf("a batch of %d bytes, want one step more than 200 at most", len(b.Value))
		}
	}
	if got := len(r.book.order()); got != 100 {
		t.Errorf("%d replies, want 100", got)
	}
}

// TestCommitTimeout (B81 i, B128): after offsets.commit.timeout.ms a reply that
// waits for the disk is an error; the write may still land.
func TestCommitTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		r.submit("commit", "a", commit(10))
		r.log.Hold()
		c := r.submit("commit 20", "a", commit(20))
		time.Sleep(3 * time.Second)
		f := r.submit("fetch", "a", fetch())
		d := r.submit("describe", "a", new(group.Describe))
		time.Sleep(1999 * time.Millisecond)
		synctest.Wait()
		r.book.wantOrder(t, "commit")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := c.code(t); got != group.CoordinatorNotAvailable {
			t.Errorf("commit: code %d, want %d", got, group.CoordinatorNotAvailable)
		}
		if f.came() != 0 {
			t.Error("the fetch has not waited for 5 s")
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := f.code(t); got != group.NotCoordinator {
			t.Errorf("fetch: code %d, want %d", got, group.NotCoordinator)
		}
		if got := d.code(t); got != group.CoordinatorNotAvailable {
			t.Errorf("describe: code %d, want %d", got, group.CoordinatorNotAvailable)
		}
		r.log.Release()
		if got := r.submit("fetch", "a", fetch()).offset(t); got != 20 {
			t.Errorf("offset %d after the disk is back, want 20", got)
		}
		time.Sleep(time.Minute)
		for _, a := range r.book.left {
			if a.times != 1 {
				t.Errorf("%s was answered %d times", a.to, a.times)
			}
		}
	})
}

// TestFailedWrite: a failed write ends the shard with the log's error; what waited
// is not answered, what comes later is refused.
func TestFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		r.submit("commit", "a", commit(1))
		r.log.Hold()
		r.submit("lost 1", "a", commit(2))
		r.submit("lost 2", "b", commit(2))
		r.submit("lost 3", "a", fetch())
		broken := errors.New("no space left on device")
		r.log.Fail(broken)
		if err := <-r.ended; !errors.Is(err, broken) {
			t.Fatalf("Run returned %v, want the log's error", err)
		}
		late := r.submit("late", "a", fetch())
		r.book.wantOrder(t, "commit", "late")
		if got := late.code(t); got != group.NotCoordinator {
			t.Errorf("code %d after the end, want %d", got, group.NotCoordinator)
		}
		// A restart finds what was acknowledged and no more.
		if got := run(t, r.log.Crash(0), config()).submit("fetch", "a", fetch()).offset(t); got != 1 {
			t.Errorf("offset %d after the restart, want 1", got)
		}
	})
}

// TestFailedAppend: the log refuses at once, from within Append.
func TestFailedAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		broken := errors.New("read-only file system")
		r.log.Fail(broken)
		r.submit("commit", "a", commit(1))
		if err := <-r.ended; !errors.Is(err, broken) {
			t.Fatalf("Run returned %v, want the log's error", err)
		}
		r.book.wantOrder(t)
	})
}

// TestOwnedUntil: no reply leaves after the lease has ended.
func TestOwnedUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		r.log.OwnUntil(time.Now().Add(time.Second))
		r.log.Hold()
		if got := r.submit("fetch", "b", fetch()).code(t); got != group.None {
			t.Errorf("code %d within the lease", got)
		}
		c := r.submit("commit", "a", commit(1))
		time.Sleep(time.Second)
		r.log.Release()
		if got := c.code(t); got != group.NotCoordinator {
			t.Errorf("commit: code %d after the lease, want %d", got, group.NotCoordinator)
		}
		if got := r.submit("fetch", "b", fetch()).code(t); got != group.NotCoordinator {
			t.Errorf("fetch: code %d after the lease, want %d", got, group.NotCoordinator)
		}
	})
}

// TestStop answers what waits: commits when they are durable, then nothing more is
// taken; the checkpoint is complete.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		r.log.Hold()
		c := r.submit("commit", "a", commit(1))
		stopped := make(chan error, 1)
		go func() { stopped <- r.shard.Stop(t.Context()) }()
		synctest.Wait()
		late := r.submit("late", "a", fetch())
		if got := late.code(t); got != group.NotCoordinator {
			t.Errorf("code %d while stopping, want %d", got, group.NotCoordinator)
		}
		if c.came() != 0 {
			t.Fatal("the commit was answered before it was durable")
		}
		r.log.Release()
		if err := errors.Join(<-stopped, <-r.ended); err != nil {
			t.Fatal(err)
		}
		if got := c.code(t); got != group.None {
			t.Errorf("commit: code %d", got)
		}
		if len(r.log.Rows(0)) == 0 {
			t.Error("the checkpoint has no rows")
		}
		if err := r.shard.Stop(t.Context()); err != nil {
			t.Errorf("second Stop: %v", err)
		}
	})
}

// TestStopWithStalledDisk: when the time is up, what waits gets NOT_COORDINATOR.
func TestStopWithStalledDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		r.log.Hold()
		c := r.submit("commit", "a", commit(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.shard.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop returned %v", err)
		}
		if got := c.code(t); got != group.NotCoordinator {
			t.Errorf("commit: code %d, want %d", got, group.NotCoordinator)
		}
		r.log.Release()
		c.code(t)
	})
}

// TestLose (B77): the shard is taken away while a commit waits for the disk; it is
// answered with none only because it became durable.
func TestLose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		r.log.Hold()
		c := r.submit("commit", "a", commit(1))
		lost := make(chan error, 1)
		go func() { lost <- r.shard.Lose(t.Context()) }()
		synctest.Wait()
		if got := r.submit("late", "a", fetch()).code(t); got != group.NotCoordinator {
			t.Errorf("code %d, want %d", got, group.NotCoordinator)
		}
		r.log.Release()
		if err := errors.Join(<-lost, <-r.ended); err != nil {
			t.Fatal(err)
		}
		if got := c.code(t); got != group.None {
			t.Errorf("commit: code %d", got)
		}
		if len(r.log.Rows(0)) != 0 {
			t.Error("a lost shard wrote a checkpoint")
		}
	})
}
