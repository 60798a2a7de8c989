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
	configs   []Config
	settings  Settings
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

// Settings are the configurations that the store acts on.
func (t *Topic) Settings() *Settings { return &t.settings }

// Configs resolves every configuration of the topic, in order of their names.
func (t *Topic) Configs() []Value {
	return t.log.Configs(t.configs)
}

// Partition is one partition of a topic.
type Partition struct {
	Topic *Topic
	Index int32

	// start is the first offset, end the one behind the last durable record: what
	// readers see. Written by the committer's goroutine.
	start, end atomic.Int64

	// What follows is of the newest append, durable or not, and guarded by Log.mu.
	next int64
	// maxTimestamp is the largest timestamp of all records, -1 without one.
	maxTimestamp int64
	producers    map[int64]*producer

	// mu guards waiting, and makes advancing end and waking one step, so that
	// nobody begins to wait for what has just come.
	mu      sync.Mutex
	waiting *waitNode
}

// Start is the first offset that can be read.
func (p *Partition) Start() int64 { return p.start.Load() }

// End is the offset behind the last record that can be read: the high watermark,
// and, as long as there are no transactions, the last stable offset.
func (p *Partition) End() int64 { return p.end.Load() }

// LeaderEpoch is the epoch of the partition's leader.
func (p *Partition) LeaderEpoch() int32 { return leaderEpoch }

// advance makes records up to end readable, bytes more than before.
func (p *Partition) advance(end int64, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end.Store(end)
	for n := p.waiting; n != nil; n = n.next {
		if n.waiter.missing.Add(-bytes) <= 0 {
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
