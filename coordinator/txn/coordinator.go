package txn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Limits.
const (
	// IDsMax bounds the transactional ids that are known; each costs memory.
	IDsMax = 1_000_000
	// GroupsMax bounds the groups of one transaction.
	GroupsMax = 1000
	// resolveRetry is how long a group that could not resolve a transaction is left
	// alone: its shard may be loading.
	resolveRetry = 100 * time.Millisecond
)

// Config has Kafka's keys in the comments.
type Config struct {
	// TimeoutMaxMs is transaction.max.timeout.ms.
	TimeoutMaxMs int32
	// IDExpiration is transactional.id.expiration.ms.
	IDExpiration time.Duration
	// AbortInterval is transaction.abort.timed.out.transaction.cleanup.interval.ms.
	AbortInterval time.Duration
	// ExpireInterval is transaction.remove.expired.transaction.cleanup.interval.ms.
	ExpireInterval time.Duration
}

// Validate returns what is wrong with the configuration.
func (c Config) Validate() error {
	for _, k := range []struct {
		name  string
		value int64
	}{
		{"transaction.max.timeout.ms", int64(c.TimeoutMaxMs)},
		{"transactional.id.expiration.ms", c.IDExpiration.Milliseconds()},
		{"transaction.abort.timed.out.transaction.cleanup.interval.ms", c.AbortInterval.Milliseconds()},
		{"transaction.remove.expired.transaction.cleanup.interval.ms", c.ExpireInterval.Milliseconds()},
	} {
		if k.value < 1 {
			return fmt.Errorf("%s is %d, must be at least 1", k.name, k.value)
		}
	}
	return nil
}

// Producer is a producer id with its epoch, or -1 and -1.
type Producer struct {
	ID    int64
	Epoch int16
}

// NoProducer is the producer that no answer names, and that no request expects.
var NoProducer = Producer{-1, -1}

// Coordinator has all transactional ids.
type Coordinator struct {
	cfg    Config
	log    *topics.Log
	groups coordinator.Groups
	now    func() time.Time

	// mu guards byID.
	mu   sync.Mutex
	byID map[string]*transaction

	work queue
}

// transaction is a transactional id.
type transaction struct {
	id string
	mu sync.Mutex
	// The rest is guarded by mu. forgotten: the id has expired, and whoever still has
	// this looks it up again.
	forgotten bool
	// row is the newest one, durable or not.
	row topics.Transaction
	// partitions and groups take part. The value tells whether a group does durably.
	partitions map[topics.TransactionPartition]struct{}
	groups     map[string]bool
	// known is what a shard may ask for, which cannot wait for mu.
	known atomic.Pointer[known]
	// waiting are the ends that are answered when the transaction is complete.
	waiting []func(code int16)
}

// New reads the transactional ids of log. groups gets what is to be resolved when the
// coordinator runs. now is the clock; nil is time.Now.
func New(cfg Config, log *topics.Log, groups coordinator.Groups, now func() time.Time) (*Coordinator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	c := &Coordinator{cfg: cfg, log: log, groups: groups, now: now, byID: map[string]*transaction{}}
	c.work.ready = make(chan struct{}, 1)
	stored, err := log.Transactions()
	if err != nil {
		return nil, err
	}
	for i := range stored {
		s := &stored[i]
		t := &transaction{id: s.ID, row: s.Transaction}
		for _, p := range s.Partitions {
			t.addPartition(p)
		}
		for _, g := range s.Groups {
			t.addGroup(g, true)
		}
		t.publish()
		c.byID[s.ID] = t
		if t.preparing() {
			c.work.put(func(ctx context.Context) { c.resolve(ctx, t, s.Groups) })
		}
	}
	return c, nil
}

// NowMs is the time by the clock of the coordinator, in milliseconds since 1970.
func (c *Coordinator) NowMs() int64 { return c.now().UnixMilli() }

// Run does what cannot be done where it becomes known, aborts transactions that take
// too long and forgets ids that nobody uses, until ctx ends.
func (c *Coordinator) Run(ctx context.Context) {
	abort, expire := time.NewTicker(c.cfg.AbortInterval), time.NewTicker(c.cfg.ExpireInterval)
	defer abort.Stop()
	defer expire.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.work.ready:
			for _, f := range c.work.take() {
				f(ctx)
			}
		case <-abort.C:
			c.AbortOverdue()
		case <-expire.C:
			c.ExpireIDs()
		}
	}
}

// queue has what is to be done by Run, in order. It holds at most a few entries for
// each request that waits and each transaction that ends.
type queue struct {
	mu    sync.Mutex
	todo  []func(context.Context)
	ready chan struct{}
}

func (q *queue) put(f func(context.Context)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.todo = append(q.todo, f)
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *queue) take() []func(context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	todo := q.todo
	q.todo = nil
	return todo
}

// find returns the transaction of an id, locked; nil if there is none.
func (c *Coordinator) find(id string) *transaction {
	for {
		c.mu.Lock()
		t := c.byID[id]
		c.mu.Unlock()
		if t == nil {
			return nil
		}
		t.mu.Lock()
		switch {
		case t.forgotten:
			t.mu.Unlock()
			continue
		case t.row.ProducerID < 0: // its first producer is about to come
			t.mu.Unlock()
			return nil
		}
		return t
	}
}

// obtain returns the transaction of an id, locked, which may be a new one; nil if
// there are as many as there may be.
func (c *Coordinator) obtain(id string) *transaction {
	for {
		c.mu.Lock()
		t := c.byID[id]
		if t == nil && len(c.byID) >= IDsMax {
			c.mu.Unlock()
			return nil
		}
		if t == nil {
			t = &transaction{id: id, row: topics.Transaction{
				ProducerID: -1, Epoch: -1, LastProducerID: -1, LastEpoch: -1, StartMs: -1,
			}}
			c.byID[id] = t
		}
		c.mu.Unlock()
		t.mu.Lock()
		if !t.forgotten {
			return t
		}
		t.mu.Unlock()
	}
}

// all returns the transactions in order of their ids.
func (c *Coordinator) all() []*transaction {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.byID))
	c.mu.Unlock()
	slices.SortFunc(all, func(a, b *transaction) int { return cmp.Compare(a.id, b.id) })
	return all
}

// change is the change to what is now the newest row, which shards may know then.
// Guarded by t.mu.
func (t *transaction) change() *topics.TransactionChange {
	t.publish()
	row := t.row
	return &topics.TransactionChange{ID: t.id, Row: &row}
}

func (t *transaction) producer() Producer { return Producer{t.row.ProducerID, t.row.Epoch} }

func (t *transaction) preparing() bool {
	return t.row.State == topics.TransactionPrepareCommit || t.row.State == topics.TransactionPrepareAbort
}

func (t *transaction) addPartition(p topics.TransactionPartition) {
	if t.partitions == nil {
		t.partitions = map[topics.TransactionPartition]struct{}{}
	}
	t.partitions[p] = struct{}{}
}

func (t *transaction) addGroup(id string, durable bool) {
	if t.groups == nil {
		t.groups = map[string]bool{}
	}
	t.groups[id] = durable
}

// groupIDs are the groups that take part, in order.
func (t *transaction) groupIDs() []string { return slices.Sorted(maps.Keys(t.groups)) }

// codeOf is the code of a change: the store is about to fail if it is not durable.
func codeOf(err error) int16 {
	if err != nil {
		return kerr.CoordinatorNotAvailable.Code
	}
	return 0
}
