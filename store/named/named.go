// Package named keeps values under names, in the Pebble of the groups: few, each
// written as a whole, each with a version and, if it is to go by itself, an expiry.
// What operators and producers store is here: snapshots of offsets.
package named

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall-mq/rollcall/store"
)

// The rows, below the first byte of [space]; package groups has the smaller ones:
//
//	key                     value
//	05 | kind u8 | 00       counter: version u8 = 1, the last version given u64
//	05 | kind u8 | 01 name  row: version u8 = 1, version u64, expiry u64 (Unix ms, 0 never), value
//
// Numbers are big endian. What is here is on disk: never change its meaning.
const (
	space      = 5
	counterRow = 0
	namedRow   = 1

	rowVersion = 1
	rowHeadLen = 17
)

// Kind is a namespace of names. The numbers are on disk.
type Kind byte

// The kinds that there are.
const (
	// ProducerOffsets are snapshots that producers register.
	ProducerOffsets Kind = 1
	// OffsetSnapshots are snapshots of committed offsets that operators take.
	OffsetSnapshots Kind = 2
)

// ErrVersion is what a conditional delete fails with when the row is another one.
var ErrVersion = errors.New("there is another version under that name")

// ErrReleased is what a wait ends with when the process stops.
var ErrReleased = errors.New("the gateway is stopping")

// errRow is what a row that is not one of ours is reported with.
var errRow = errors.New("a named value has an unknown version or is damaged")

// Row is a value under a name.
type Row struct {
	Name string
	// Version grows with every row of the table, over deletions and restarts.
	Version uint64
	// Expires is when the row goes; zero for never.
	Expires time.Time
	Value   []byte
}

// expired: at its expiry itself a row is still there.
func (r *Row) expired(now time.Time) bool {
	return !r.Expires.IsZero() && now.UnixMilli() > r.Expires.UnixMilli()
}

// Table is all rows of one kind. An answer of it is durable, and so is whatever it
// rests on: the lock is held until the disk has confirmed, since rows are few and
// written seldom.
type Table struct {
	db        *pebble.DB
	committer *store.Committer
	kind      Kind
	now       func() time.Time

	mu sync.Mutex
	// last is the last version given.
	last uint64
	// added is closed when a row is added, and made anew.
	added chan struct{}
	// released is closed by Release.
	released chan struct{}
	release  sync.Once
}

// Open reads a table.
func Open(db *store.DB, kind Kind) (*Table, error) {
	t := &Table{db: db.Pebble, committer: db.Committer, kind: kind, now: time.Now,
		added: make(chan struct{}), released: make(chan struct{})}
	value, closer, err := t.db.Get(t.key(counterRow, ""))
	if errors.Is(err, pebble.ErrNotFound) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = closer.Close() }() // it only gives back memory
	if len(value) != 9 || value[0] != rowVersion {
		return nil, errRow
	}
	t.last = binary.BigEndian.Uint64(value[1:])
	return t, nil
}

func (t *Table) key(row byte, name string) []byte {
	return append([]byte{space, byte(t.kind), row}, name...)
}

// Add stores a value under a name unless there is one that has not expired; then it
// returns that one, and false.
func (t *Table) Add(name string, value []byte, expires time.Time) (Row, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, ok, err := t.get(name)
	if err != nil || ok {
		return old, false, err
	}
	row := Row{Name: name, Version: t.last + 1, Value: value}
	if !expires.IsZero() {
		row.Expires = time.UnixMilli(expires.UnixMilli()) // as it is stored
	}
	err = t.write(func(b *store.Batch) {
		b.Set(t.key(counterRow, ""), binary.BigEndian.AppendUint64([]byte{rowVersion}, row.Version))
		b.Set(t.key(namedRow, name), row.encode())
	})
	if err != nil {
		return Row{}, false, err
	}
	t.last = row.Version
	close(t.added)
	t.added = make(chan struct{})
	return row, true, nil
}

// Get returns a row that has not expired, and whether there is one.
func (t *Table) Get(name string) (Row, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.get(name)
}

// Release ends every Await, for ever: the process is about to stop. Everything else
// works on.
func (t *Table) Release() { t.release.Do(func() { close(t.released) }) }

// Await is Get, but waits for a row that is not there until ctx ends. It fails with
// [ErrReleased] after Release.
func (t *Table) Await(ctx context.Context, name string) (Row, bool, error) {
	for {
		t.mu.Lock()
		row, ok, err := t.get(name)
		added := t.added
		t.mu.Unlock()
		if ok || err != nil {
			return row, ok, err
		}
		select {
		case <-added:
		case <-t.released:
			return Row{}, false, ErrReleased
		case <-ctx.Done():
			return Row{}, false, nil
		}
	}
}

func (t *Table) get(name string) (Row, bool, error) {
	value, closer, err := t.db.Get(t.key(namedRow, name))
	if errors.Is(err, pebble.ErrNotFound) {
		return Row{}, false, nil
	}
	if err != nil {
		return Row{}, false, err
	}
	defer func() { _ = closer.Close() }() // it only gives back memory
	row, err := decodeRow(name, value)
	if err != nil || row.expired(t.now()) {
		return Row{}, false, err
	}
	return row, true, nil
}

// Delete removes a row; what is gone already is no error. With a version other than
// 0 it removes that one only, and fails with [ErrVersion] if there is another.
func (t *Table) Delete(name string, version uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if version != 0 {
		row, ok, err := t.get(name)
		switch {
		case err != nil:
			return err
		case !ok:
			return nil
		case row.Version != version:
			return ErrVersion
		}
	}
	return t.write(func(b *store.Batch) { b.Delete(t.key(namedRow, name)) })
}

// List calls f with the rows that have not expired, in the order of their names, from
// the first one behind after on, until f returns false. f must not use the table.
func (t *Table) List(after string, f func(Row) bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.scan(after, func(r *Row) bool { return !r.expired(t.now()) }, f)
	return err
}

// Sweep removes the rows that have expired and returns how many. A row that cannot
// be read stays, and does not keep others.
func (t *Table) Sweep() (removed int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	var names []string
	damaged, err := t.scan("", func(r *Row) bool { return r.expired(now) }, func(r Row) bool {
		names = append(names, r.Name)
		return true
	})
	if err == nil && damaged > 0 {
		err = fmt.Errorf("%d rows stay: %w", damaged, errRow)
	}
	if len(names) == 0 {
		return 0, err
	}
	if err := t.write(func(b *store.Batch) {
		for _, name := range names {
			b.Delete(t.key(namedRow, name))
		}
	}); err != nil {
		return 0, err
	}
	return len(names), err
}

// scan calls f with the rows behind after that pass, until it returns false, and
// counts those that cannot be read.
func (t *Table) scan(after string, passes func(*Row) bool, f func(Row) bool) (damaged int, err error) {
	first := t.key(namedRow, after)
	if after != "" {
		first = append(first, 0)
	}
	it, err := t.db.NewIter(&pebble.IterOptions{LowerBound: first, UpperBound: t.key(namedRow+1, "")})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		row, err := decodeRow(string(it.Key()[3:]), it.Value())
		if err != nil {
			damaged++
			continue
		}
		if passes(&row) && !f(row) {
			break
		}
	}
	return damaged, it.Error()
}

// write commits and waits for the disk.
func (t *Table) write(f func(*store.Batch)) error {
	done := make(chan error, 1)
	t.committer.Submit(store.Op{Sync: true, Write: f, Done: func(err error) { done <- err }})
	return <-done
}

func (r *Row) encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte{rowVersion}, r.Version)
	ms := int64(0)
	if !r.Expires.IsZero() {
		ms = r.Expires.UnixMilli()
	}
	b = binary.BigEndian.AppendUint64(b, uint64(ms))
	return append(b, r.Value...)
}

func decodeRow(name string, b []byte) (Row, error) {
	if len(b) < rowHeadLen || b[0] != rowVersion {
		return Row{}, errRow
	}
	r := Row{Name: name, Version: binary.BigEndian.Uint64(b[1:]), Value: append([]byte(nil), b[rowHeadLen:]...)}
	if ms := int64(binary.BigEndian.Uint64(b[9:])); ms != 0 {
		r.Expires = time.UnixMilli(ms)
	}
	return r, nil
}
