package group

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// offsets is the hard state of a group's committed offsets: topics in the order
// of their names, partitions in the order of their numbers. The zero value is
// empty. A store has millions of these, nearly all of them small, so what is rare
// (metadata, explicit expiry, many topics) costs nothing where it does not occur.
type offsets struct {
	topics []*topicOffsets
	// index finds topics by name once they are many; nil before that.
	index map[string]*topicOffsets
	// count is the number of offsets.
	count int
	// dirty is set if any topic is.
	dirty bool
}

// topicOffsets are the committed offsets of one topic. It outlives its last
// offset until the next checkpoint, which removes its row.
type topicOffsets struct {
	name string
	// id is the topic id of the entries without one of their own.
	id      TopicID
	entries []offsetEntry
	// dirty: the row of the last checkpoint is not what the topic is now.
	dirty bool
	// stored: the last checkpoint has a row of the topic.
	stored bool
}

// offsetEntry is one committed offset.
type offsetEntry struct {
	partition   int32
	leaderEpoch int32
	offset      int64
	commit      Time
	rare        *rareOffset
}

// rareOffset is what most offsets do without.
type rareOffset struct {
	// expire is the explicit expiry, -1 for none.
	expire   Time
	metadata string
	// id is the topic id if hasID, else the topic's is meant. Offsets of one
	// topic have different ids only if some were committed by name while the id
	// was not known, or for a namesake whose deletion was not seen.
	id    TopicID
	hasID bool
}

// topicIndexMin is the number of topics from which on they are indexed.
const topicIndexMin = 32

func (o *offsets) empty() bool { return o.count == 0 }

// find returns a topic with at least one offset, or nil.
func (o *offsets) find(name string) *topicOffsets {
	if t := o.lookup(name); t != nil && len(t.entries) > 0 {
		return t
	}
	return nil
}

// lookup returns a topic, which may have no offsets any more, or nil.
func (o *offsets) lookup(name string) *topicOffsets {
	if o.index != nil {
		return o.index[name]
	}
	if at, ok := o.search(name); ok {
		return o.topics[at]
	}
	return nil
}

func (o *offsets) search(name string) (int, bool) {
	return slices.BinarySearchFunc(o.topics, name, func(t *topicOffsets, name string) int {
		return strings.Compare(t.name, name)
	})
}

// open returns a topic, which it makes if it has to.
func (o *offsets) open(name string) *topicOffsets {
	if t := o.lookup(name); t != nil {
		return t
	}
	at, _ := o.search(name)
	t := &topicOffsets{name: name}
	o.topics = slices.Insert(o.topics, at, t)
	switch {
	case o.index != nil:
		o.index[name] = t
	case len(o.topics) >= topicIndexMin:
		o.makeIndex()
	}
	return t
}

// openAll makes those topics of a record that have to be made, many at once:
// opening them one by one would move what is there for each.
func (o *offsets) openAll(topics []OffsetsTopic) {
	if len(topics) < topicIndexMin {
		return // each will be opened when its turn comes
	}
	if o.index == nil {
		o.makeIndex()
	}
	var fresh []*topicOffsets
	for i := range topics {
		name := topics[i].Name
		if len(topics[i].Partitions) > 0 && o.index[name] == nil {
			t := &topicOffsets{name: name}
			fresh = append(fresh, t)
			o.index[name] = t
		}
	}
	byName := func(a, b *topicOffsets) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(fresh, byName)
	o.topics = merge(o.topics, fresh, byName)
}

func (o *offsets) makeIndex() {
	o.index = make(map[string]*topicOffsets, max(2*topicIndexMin, len(o.topics)))
	for _, t := range o.topics {
		o.index[t.name] = t
	}
}

// merge puts the elements of more into list; both are sorted, and have no element
// in common.
func merge[T any](list, more []T, compare func(a, b T) int) []T {
	i, j := len(list)-1, len(more)-1
	list = append(list, more...)
	for k := len(list) - 1; j >= 0; k-- {
		if i >= 0 && compare(list[i], more[j]) > 0 {
			list[k] = list[i]
			i--
		} else {
			list[k] = more[j]
			j--
		}
	}
	return list
}

// dropEmptied forgets the topics that have no offsets any more.
func (o *offsets) dropEmptied() {
	o.topics = slices.DeleteFunc(o.topics, func(t *topicOffsets) bool {
		if len(t.entries) == 0 {
			delete(o.index, t.name)
			return true
		}
		return false
	})
	if len(o.topics) == 0 {
		o.topics, o.index = nil, nil
	}
}

// clear removes all offsets.
func (o *offsets) clear() {
	for _, t := range o.topics {
		t.entries = nil
		o.touch(t)
	}
	o.count = 0
}

func (o *offsets) touch(t *topicOffsets) {
	t.dirty = true
	o.dirty = true
}

// at returns the entry of a partition, or nil.
func (t *topicOffsets) at(partition int32) *offsetEntry {
	if i, ok := t.search(partition); ok {
		return &t.entries[i]
	}
	return nil
}

// search looks first where the entry is if all partitions have one.
func (t *topicOffsets) search(partition int32) (int, bool) {
	if i := int(partition); i >= 0 && i < len(t.entries) && t.entries[i].partition == partition {
		return i, true
	}
	return slices.BinarySearchFunc(t.entries, partition, func(e offsetEntry, partition int32) int {
		return cmp.Compare(e.partition, partition)
	})
}

// set stores offsets of a record and returns how many partitions had none before.
func (t *topicOffsets) set(id TopicID, partitions []OffsetsPartition) (added int) {
	before := len(t.entries)
	for i := range partitions {
		at, found := t.search(partitions[i].Partition)
		if !found {
			t.makeRoom(at, partitions[i:])
			at, _ = t.search(partitions[i].Partition)
		}
		if before == 0 || len(t.entries) == 1 {
			t.id = id // no other entry relies on the id that was there
		}
		t.store(&t.entries[at], id, &partitions[i])
	}
	return len(t.entries) - before
}

// makeRoom makes empty entries for the partitions that have none, of which the first
// is one whose place is at: all of them at once, since a request may name thousands
// in any order.
func (t *topicOffsets) makeRoom(at int, partitions []OffsetsPartition) {
	if len(partitions) == 1 {
		t.entries = slices.Insert(t.entries, at, offsetEntry{partition: partitions[0].Partition})
		return
	}
	fresh := make([]offsetEntry, 0, len(partitions))
	for i := range partitions {
		if _, found := t.search(partitions[i].Partition); !found {
			fresh = append(fresh, offsetEntry{partition: partitions[i].Partition})
		}
	}
	byPartition := func(a, b offsetEntry) int { return cmp.Compare(a.partition, b.partition) }
	slices.SortFunc(fresh, byPartition)
	fresh = slices.CompactFunc(fresh, func(a, b offsetEntry) bool { return a.partition == b.partition })
	if len(t.entries) == 0 {
		t.entries = fresh
		t.shrink()
		return
	}
	t.entries = merge(t.entries, fresh, byPartition)
}

// store makes e the offset that a record says.
func (t *topicOffsets) store(e *offsetEntry, id TopicID, p *OffsetsPartition) {
	e.leaderEpoch, e.offset, e.commit = p.LeaderEpoch, p.Offset, p.Commit
	if p.Metadata == "" && p.Expire == -1 && id == t.id {
		e.rare = nil
		return
	}
	if e.rare == nil {
		e.rare = new(rareOffset)
	}
	*e.rare = rareOffset{expire: p.Expire, metadata: p.Metadata}
	if id != t.id {
		e.rare.id, e.rare.hasID = id, true
	}
}

// topicID returns the topic id that an entry of t was committed for.
func (t *topicOffsets) topicID(e *offsetEntry) TopicID {
	if e.rare != nil && e.rare.hasID {
		return e.rare.id
	}
	return t.id
}

func (e *offsetEntry) metadata() string {
	if e.rare == nil {
		return ""
	}
	return e.rare.metadata
}

// expire returns the explicit expiry, -1 for none.
func (e *offsetEntry) expire() Time {
	if e.rare == nil {
		return -1
	}
	return e.rare.expire
}

func (m *Machine) applyOffsets(rec *Record) {
	m.putOffsets(rec.Offsets)
	if m.pend != nil {
		m.pend.supersede(rec.Offsets)
	}
}

// putOffsets makes offsets the committed ones.
func (m *Machine) putOffsets(topics []OffsetsTopic) {
	for i := range topics {
		topic := &topics[i]
		if len(topic.Partitions) == 0 {
			continue
		}
		t := m.off.lookup(topic.Name)
		if t == nil {
			m.off.openAll(topics[i:])
			t = m.off.open(topic.Name)
		}
		m.off.count += t.set(topic.ID, topic.Partitions)
		m.off.touch(t)
	}
}

func (m *Machine) applyOffsetsDeleted(rec *Record) {
	for i := range rec.Offsets {
		topic := &rec.Offsets[i]
		t := m.off.lookup(topic.Name)
		if t == nil {
			continue
		}
		if n := t.remove(topic.Partitions); n > 0 {
			m.off.count -= n
			m.off.touch(t)
		}
	}
}

// remove removes partitions, named in any order, and returns how many had an offset.
func (t *topicOffsets) remove(partitions []OffsetsPartition) int {
	drop := make([]int, 0, len(partitions))
	for i := range partitions {
		if at, ok := t.search(partitions[i].Partition); ok {
			drop = append(drop, at)
		}
	}
	slices.Sort(drop)
	drop = slices.Compact(drop)
	// What is between two of them moves up together: nothing moves twice.
	for i, at := range drop {
		end := len(t.entries)
		if i+1 < len(drop) {
			end = drop[i+1]
		}
		copy(t.entries[at-i:], t.entries[at+1:end])
	}
	kept := len(t.entries) - len(drop)
	clear(t.entries[kept:])
	t.entries = t.entries[:kept]
	t.shrink()
	return len(drop)
}

// shrink gives back memory that is mostly unused.
func (t *topicOffsets) shrink() {
	switch {
	case len(t.entries) == 0:
		t.entries = nil
	case cap(t.entries) > 2*len(t.entries):
		t.entries = slices.Clone(t.entries)
	}
}

// check returns the first invariant of the offsets that does not hold.
func (o *offsets) check() error {
	count, dirty := 0, false
	for i, t := range o.topics {
		if i > 0 && o.topics[i-1].name >= t.name {
			return fmt.Errorf("topics %q and %q are not in order", o.topics[i-1].name, t.name)
		}
		if o.index != nil && o.index[t.name] != t {
			return fmt.Errorf("topic %q is not in the index", t.name)
		}
		if len(t.entries) == 0 && !t.dirty {
			return fmt.Errorf("topic %q has no offsets and would never be removed", t.name)
		}
		if !t.stored && !t.dirty {
			return fmt.Errorf("topic %q would never be stored", t.name)
		}
		for j := range t.entries {
			if j > 0 && t.entries[j-1].partition >= t.entries[j].partition {
				return fmt.Errorf("partitions of topic %q are not in order", t.name)
			}
		}
		count += len(t.entries)
		dirty = dirty || t.dirty
	}
	switch {
	case o.index != nil && len(o.index) != len(o.topics):
		return fmt.Errorf("%d topics, %d of them in the index", len(o.topics), len(o.index))
	case o.count != count:
		return fmt.Errorf("%d offsets, counted as %d", count, o.count)
	case dirty && !o.dirty:
		return fmt.Errorf("a dirty topic in clean offsets")
	}
	return nil
}
