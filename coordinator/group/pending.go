package group

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// pendings is the hard state of the offsets that transactions have staged and that
// are neither committed nor aborted yet. Most groups have none, and a nil pointer.
//
// Of several writes to one partition the last one in the log stays, whenever the
// transactions end (Kafka's OffsetMetadataManager compares the record's offset).
// So each pending offset has a position, and is superseded by what is written
// behind it: a plain commit at once, another transaction's offset when that is
// committed.
type pendings struct {
	// txns are in the order of transactional ids, then numbers. One whose offsets
	// are gone stays until the next checkpoint if that has to remove its row.
	txns []*pendingTxn
	// at has what is pending for each partition.
	at map[pendingKey][]*pendingOffset
	// last is the highest position of those that are pending.
	last uint64
	// dirty: some rows of the last checkpoint are not what they should be now.
	dirty bool
}

type pendingKey struct {
	topic     string
	partition int32
}

// pendingTxn is what one transaction has staged.
type pendingTxn struct {
	txn Transaction
	// offsets are in the order of their positions, each partition once.
	offsets       []*pendingOffset
	dirty, stored bool // as in topicOffsets
}

// pendingOffset is one staged offset. Its Expire is always -1.
type pendingOffset struct {
	OffsetsPartition
	txn   *pendingTxn
	topic string
	id    TopicID
	// position orders the writes of the group.
	position uint64
	// superseded: committing the transaction does not commit this.
	superseded bool
	// gone: it is to be taken out of the transaction's offsets.
	gone bool
}

func (e *pendingOffset) key() pendingKey { return pendingKey{e.topic, e.Partition} }

// empty tells whether nothing is pending.
func (p *pendings) empty() bool { return p == nil || len(p.at) == 0 }

// has tells whether a transaction has an offset pending for a partition.
func (p *pendings) has(topic string, partition int32) bool {
	return p != nil && len(p.at[pendingKey{topic, partition}]) > 0
}

func (p *pendings) search(txn *Transaction) (int, bool) {
	return slices.BinarySearchFunc(p.txns, txn, func(x *pendingTxn, txn *Transaction) int {
		return cmp.Or(cmp.Compare(x.txn.ID, txn.ID), cmp.Compare(x.txn.Number, txn.Number))
	})
}

// find returns a transaction that has something pending, or nil.
func (p *pendings) find(txn *Transaction) *pendingTxn {
	if p == nil {
		return nil
	}
	if at, ok := p.search(txn); ok && len(p.txns[at].offsets) > 0 {
		return p.txns[at]
	}
	return nil
}

func (p *pendings) touch(x *pendingTxn) {
	x.dirty = true
	p.dirty = true
}

// stage adds offsets of a transaction. One that it has pending for the same
// partition is replaced.
func (p *pendings) stage(txn *Transaction, position uint64, superseded bool, topics []OffsetsTopic) {
	at, ok := p.search(txn)
	if !ok {
		p.txns = slices.Insert(p.txns, at, &pendingTxn{})
	}
	x := p.txns[at]
	x.txn = *txn
	for i := range topics {
		t := &topics[i]
		for j := range t.Partitions {
			e := &pendingOffset{
				OffsetsPartition: t.Partitions[j], txn: x, topic: t.Name, id: t.ID, position: position, superseded: superseded,
			}
			p.remove(x, e.key())
			p.at[e.key()] = append(p.at[e.key()], e)
			x.offsets = append(x.offsets, e)
		}
	}
	p.last = max(p.last, position)
	p.tidy(x)
}

// remove takes away what a transaction has pending for a partition. tidy has to follow.
func (p *pendings) remove(x *pendingTxn, key pendingKey) {
	list := p.at[key]
	at := slices.IndexFunc(list, func(e *pendingOffset) bool { return e.txn == x })
	if at < 0 {
		return
	}
	list[at].gone = true
	if list = slices.Delete(list, at, at+1); len(list) == 0 {
		delete(p.at, key)
	} else {
		p.at[key] = list
	}
}

// tidy ends a change of a transaction: what is gone leaves, and so does the
// transaction if nothing is left of it, here and in the last checkpoint.
func (p *pendings) tidy(x *pendingTxn) {
	p.touch(x)
	x.offsets = slices.DeleteFunc(x.offsets, func(e *pendingOffset) bool { return e.gone })
	if len(x.offsets) == 0 && !x.stored {
		at, _ := p.search(&x.txn)
		p.txns = slices.Delete(p.txns, at, at+1)
	}
	if len(p.at) == 0 {
		p.last = 0
	}
}

// supersede notes that offsets of these partitions were committed just now.
func (p *pendings) supersede(topics []OffsetsTopic) {
	for i := range topics {
		for j := range topics[i].Partitions {
			p.supersedeBefore(pendingKey{topics[i].Name, topics[i].Partitions[j].Partition}, p.last+1)
		}
	}
}

// supersedeBefore notes that what is committed was written at a position.
func (p *pendings) supersedeBefore(key pendingKey, position uint64) {
	for _, e := range p.at[key] {
		if e.position < position && !e.superseded {
			e.superseded = true
			p.touch(e.txn)
		}
	}
}

// end takes away all that a transaction has pending, and returns what of it
// becomes committed if the transaction does.
func (p *pendings) end(x *pendingTxn) []OffsetsTopic {
	var topics []OffsetsTopic
	for _, e := range x.offsets {
		p.remove(x, e.key())
		if !e.superseded {
			topics = e.appendTo(topics)
		}
	}
	return topics
}

// appendTo appends an offset to a list; neighbours of one topic come together.
func (e *pendingOffset) appendTo(topics []OffsetsTopic) []OffsetsTopic {
	if n := len(topics); n == 0 || topics[n-1].Name != e.topic || topics[n-1].ID != e.id {
		topics = append(topics, OffsetsTopic{Name: e.topic, ID: e.id})
	}
	last := &topics[len(topics)-1]
	last.Partitions = append(last.Partitions, e.OffsetsPartition)
	return topics
}

// clear takes away all that is pending.
func (p *pendings) clear() {
	for _, x := range slices.Clone(p.txns) {
		p.end(x)
		p.tidy(x)
	}
}

// dropEmptied forgets the transactions that have nothing pending any more, whose
// rows the checkpoint has removed.
func (p *pendings) dropEmptied() {
	p.txns = slices.DeleteFunc(p.txns, func(x *pendingTxn) bool { return len(x.offsets) == 0 })
}

func (m *Machine) applyPending(rec *Record) {
	p := m.openPending()
	p.stage(&rec.Txn, p.last+1, false, rec.Offsets)
}

// openPending returns the pending offsets and begins them if there are none.
func (m *Machine) openPending() *pendings {
	if m.pend == nil {
		m.pend = &pendings{at: map[pendingKey][]*pendingOffset{}}
	}
	return m.pend
}

func (m *Machine) applyResolved(rec *Record) {
	x := m.pend.find(&rec.Txn)
	if x == nil {
		return
	}
	if rec.Commit {
		for _, e := range x.offsets {
			if !e.superseded {
				m.pend.supersedeBefore(e.key(), e.position)
			}
		}
	}
	won := m.pend.end(x)
	m.pend.tidy(x)
	if rec.Commit {
		m.putOffsets(won)
	}
}

func (m *Machine) applyPendingDeleted(rec *Record) {
	x := m.pend.find(&rec.Txn)
	if x == nil {
		return
	}
	for i := range rec.Offsets {
		t := &rec.Offsets[i]
		for j := range t.Partitions {
			m.pend.remove(x, pendingKey{t.Name, t.Partitions[j].Partition})
		}
	}
	m.pend.tidy(x)
}

// recordPendingDeletion removes the pending offsets that match, a record for each
// transaction, and tells whether there are any.
func (m *Machine) recordPendingDeletion(match func(e *pendingOffset) bool) bool {
	if m.pend.empty() {
		return false
	}
	var records []Record
	for _, x := range m.pend.txns {
		var gone deletion
		for _, e := range x.offsets {
			if match(e) {
				gone.add(e.topic, e.Partition)
			}
		}
		if len(gone.topics) > 0 {
			records = append(records, Record{Kind: RecordPendingDeleted, Txn: x.txn, Offsets: gone.topics})
		}
	}
	for _, rec := range records {
		m.record(rec)
	}
	return len(records) > 0
}

// check returns the first invariant of the pending offsets that does not hold.
func (p *pendings) check() error {
	if p == nil {
		return nil
	}
	count, indexed, dirty := 0, 0, false
	for i, x := range p.txns {
		if at, ok := p.search(&x.txn); !ok || at != i {
			return fmt.Errorf("transaction %q %d is not in order", x.txn.ID, x.txn.Number)
		}
		if !x.dirty && (len(x.offsets) == 0 || !x.stored) || len(x.offsets) == 0 && !x.stored {
			return fmt.Errorf("transaction %q %d has a row that nobody sees to", x.txn.ID, x.txn.Number)
		}
		for j, e := range x.offsets {
			switch {
			case e.gone || e.txn != x || !slices.Contains(p.at[e.key()], e):
				return fmt.Errorf("pending %s-%d is not found", e.topic, e.Partition)
			case e.position > p.last || j > 0 && e.position < x.offsets[j-1].position:
				return fmt.Errorf("pending %s-%d is not in order", e.topic, e.Partition)
			}
			indexed += len(p.at[e.key()])
		}
		count += len(x.offsets)
		dirty = dirty || x.dirty
	}
	switch {
	case count == 0 && (len(p.at) > 0 || p.last != 0), indexed < count:
		return errors.New("the index of pending offsets has some that are gone")
	case dirty && !p.dirty:
		return errors.New("a dirty transaction in clean pending offsets")
	}
	return nil
}
