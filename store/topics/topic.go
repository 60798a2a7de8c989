package topics

import (
	"sync"
	"sync/atomic"
)

// Topic is a topic that exists, or did when it was looked up.
type Topic struct {
	Name string
	ID   ID

	log       *Log
	createdMs int64
	// configs are what the topic sets itself, durable or not. The slice is never
	// changed, only replaced. Guarded by Log.mu.
	configs []Config
	// shown are the configurations that are durable, which count; replaced as a whole.
	shown atomic.Pointer[configured]
	// parts only ever grows; replaced as a whole when the new ones are durable.
	parts atomic.Pointer[[]*Partition]
	// count is the number of partitions, durable or not. Written under Log.mu and
	// names.mu.
	count int32
	// deleting: the deletion was submitted. Guarded by Log.mu.
	deleting bool
	// deleted: the deletion is durable, and whoever waits has been woken.
	deleted atomic.Bool
}

// Partitions returns the topic's partitions. The slice is shared.
func (t *Topic) Partitions() []*Partition { return *t.parts.Load() }

// Partition returns one partition, nil if there is none of that number.
func (t *Topic) Partition(index int32) *Partition {
	if parts := t.Partitions(); index >= 0 && int(index) < len(parts) {
		return parts[index]
	}
	return nil
}

// configured is what a topic sets itself, and what follows from it.
type configured struct {
	configs  []Config
	settings Settings
}

// Settings are the configurations that the store acts on, as they are now: a change
// makes new ones.
func (t *Topic) Settings() *Settings { return &t.shown.Load().settings }

// Configs resolves every configuration of the topic, in order of their names.
func (t *Topic) Configs() []Value {
	return t.log.Configs(t.shown.Load().configs)
}

// show makes configurations count.
func (t *Topic) show(configs []Config) {
	t.shown.Store(&configured{configs: configs, settings: settingsOf(configs, t.log.broker)})
}

// Partition is one partition of a topic.
type Partition struct {
	Topic *Topic
	Index int32

	// start is the first offset, end the one behind the last durable record: what
	// readers see. stable is where readers of committed records stop. aborted is the
	// offset of the newest marker that aborted records, -1 if there is none. Written
	// by the committer's goroutine.
	start, end, stable, aborted atomic.Int64

	// What follows is of the newest append, durable or not, and guarded by Log.mu.
	next int64
	// maxTimestamp is the largest timestamp of all records, -1 without one.
	maxTimestamp int64
	producers    map[int64]*producer
	row          partitionRow
	// open are the producers with an open transaction, in order of its first offset.
	open []*producer

	// What follows belongs to cleanLoop: below swept nothing is stored any more.
	swept int64
	usage usage
	// dirty are the batches from cleaned on: up to there it is compacted.
	dirty   usage
	cleaned int64

	// mu guards waiting and held, and makes advancing end and waking one step, so
	// that nobody begins to wait for what has just come.
	mu      sync.Mutex
	waiting *waitNode
	// held is how many bytes have come since stable last moved.
	held int64
}

// Start is the first offset that can be read.
func (p *Partition) Start() int64 { return p.start.Load() }

// End is the offset behind the last record that can be read: the high watermark.
func (p *Partition) End() int64 { return p.end.Load() }

// Stable is the last stable offset: all transactions with records before it have
// ended. Readers of committed records stop there. Like Kafka's it is not below Start.
func (p *Partition) Stable() int64 { return max(p.stable.Load(), p.start.Load()) }

// Limit is where a reader stops: Stable if it reads committed records only, else End.
func (p *Partition) Limit(committed bool) int64 {
	if committed {
		return p.Stable()
	}
	return p.End()
}

// stableNext is the last stable offset after all appends. Guarded by Log.mu.
func (p *Partition) stableNext() int64 {
	if len(p.open) > 0 {
		return p.open[0].txnFirst
	}
	return p.next
}

// LeaderEpoch is the epoch of the partition's leader.
func (p *Partition) LeaderEpoch() int32 { return leaderEpoch }

// advance makes records up to end readable, bytes more than before, and committed
// ones up to stable. What stable passes may be less than the bytes that it was held
// up by, so a reader of committed records can be woken early.
func (p *Partition) advance(end, stable, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end.Store(end)
	p.held += bytes
	committed := int64(0)
	if p.stable.Swap(stable) != stable {
		committed, p.held = p.held, 0
	}
	for n := p.waiting; n != nil; n = n.next {
		come := bytes
		if n.committed {
			come = committed
		}
		if come > 0 && n.waiter.missing.Add(-come) <= 0 {
			n.waiter.fire()
		}
	}
}

// wakeAll ends the waiting of everybody.
func (p *Partition) wakeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := p.waiting; n != nil; n = n.next {
		n.waiter.fire()
	}
}

// Deleted tells whether the topic is gone for good.
func (t *Topic) Deleted() bool { return t.deleted.Load() }
