package group

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A checkpoint is a set of rows: one for the snapshot of a group's membership, one
// for each topic that the group has offsets of, and one for each transaction that
// has offsets pending in it. The key is
//
//	tenant (length in front, empty for now) | group (length in front) | kind | name
//
// where the name is that of the topic, or the transaction's number (8 bytes) and id,
// so that the rows of a group lie together under one prefix and no group's prefix
// is the beginning of another's. The value is the format byte and what the kind
// has. Formats are never changed, only added.
const rowFormat = 1

// The kinds of rows; the numbers are on disk.
const (
	rowMembership = 1
	rowOffsets    = 2
	rowPending    = 3
)

// rowScratchMax is how many bytes of encoded rows the scratch space keeps for the
// next checkpoint.
const rowScratchMax = 1 << 20

// AppendRowPrefix appends the prefix that the keys of all rows of group id have
// and those of no other group.
func AppendRowPrefix(dst []byte, id string) []byte {
	dst = append(dst, 0)
	return appendString(dst, id)
}

// RowGroup returns the group that a state row belongs to. It fails for keys that
// no version up to this one writes.
func RowGroup(key []byte) (id string, err error) {
	d := decoder{buf: key}
	id, _, err = d.rowKey()
	return id, err
}

// rowKey reads a key up to and with its kind; what is left is the name.
func (d *decoder) rowKey() (id string, kind byte, err error) {
	if tenant := d.uvarint(); d.err == nil && tenant != 0 {
		return "", 0, fmt.Errorf("row of a tenant, which this version does not know")
	}
	id = d.string()
	kind = d.byte()
	if d.err != nil {
		return "", 0, fmt.Errorf("key of a row: %w", d.err)
	}
	if kind < rowMembership || kind > rowPending {
		return "", 0, fmt.Errorf("row of group %q of unknown kind %d", id, kind)
	}
	return id, kind, nil
}

// ApplyRow restores hard state from a row of a checkpoint. Rows come in any order,
// before all records, each key once. Nothing of the machine refers to key and
// value afterwards.
func (m *Machine) ApplyRow(key, value []byte) error {
	d := decoder{buf: key}
	id, kind, err := d.rowKey()
	if err != nil {
		return err
	}
	if id != m.id {
		return fmt.Errorf("row of group %q applied to group %q", id, m.id)
	}
	name := d.buf
	d.buf = value
	if format := d.byte(); d.err == nil && format != rowFormat {
		return fmt.Errorf("row of group %q of unknown format %d, this version knows %d", id, format, rowFormat)
	}
	switch kind {
	case rowMembership:
		if s := d.membership(); d.end() == nil {
			m.snap = s
		}
	case rowOffsets:
		if t := d.topicOffsets(string(name)); d.end() == nil {
			m.off.restore(t)
		}
	case rowPending:
		if txn, runs := d.pendingTxn(name); d.end() == nil {
			m.openPending().restore(&txn, runs)
		}
	}
	if d.err != nil {
		return fmt.Errorf("row of group %q, kind %d, %q: %w", id, kind, name, d.err)
	}
	return nil
}

// end returns the error of a decoder that should have read everything.
func (d *decoder) end() error {
	if d.err == nil && len(d.buf) > 0 {
		d.fail(errTrailing)
	}
	return d.err
}

// restore puts a topic of a checkpoint in place.
func (o *offsets) restore(t *topicOffsets) {
	at := o.open(t.name)
	o.count += len(t.entries) - len(at.entries)
	*at = *t
}

// appendTopic appends the value of a topic's row.
func appendTopic(dst []byte, t *topicOffsets) []byte {
	dst = append(dst, rowFormat)
	dst = appendID(dst, t.id)
	dst = binary.AppendUvarint(dst, uint64(len(t.entries)))
	// Neighbours have near numbers and times; what is stored is the difference, in
	// wrapping arithmetic, which loses nothing.
	var partition, commit int64
	for i := range t.entries {
		e := &t.entries[i]
		flags := offsetFlags(e.leaderEpoch, e.expire(), e.metadata())
		if e.rare != nil && e.rare.hasID {
			flags |= flagID
		}
		dst = append(dst, flags)
		dst = binary.AppendVarint(dst, int64(e.partition)-partition)
		dst = binary.AppendVarint(dst, e.offset)
		dst = binary.AppendVarint(dst, int64(e.commit)-commit)
		partition, commit = int64(e.partition), int64(e.commit)
		if flags == 0 {
			continue
		}
		dst = appendFlagged(dst, flags, e.leaderEpoch, e.expire(), e.metadata())
		if flags&flagID != 0 {
			dst = appendID(dst, e.rare.id)
		}
	}
	return dst
}

// topicOffsets reads the value of a topic's row behind the format byte.
func (d *decoder) topicOffsets(name string) *topicOffsets {
	t := &topicOffsets{name: name, stored: true}
	t.id = d.id()
	t.entries = make([]offsetEntry, d.count(4))
	var partition, commit int64
	for i := range t.entries {
		e := &t.entries[i]
		flags := d.flags(flagsKnown &^ flagCommit)
		step := d.varint()
		if i > 0 && step <= 0 {
			d.fail(errOrder)
		}
		partition += step
		if partition != int64(int32(partition)) {
			d.fail(errOverflow)
		}
		e.partition = int32(partition)
		e.offset = d.varint()
		commit += d.varint()
		e.commit = Time(commit)
		e.leaderEpoch = -1
		if flags == 0 {
			continue
		}
		epoch, expire, metadata := d.flagged(flags)
		e.leaderEpoch = epoch
		if flags == flagEpoch {
			continue
		}
		e.rare = &rareOffset{expire: expire, metadata: metadata}
		if flags&flagID != 0 {
			e.rare.id, e.rare.hasID = d.id(), true
		}
	}
	if d.err == nil && len(t.entries) == 0 {
		d.fail(errCount)
	}
	return t
}

// stepCheckpoint puts out the rows that are not any more what the last checkpoint
// or the load said, membership first, then topics by name, then transactions.
func (m *Machine) stepCheckpoint() {
	if m.snapDirty {
		m.snapDirty = false
		m.row(rowMembership, "", m.snap == nil, func(dst []byte) []byte {
			return appendMembership(append(dst, rowFormat), m.snap)
		})
	}
	if m.off.dirty {
		m.checkpointOffsets()
	}
	if m.pend != nil && m.pend.dirty {
		m.checkpointPending()
	}
}

func (m *Machine) checkpointOffsets() {
	m.off.dirty = false
	for _, t := range m.off.topics {
		if !t.dirty {
			continue
		}
		empty := len(t.entries) == 0
		if !empty || t.stored {
			m.row(rowOffsets, t.name, empty, func(dst []byte) []byte { return appendTopic(dst, t) })
		}
		t.dirty, t.stored = false, !empty
	}
	m.off.dropEmptied()
}

func (m *Machine) checkpointPending() {
	m.pend.dirty = false
	for _, x := range m.pend.txns {
		if !x.dirty {
			continue
		}
		empty := len(x.offsets) == 0 // then it has a row
		m.row(rowPending, pendingName(&x.txn), empty, func(dst []byte) []byte { return appendPendingTxn(dst, x) })
		x.dirty, x.stored = false, !empty
	}
	if m.pend.dropEmptied(); len(m.pend.txns) == 0 {
		m.pend = nil
	}
}

// row puts out one row, whose bytes live in the scratch space until the next step.
func (m *Machine) row(kind byte, name string, remove bool, value func(dst []byte) []byte) {
	buf := m.env.rows
	start := len(buf)
	buf = AppendRowPrefix(buf, m.id)
	buf = append(buf, kind)
	buf = append(buf, name...)
	r := Row{Key: slices.Clip(buf[start:])}
	if !remove {
		start = len(buf)
		buf = value(buf)
		r.Value = slices.Clip(buf[start:])
	}
	m.env.rows = buf
	m.env.out.Rows = append(m.env.out.Rows, r)
}
