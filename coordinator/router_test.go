package coordinator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// replies is a sink with room for one reply too many.
type replies chan group.Reply

// Reply implements shard.Sink.
func (c replies) Reply(r group.Reply) { c <- r }

// ask submits an event and returns the code of its reply.
func ask(r *Router, id string, ev group.Event) group.Reply {
	c := make(replies, 2)
	r.Submit(context.Background(), id, ev, c)
	return <-c
}

func commit(offset int64) *group.Commit {
	return &group.Commit{Generation: -1, Retention: -1, Topics: []group.CommitTopic{
		{Name: "t", Partitions: []group.CommitPartition{{Offset: offset, LeaderEpoch: -1}}},
	}}
}

func fetch() *group.Fetch {
	return &group.Fetch{Topics: []group.FetchTopic{{Name: "t", Partitions: []int32{0}}}}
}

// started returns a router that runs and is ready, and what Run will return.
func started(t *testing.T, cfg shard.Config, n uint32, log shard.Log) (*Router, <-chan error) {
	cfg.Group.MaxMetadata = 4096
	r := NewRouter(cfg, n, log)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(t.Context(), nil) }()
	synctest.Wait()
	if ready, reason := r.Ready(); !ready {
		t.Fatalf("not ready: %s", reason)
	}
	return r, ended
}

// stop stops a router and checks that everything ended well.
func stop(t *testing.T, r *Router, ended <-chan error) {
	t.Helper()
	if err := errors.Join(r.Stop(t.Context()), <-ended); err != nil {
		t.Error(err)
	}
}

// TestRouterLife: 16 before the start (B126), then service, 16 after the end; Ready
// says why not.
func TestRouterLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRouter(shard.Config{}, 50, shardtest.NewLog())
		if got := ask(r, "g", fetch()).Code; got != group.NotCoordinator {
			t.Errorf("before the start: code %d, want %d", got, group.NotCoordinator)
		}
		if got := r.Coordinates("g"); got != group.NotCoordinator {
			t.Errorf("Coordinates before the start: %d, want %d", got, group.NotCoordinator)
		}
		if ready, reason := r.Ready(); ready || reason != "the coordinator has not started" {
			t.Errorf("ready %v, %q", ready, reason)
		}
		var low atomic.Bool
		r, ended := started(t, shard.Config{DiskLow: low.Load}, 50, shardtest.NewLog())
		if got := r.Coordinates("g"); got != group.None {
			t.Errorf("Coordinates: %d", got)
		}
		if got := ask(r, "g", commit(1)).Code; got != group.None {
			t.Errorf("commit: code %d", got)
		}
		low.Store(true)
		if ready, reason := r.Ready(); ready || reason != "free space is below store.min.free.bytes" {
			t.Errorf("ready %v, %q", ready, reason)
		}
		stop(t, r, ended)
		if got := ask(r, "g", fetch()).Code; got != group.NotCoordinator {
			t.Errorf("after the end: code %d, want %d", got, group.NotCoordinator)
		}
		if ready, reason := r.Ready(); ready || reason != "50 of 50 shards have stopped" {
			t.Errorf("ready %v, %q", ready, reason)
		}
		if err := r.Run(t.Context(), nil); !errors.Is(err, ErrRunning) {
			t.Errorf("second Run: %v", err)
		}
		if err := r.Stop(t.Context()); err != nil {
			t.Errorf("second Stop: %v", err)
		}
	})
}

// TestRouterStopBeforeRun: a Stop that comes before Run's goroutine has begun is no
// failure of Run; it ends at once and owns nothing.
func TestRouterStopBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRouter(shard.Config{}, 50, shardtest.NewLog())
		if err := r.Stop(t.Context()); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if err := r.Run(t.Context(), nil); err != nil {
			t.Errorf("Run after Stop: %v", err)
		}
		if got := r.Coordinates("g"); got != group.NotCoordinator {
			t.Errorf("Coordinates: %d, want %d", got, group.NotCoordinator)
		}
		if err := r.Run(t.Context(), nil); !errors.Is(err, ErrRunning) {
			t.Errorf("second Run: %v", err)
		}
	})
}

// slowLog loads when it is told to.
type slowLog struct {
	*shardtest.Log
	load chan struct{}
}

func (l slowLog) Load(ctx context.Context, n uint32, row func(key, value []byte) error, batch func(first uint64, value []byte) error) (folded, epoch uint64, err error) {
	select {
	case <-l.load:
		return l.Log.Load(ctx, n, row, batch)
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}

// TestRouterLoading (B126, S0.7): until a shard is loaded its requests get
// COORDINATOR_LOAD_IN_PROGRESS, heartbeats none; FindCoordinator already points
// here.
func TestRouterLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slowLog{shardtest.NewLog(), make(chan struct{})}
		r := NewRouter(shard.Config{}, 3, log)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(t.Context(), nil) }()
		synctest.Wait()
		if got := ask(r, "g", fetch()).Code; got != group.CoordinatorLoading {
			t.Errorf("fetch: code %d, want %d", got, group.CoordinatorLoading)
		}
		if got := ask(r, "g", &group.Heartbeat{MemberID: "m"}).Code; got != group.None {
			t.Errorf("heartbeat: code %d, want none", got)
		}
		if got := r.Coordinates("g"); got != group.None {
			t.Errorf("Coordinates: %d", got)
		}
		if ready, reason := r.Ready(); ready || reason != "3 of 3 shards are loading" {
			t.Errorf("ready %v, %q", ready, reason)
		}
		log.load <- struct{}{}
		synctest.Wait()
		if ready, reason := r.Ready(); ready || reason != "2 of 3 shards are loading" {
			t.Errorf("ready %v, %q", ready, reason)
		}
		// Stopping does not wait for loads.
		stop(t, r, ended)
	})
}

// failingLog fails to load one shard.
type failingLog struct{ *shardtest.Log }

var errBlock = errors.New("bad block")

func (l failingLog) Load(ctx context.Context, n uint32, row func(key, value []byte) error, batch func(first uint64, value []byte) error) (folded, epoch uint64, err error) {
	if n == 7 {
		return 0, 0, errBlock
	}
	return l.Log.Load(ctx, n, row, batch)
}

// TestRouterFails: one shard that cannot load or write ends the process.
func TestRouterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRouter(shard.Config{}, 50, failingLog{shardtest.NewLog()})
		if err := r.Run(t.Context(), nil); !errors.Is(err, errBlock) {
			t.Errorf("Run returned %v", err)
		}
		log := shardtest.NewLog()
		r, ended := started(t, shard.Config{}, 50, log)
		log.Fail(errBlock)
		c := make(replies, 1)
		r.Submit(t.Context(), "g", commit(1), c)
		if err := <-ended; !errors.Is(err, errBlock) {
			t.Errorf("Run returned %v", err)
		}
		if len(c) != 0 {
			t.Error("a commit that failed was answered")
		}
	})
}

// TestRouterAgrees (B60, S0.4): the shard that ShardFor names is the one that
// stores a group, finds it after a restart and lists it.
func TestRouterAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := shardtest.NewLog()
		r, ended := started(t, shard.Config{}, 50, log)
		rnd := rand.New(rand.NewPCG(1, 2))
		ids := map[string]uint32{}
		for i := range 1000 {
			id := fmt.Sprintf("%c%d-%c", rune(rnd.IntN(0x2FFFF)), i, rune(rnd.IntN(0x500)))
			ids[id] = ShardFor(id, 50)
			if got := ask(r, id, commit(int64(i))).Code; got != group.None {
				t.Fatalf("commit: code %d", got)
			}
		}
		for n := range uint32(50) {
			for _, b := range log.Batches(n) {
				if err := shard.DecodeBatch(b.First, b.Value, func(_ uint64, id string, _ *group.Record) error {
					if ids[id] != n {
						t.Errorf("%q is stored by shard %d, want %d", id, n, ids[id])
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		}
		stop(t, r, ended)
		r, ended = started(t, shard.Config{}, 50, log)
		var mu sync.Mutex
		listed, shards := 0, 0
		r.Each(t.Context(), func() group.Event { return new(group.List) }, func(n uint32, code group.Code, replies []group.Reply) {
			mu.Lock()
			defer mu.Unlock()
			shards++
			for _, reply := range replies {
				listed++
				if id := reply.Body.(*group.ListReply).GroupID; ids[id] != n {
					t.Errorf("%q is listed by shard %d, want %d", id, n, ids[id])
				}
			}
		})
		synctest.Wait()
		if shards != 50 || listed != len(ids) {
			t.Errorf("%d shards list %d groups, want 50 and %d", shards, listed, len(ids))
		}
		stop(t, r, ended)
	})
}

// TestRouterLose (B77): a shard that was given up answers NOT_COORDINATOR, is not
// listed and can come back.
func TestRouterLose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ended := started(t, shard.Config{}, 4, shardtest.NewLog())
		n := ShardFor("g", 4)
		ask(r, "g", commit(5))
		if err := r.Lose(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if got := ask(r, "g", fetch()).Code; got != group.NotCoordinator {
			t.Errorf("code %d, want %d", got, group.NotCoordinator)
		}
		if got := r.Coordinates("g"); got != group.NotCoordinator {
			t.Errorf("Coordinates: %d, want %d", got, group.NotCoordinator)
		}
		lost := 0
		r.Each(t.Context(), func() group.Event { return new(group.List) }, func(_ uint32, code group.Code, _ []group.Reply) {
			if code == group.NotCoordinator {
				lost++
			}
		})
		if lost != 1 {
			t.Errorf("%d shards are not here, want 1", lost)
		}
		r.Own(t.Context(), n)
		synctest.Wait()
		reply := ask(r, "g", fetch())
		if reply.Code != group.None || reply.Body.(*group.FetchReply).Topics[0].Partitions[0].Offset != 5 {
			t.Errorf("reply %+v after the shard came back", reply)
		}
		stop(t, r, ended)
	})
}

// memory is a log that keeps nothing, to start shards fast.
type memory struct{}

func (memory) Load(context.Context, uint32, func(key, value []byte) error, func(first uint64, value []byte) error) (folded, epoch uint64, err error) {
	return 0, 1, nil
}
func (memory) Append(_ uint32, _, _ uint64, _ int, _ []byte, done func(error)) { done(nil) }
func (memory) Checkpoint(uint32, uint64, uint64, iter.Seq2[[]byte, []byte])    {}
func (memory) Scan(context.Context, uint32, uint64, uint64, func(first uint64, value []byte) error) error {
	return nil
}
func (memory) Bounds(uint32) (first uint64, bytes int64, err error) { return 0, 0, nil }
func (memory) BaseRows(context.Context, uint32, []byte, func(key, value []byte) error) (upto uint64, err error) {
	return 0, nil
}
func (memory) Trim(uint32, uint64, uint64, iter.Seq2[[]byte, []byte]) error { return nil }
func (memory) OwnedUntil(uint32) time.Time                                  { return time.Time{} }

// TestRouterSwapUnderLoad (S0.7) takes shards away and gives them back while
// clients ask: every request gets one answer, with one of the expected codes.
func TestRouterSwapUnderLoad(t *testing.T) {
	swaps := 400
	if testing.Short() {
		swaps = 100
	}
	cfg := shard.Config{Group: group.Config{MaxMetadata: 4096}}
	r := NewRouter(cfg, 4, memory{})
	ended := make(chan error, 1)
	go func() { ended <- r.Run(context.Background(), nil) }()
	var over atomic.Bool
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			id := fmt.Sprint("group-", i)
			for !over.Load() {
				switch code := ask(r, id, commit(1)).Code; code {
				case group.None:
				case group.NotCoordinator, group.CoordinatorLoading, group.CoordinatorNotAvailable:
					runtime.Gosched() // Nothing made it wait.
				default:
					t.Errorf("code %d", code)
				}
			}
		})
	}
	for i := range swaps {
		n := uint32(i % 4)
		if err := r.Lose(context.Background(), n); err != nil {
			t.Fatal(err)
		}
		r.Own(context.Background(), n)
	}
	over.Store(true)
	clients.Wait()
	if err := errors.Join(r.Stop(context.Background()), <-ended); err != nil {
		t.Error(err)
	}
}

// fullLog has no room for what is appended until it is told.
type fullLog struct {
	*shardtest.Log
	room    chan struct{}
	waiting *atomic.Int32
}

func newFullLog() fullLog { return fullLog{shardtest.NewLog(), make(chan struct{}), new(atomic.Int32)} }

func (l fullLog) Append(n uint32, epoch, first uint64, count int, value []byte, done func(error)) {
	l.waiting.Add(1)
	<-l.room
	l.waiting.Add(-1)
	l.Log.Append(n, epoch, first, count, value, done)
}

// TestRouterFullLog: a shard whose turn hangs in the log still answers what waits
// for longer than offsets.commit.timeout.ms.
func TestRouterFullLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newFullLog()
		r, ended := started(t, shard.Config{}, 1, log)
		c := make(replies, 2)
		r.Submit(t.Context(), "g", commit(1), c)
		time.Sleep(4900 * time.Millisecond)
		synctest.Wait()
		if len(c) != 0 {
			t.Error("answered too early")
		}
		time.Sleep(1200 * time.Millisecond)
		if got := (<-c).Code; got != group.CoordinatorNotAvailable {
			t.Errorf("code %d, want %d", got, group.CoordinatorNotAvailable)
		}
		close(log.room)
		synctest.Wait()
		if len(c) != 0 {
			t.Error("answered twice")
		}
		stop(t, r, ended)
	})
}

// TestRouterStopsWithFullLog: stopping does not wait longer than it may for a turn
// that hangs in the log; what waits for the disk is answered.
func TestRouterStopsWithFullLog(t *testing.T) {
	log := newFullLog()
	r := NewRouter(shard.Config{}, 2, log)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(context.Background(), nil) }()
	for ready := false; !ready; ready, _ = r.Ready() {
		runtime.Gosched()
	}
	c := make(replies, 2)
	r.Submit(t.Context(), "g", commit(1), c)
	log.room <- struct{}{} // It is in Append, and the next will be for ever.
	if got := (<-c).Code; got != group.None {
		t.Fatalf("code %d", got)
	}
	r.Submit(t.Context(), "g", commit(2), c)
	for log.waiting.Load() == 0 {
		runtime.Gosched()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := r.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stop returned %v", err)
	}
	if got := (<-c).Code; got != group.NotCoordinator {
		t.Errorf("code %d, want %d", got, group.NotCoordinator)
	}
	close(log.room)
	if err := <-ended; err != nil {
		t.Errorf("Run returned %v", err)
	}
}

// fullAtRest is a log that has no room for a checkpoint.
type fullAtRest struct {
	*shardtest.Log
	room chan struct{}
}

func (l fullAtRest) Checkpoint(n uint32, epoch, folded uint64, rows iter.Seq2[[]byte, []byte]) {
	<-l.room
	l.Log.Checkpoint(n, epoch, folded, rows)
}

// TestRouterStopsWithFullLogAtRest: stopping does not wait longer than it may for
// what it writes itself either, here the last checkpoint of a shard at rest.
func TestRouterStopsWithFullLogAtRest(t *testing.T) {
	log := fullAtRest{shardtest.NewLog(), make(chan struct{})}
	r := NewRouter(shard.Config{}, 1, log)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(context.Background(), nil) }()
	for ready := false; !ready; ready, _ = r.Ready() {
		runtime.Gosched()
	}
	c := make(replies, 1)
	r.Submit(t.Context(), "g", commit(1), c)
	if got := (<-c).Code; got != group.None {
		t.Fatalf("code %d", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- r.Stop(ctx) }()
	select {
	case err := <-stopped:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop returned %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Stop does not return")
	}
	close(log.room)
	if err := <-ended; err != nil {
		t.Errorf("Run returned %v", err)
	}
}
