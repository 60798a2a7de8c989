package topics

import (
	"fmt"
	"sync"

	"github.com/rollcall-mq/rollcall/store"
)

// NewTopic is a topic to create.
type NewTopic struct {
	Name       string
	Partitions int32
	Configs    []Config
	// Internal: the gateway asks for it, so a reserved name is allowed.
	Internal bool
}

func (l *Log) newTopic(id ID, row topicRow) *Topic {
	t := &Topic{
		Name:      row.name,
		ID:        id,
		log:       l,
		createdMs: row.createdMs,
		configs:   row.configs,
		count:     row.partitions,
	}
	t.show(row.configs)
	t.grow(row.partitions)
	return t
}

// grow makes partitions visible up to this number.
func (t *Topic) grow(count int32) {
	var parts []*Partition
	if old := t.parts.Load(); old != nil {
		parts = append(parts, *old...)
	}
	more := make([]Partition, int(count)-len(parts))
	for i := range more {
		p := &more[i]
		p.Topic, p.Index, p.maxTimestamp = t, int32(len(parts)), -1
		p.aborted.Store(-1)
		parts = append(parts, p)
	}
	t.parts.Store(&parts)
}

func (t *Topic) row() topicRow {
	return topicRow{name: t.Name, partitions: t.count, createdMs: t.createdMs, configs: t.configs}
}

// names knows every topic from its submission to its durable deletion. The
// committer's goroutine uses it too, so it has a lock of its own: Log.mu may be held
// by somebody who waits for the committer to make room.
type names struct {
	mu sync.Mutex
	// byKey finds a topic under collisionKey(name).
	byKey map[string]*Topic
	// partitions of all of them together.
	partitions int64
}

func (n *names) add(t *Topic) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byKey[collisionKey(t.Name)] = t
	n.partitions += int64(t.count)
}

func (n *names) remove(t *Topic) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.byKey, collisionKey(t.Name))
	n.partitions -= int64(t.count)
}

func (n *names) find(name string) *Topic {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byKey[collisionKey(name)]
}

func (n *names) grow(t *Topic, count int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.partitions += int64(count - t.count)
	t.count = count
}

func (n *names) total() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.partitions
}

// Create creates a topic and calls done with it when it is durable. A refusal comes
// at once, unless it rests on what is not durable itself.
func (l *Log) Create(n NewTopic, done func(*Topic, *Refusal, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, r := l.checkCreate(n); r != nil {
		if other != nil && l.Topic(other.Name) != other { // not durable yet
			l.barrier(func(err error) { done(nil, r, err) })
			return
		}
		done(nil, r, nil)
		return
	}
	id := l.NewID()
	t := l.newTopic(id, topicRow{name: n.Name, partitions: n.Partitions, createdMs: l.nowMs(), configs: n.Configs})
	l.names.add(t)
	row := t.row()
	l.committer.Submit(store.Op{
		Sync:  true,
		Write: func(b *store.Batch) { b.Set(topicKey(id), row.encode()) },
		Done: func(err error) {
			if err != nil {
				done(nil, nil, err)
				return
			}
			l.publish(t)
			done(t, nil, nil)
		},
	})
}

// CheckCreate tells why a topic could not be created now, nil if it could.
func (l *Log) CheckCreate(n NewTopic) *Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, r := l.checkCreate(n)
	return r
}

// checkCreate also returns the topic that is in the way, if one is.
func (l *Log) checkCreate(n NewTopic) (*Topic, *Refusal) {
	if other, r := l.checkName(n.Name, n.Internal); r != nil {
		return other, r
	}
	if n.Partitions <= 0 {
		return nil, refuse(InvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	}
	if r := l.checkRoom(int64(n.Partitions)); r != nil {
		return nil, r
	}
	if msg := CheckConfigs(n.Configs); msg != "" {
		return nil, refuse(InvalidConfig, msg)
	}
	return nil, nil
}

func (l *Log) checkName(name string, internal bool) (*Topic, *Refusal) {
	if msg := CheckName(name); msg != "" {
		return nil, refuse(InvalidTopicException, "Topic name is invalid: "+msg)
	}
	if Reserved(name) && !internal {
		return nil, refuse(InvalidTopicException, "Names that begin with '__' are reserved for the gateway.")
	}
	other := l.names.find(name)
	switch {
	case other == nil:
		return nil, nil
	case other.Name == name:
		return other, refuse(TopicAlreadyExists, fmt.Sprintf("Topic '%s' already exists.", name))
	default:
		return other, refuse(InvalidTopicException, fmt.Sprintf("Topic '%s' collides with existing topic: %s", name, other.Name))
	}
}

func (l *Log) checkRoom(partitions int64) *Refusal {
	if l.names.total()+partitions > PartitionsMax {
		return refuse(PolicyViolation, fmt.Sprintf("There would be more than %d partitions in all.", PartitionsMax))
	}
	return nil
}

// publish makes a durable topic visible.
func (l *Log) publish(t *Topic) {
	l.byID.Store(t.ID, t)
	l.byName.Store(t.Name, t)
}

// Grow gives a topic more partitions and calls done when they are durable.
func (l *Log) Grow(t *Topic, count int32, done func(*Refusal, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.checkGrow(t, count); r != nil {
		done(r, nil)
		return
	}
	l.names.grow(t, count)
	row := t.row()
	l.committer.Submit(store.Op{
		Sync:  true,
		Write: func(b *store.Batch) { b.Set(topicKey(t.ID), row.encode()) },
		Done: func(err error) {
			if err == nil {
				t.grow(count)
			}
			done(nil, err)
		},
	})
}

// CheckGrow tells why a topic could not get this number of partitions, nil if it
// could.
func (l *Log) CheckGrow(t *Topic, count int32) *Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.checkGrow(t, count)
}

func (l *Log) checkGrow(t *Topic, count int32) *Refusal {
	switch {
	case t.deleting:
		return refuse(UnknownTopicOrPartition, "This server does not host this topic-partition.")
	case count == t.count:
		return refuse(InvalidPartitions, fmt.Sprintf("Topic already has %d partition(s).", t.count))
	case count < t.count:
		return refuse(InvalidPartitions, fmt.Sprintf(
			"The topic %s currently has %d partition(s); %d would not be an increase.", t.Name, t.count, count))
	}
	return l.checkRoom(int64(count - t.count))
}

// Delete deletes a topic with all its records and calls done when that is durable
// and OnDelete has returned.
func (l *Log) Delete(t *Topic, done func(*Refusal, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.deleting {
		done(refuse(UnknownTopicOrPartition, "This server does not host this topic-partition."), nil)
		return
	}
	t.deleting = true
	l.committer.Submit(store.Op{
		Sync: true,
		Write: func(b *store.Batch) {
			data := appendPartitionPrefix(nil, t.ID, 0)[:topicPrefixSize]
			b.Delete(topicKey(t.ID))
			b.DeleteRange(data, after(data))
		},
		Done: func(err error) { l.deleted(t, err, done) },
	})
}

func (l *Log) deleted(t *Topic, err error, done func(*Refusal, error)) {
	if err != nil {
		done(nil, err)
		return
	}
	l.byName.Delete(t.Name)
	l.byID.Delete(t.ID)
	t.deleted.Store(true)
	for _, p := range t.Partitions() {
		p.wakeAll()
	}
	l.names.remove(t)
	if l.onDelete == nil {
		done(nil, nil)
		return
	}
	l.running.Go(func() {
		l.onDelete(t.Name, t.ID)
		done(nil, nil)
	})
}

// CheckName tells why a client could not create a topic of this name, nil if it
// could.
func (l *Log) CheckName(name string) *Refusal {
	_, r := l.checkName(name, false)
	return r
}

// Configs resolves every configuration of a topic that sets these itself.
func (l *Log) Configs(configs []Config) []Value {
	values := make([]Value, len(ConfigDefs))
	for i := range ConfigDefs {
		values[i] = resolve(&ConfigDefs[i], configs, l.broker)
	}
	return values
}
