// Package coordinator maps group ids to shards and runs the shards that this
// process owns.
package coordinator

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
)

// Groups is what handlers ask of the coordinator; *Router implements it.
type Groups interface {
	// Submit gives an event to the shard of group id; its reply goes to sink. It
	// blocks while the shard's inbox is full. If ctx ends first, or the shard is
	// not here, the reply still comes, with the code for that. The event belongs
	// to the coordinator from then on, with everything it points to.
	Submit(ctx context.Context, id string, ev group.Event, sink shard.Sink)

	// Each steps one event of each existing group of every shard here, made by
	// mk, and gives the replies to done shard by shard, when the records that
	// they depend on are durable. code is none, or why the shard's groups cannot
	// be seen. done is called once a shard, from any goroutine.
	Each(ctx context.Context, mk func() group.Event, done func(shard uint32, code group.Code, replies []group.Reply))

	// EachIn is Each for the groups of one shard.
	EachIn(ctx context.Context, shard uint32, mk func() group.Event, done func(shard uint32, code group.Code, replies []group.Reply))

	// Shards is offsets.topic.num.partitions of the store.
	Shards() uint32

	// Coordinates tells whether this process coordinates the group: none, or
	// NOT_COORDINATOR: not yet, or (in a later cluster mode) another one does.
	Coordinates(id string) group.Code
}

// Router is the coordinator of a process: its shards by number.
type Router struct {
	cfg shard.Config
	log shard.Log
	n   uint32

	// owned is the shards that are here, nil before Run. A request takes it once
	// and decides by that alone.
	owned atomic.Pointer[shardMap]

	// mu guards changes of owned and what follows.
	mu sync.Mutex
	// begun is set by Run and closing by Stop.
	begun, closing bool
	// cancelLoads ends the loads in progress; nil before Run.
	cancelLoads context.CancelFunc

	// owning has the shards to add, for the goroutine of Run; ended is closed when
	// that is gone.
	owning chan []uint32
	ended  chan struct{}

	// running counts the goroutines of shards.
	running sync.WaitGroup
	// slots bounds how many shards are loaded at the same time.
	slots chan struct{}
	// failed has the first error of a shard; stopped is closed by Stop.
	failed  chan error
	stopped chan struct{}
}

// shardMap has the shards that this process owns, by number, and nil for the
// others. It does not change once it can be seen.
type shardMap struct{ shards []*shard.Shard }

var _ Groups = (*Router)(nil)

// overdueInterval is how often the router looks for overdue replies. Shards do that
// themselves, and exactly, except when a turn waits for room in the log.
const overdueInterval = time.Second

// ErrRunning is what a second Run fails with.
var ErrRunning = errors.New("coordinator: runs or has run already")

// NewRouter returns the coordinator of n shards that are kept in log.
func NewRouter(cfg shard.Config, n uint32, log shard.Log) *Router {
	return &Router{
		cfg:     cfg,
		log:     log,
		n:       n,
		owning:  make(chan []uint32),
		ended:   make(chan struct{}),
		slots:   make(chan struct{}, runtime.GOMAXPROCS(0)),
		failed:  make(chan error, 1),
		stopped: make(chan struct{}),
	}
}

// Run owns the given shards, all if own is nil, loads them and lets them work
// until Stop has ended them (nil), one of them fails (its error) or ctx ends (its
// error; what is held then gets no answer). It runs once; after a Stop it owns nothing
// and returns nil.
func (r *Router) Run(ctx context.Context, own []uint32) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if own == nil {
		for i := range r.n {
			own = append(own, i)
		}
	}
	loading, cancelLoads := context.WithCancel(ctx)
	defer cancelLoads()
	r.mu.Lock()
	if r.begun {
		r.mu.Unlock()
		return ErrRunning
	}
	r.begun, r.cancelLoads = true, cancelLoads
	r.mu.Unlock()
	defer close(r.ended)
	r.own(ctx, loading, own)
	overdue := time.NewTicker(overdueInterval)
	defer overdue.Stop()
	var err error
	for running := true; running; {
		select {
		case more := <-r.owning:
			r.own(ctx, loading, more)
			continue
		case <-overdue.C:
			r.refuseOverdue()
			continue
		case <-r.stopped:
		case err = <-r.failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		running = false
	}
	cancel()
	r.running.Wait()
	return err
}

// Load owns shards and loads them, one after the other, for who does their turns
// himself, on one goroutine: a simulator. Run and Stop are not for such a router.
func (r *Router) Load(ctx context.Context, own ...uint32) error {
	for _, s := range r.add(own) {
		if err := s.Load(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Shard returns a shard that is here, nil if it is not, see [Router.Load].
func (r *Router) Shard(n uint32) *shard.Shard {
	s, _ := r.shard(n)
	return s
}

// refuseOverdue looks after replies that wait for the disk while the turns of their
// shard hang in it, too.
func (r *Router) refuseOverdue() {
	m := r.owned.Load()
	if m == nil {
		return // It was stopped before it owned anything.
	}
	for _, s := range m.shards {
		if s != nil {
			s.RefuseOverdue()
		}
	}
}

// Own begins to load shards that this process has come to own. Without a running
// Run it does nothing.
func (r *Router) Own(ctx context.Context, own ...uint32) {
	select {
	case r.owning <- own:
	case <-r.ended:
	case <-ctx.Done():
	}
}

// own makes shards known and starts their goroutines.
func (r *Router) own(ctx, loading context.Context, own []uint32) {
	for _, s := range r.add(own) {
		r.running.Go(func() { r.run(ctx, loading, s) })
	}
}

// add makes shards known that are not here, and returns them.
func (r *Router) add(own []uint32) (added []*shard.Shard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return nil
	}
	m := &shardMap{shards: make([]*shard.Shard, r.n)}
	if old := r.owned.Load(); old != nil {
		copy(m.shards, old.shards)
	}
	for _, n := range own {
		if m.shards[n] != nil {
			continue
		}
		m.shards[n] = shard.New(r.cfg, n, r.log)
		added = append(added, m.shards[n])
	}
	r.owned.Store(m)
	return added
}

// run loads a shard and lets it work until it ends.
func (r *Router) run(ctx, loading context.Context, s *shard.Shard) {
	r.slots <- struct{}{}
	err := s.Load(loading)
	<-r.slots
	if err == nil {
		err = s.Run(ctx)
	} else if loading.Err() != nil || errors.Is(err, shard.ErrClosed) {
		return // It was stopped or lost before it was loaded.
	}
	if err != nil {
		select {
		case r.failed <- err:
		default:
		}
	}
}

// Lose gives up a shard that another process owns from now on: its requests get
// NOT_COORDINATOR. It returns when all are answered, or when ctx ends.
func (r *Router) Lose(ctx context.Context, n uint32) error {
	r.mu.Lock()
	old := r.owned.Load()
	if old == nil || old.shards[n] == nil {
		r.mu.Unlock()
		return nil
	}
	m := &shardMap{shards: slices.Clone(old.shards)}
	m.shards[n] = nil
	r.owned.Store(m)
	r.mu.Unlock()
	return old.shards[n].Lose(ctx)
}

// Stop ends all shards in good order, see [shard.Shard.Stop]; then Run returns. If
// ctx ends before that, what still waits for the disk gets NOT_COORDINATOR.
func (r *Router) Stop(ctx context.Context) error {
	r.mu.Lock()
	first := !r.closing
	r.closing = true
	if r.cancelLoads != nil {
		r.cancelLoads()
	}
	m := r.owned.Load()
	r.mu.Unlock()
	var errs []error
	if m != nil {
		errs = make([]error, r.n)
		var wg sync.WaitGroup
		for i, s := range m.shards {
			if s != nil {
				wg.Go(func() { errs[i] = s.Stop(ctx) })
			}
		}
		wg.Wait()
	}
	if first {
		close(r.stopped)
	}
	return errors.Join(errs...)
}

// Submit implements [Groups].
func (r *Router) Submit(ctx context.Context, id string, ev group.Event, sink shard.Sink) {
	s, code := r.shard(ShardFor(id, r.n))
	if code != group.None {
		if sink != nil {
			sink.Reply(group.Reply{Code: code})
		}
		return
	}
	s.Submit(ctx, id, ev, sink)
}

// shard returns a shard, or why it is not here.
func (r *Router) shard(n uint32) (*shard.Shard, group.Code) {
	m := r.owned.Load()
	if m == nil || m.shards[n] == nil {
		return nil, group.NotCoordinator
	}
	return m.shards[n], group.None
}

// Each implements [Groups].
func (r *Router) Each(ctx context.Context, mk func() group.Event, done func(shard uint32, code group.Code, replies []group.Reply)) {
	for n := range r.n {
		r.EachIn(ctx, n, mk, done)
	}
}

// EachIn implements [Groups].
func (r *Router) EachIn(ctx context.Context, n uint32, mk func() group.Event, done func(shard uint32, code group.Code, replies []group.Reply)) {
	s, code := r.shard(n)
	if code != group.None {
		done(n, code, nil)
		return
	}
	s.Each(ctx, mk, done)
}

// Shards implements [Groups].
func (r *Router) Shards() uint32 { return r.n }

// Coordinates implements [Groups]. A shard that loads is here.
func (r *Router) Coordinates(id string) group.Code {
	_, code := r.shard(ShardFor(id, r.n))
	return code
}

// Ready tells whether every shard that this process owns answers and there is
// room on the disk, and if not, why.
func (r *Router) Ready() (ready bool, reason string) {
	m := r.owned.Load()
	if m == nil {
		return false, "the coordinator has not started"
	}
	var owned, loading, closed int
	for _, s := range m.shards {
		if s == nil {
			continue
		}
		owned++
		switch s.State() {
		case shard.Loading:
			loading++
		case shard.Closed:
			closed++
		case shard.Active:
		}
	}
	switch {
	case closed > 0:
		return false, fmt.Sprintf("%d of %d shards have stopped", closed, owned)
	case loading > 0:
		return false, fmt.Sprintf("%d of %d shards are loading", loading, owned)
	case r.cfg.DiskLow != nil && r.cfg.DiskLow():
		return false, "free space is below store.min.free.bytes"
	}
	return true, ""
}
