package groups

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall-mq/rollcall/store"
)

// ErrFenced is what an append of an owner fails with when the shard has been
// loaded by another one since.
var ErrFenced = errors.New("the shard has another owner")

// Log is the change log of all shards. Its methods may be called concurrently for
// different shards; for one shard, appends and checkpoints come from one goroutine,
// while the reading ones may come from any.
type Log struct {
	db        *pebble.DB
	committer *store.Committer
	shards    []shard
	appends   sync.Pool
}

// shard is what is known of a shard without reading.
type shard struct {
	// mu is held from the check of an operation until it is handed to the
	// committer, so that the order here is the order on disk.
	mu sync.Mutex
	// epoch is that of the owner; loaded tells whether there was one since Open.
	epoch  uint64
	loaded bool
	// next is the sequence number of the next append.
	next uint64
	// folded and base are the first sequence numbers that the state rows and the
	// base rows do not contain, as of the last operation handed in.
	folded, base uint64
	// rows: there may be state rows.
	rows bool
	// total is how many bytes the batches took since the log began.
	total uint64

	// The rest is written under mu, but read without it: mu is held while an append
	// waits for room, which may be as long as the disk hangs.

	// first is the first sequence number in the log.
	first atomic.Uint64
	// kept is how many bytes the batches from first on take.
	kept atomic.Int64
	// durable is the first sequence number that is not on disk; Pebble shows more.
	// The committer writes it.
	durable atomic.Uint64
}

// Open reads what there is of each shard. Nothing is written.
func Open(db *store.DB, shards uint32) (*Log, error) {
	l := &Log{db: db.Pebble, committer: db.Committer, shards: make([]shard, shards)}
	l.appends.New = func() any { return newAppendOp() }
	it, err := l.db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	return l, errors.Join(l.read(it), it.Close())
}

// read finds the bounds of every shard, space by space and in order. A seek loads the
// block that it ends in, which has megabytes where a large group's rows are: so the
// iterator never goes back, and shards without rows are not looked for.
func (l *Log) read(it *pebble.Iterator) error {
	for n := range l.shards {
		if err := l.shards[n].readMeta(it, uint32(n)); err != nil {
			return fmt.Errorf("shard %d: %w", n, err)
		}
	}
	err := l.eachShard(it, stateSpace, func(s *shard, _ uint32) error {
		s.rows = true
		return nil
	})
	if err != nil {
		return err
	}
	return l.eachShard(it, logSpace, func(s *shard, n uint32) error { return s.readLog(it, n) })
}

// eachShard goes to the first row of each shard that has one in a space.
func (l *Log) eachShard(it *pebble.Iterator, sp space, found func(s *shard, n uint32) error) error {
	for n := uint32(0); it.SeekGE(appendPrefix(nil, sp, n)); n++ {
		var ok bool
		if n, ok = shardOf(it.Key(), sp); !ok || int(n) >= len(l.shards) {
			break
		}
		if err := found(&l.shards[n], n); err != nil {
			return fmt.Errorf("shard %d: %w", n, err)
		}
	}
	return it.Error()
}

// readMeta reads the numbers of a shard. Without a log, everything is at folded.
func (s *shard) readMeta(it *pebble.Iterator, n uint32) error {
	for ok := it.SeekGE(metaKey(n, 0)); ok && len(it.Key()) == metaKeyLen; ok = it.Next() {
		if m, ok := shardOf(it.Key(), metaSpace); !ok || m != n {
			break
		}
		value, err := parseMeta(it.Value())
		if err != nil {
			return err
		}
		switch name := metaName(it.Key()[prefixLen]); name {
		case epochRow:
			s.epoch = value
		case foldedRow:
			s.folded = value
		case baseRow:
			s.base = value
		default:
			return fmt.Errorf("unknown number %d", name)
		}
	}
	if s.epoch == 0 {
		s.epoch = 1 // that of the bootstrap
	}
	s.next = s.folded
	s.first.Store(s.folded)
	s.durable.Store(s.folded)
	return it.Error()
}

// readLog finds where the log of a shard begins, which is where it is, and ends.
func (s *shard) readLog(it *pebble.Iterator, n uint32) error {
	first, head, _, err := current(it)
	if err != nil {
		return err
	}
	s.first.Store(first)
	trimmed := head.before
	it.SeekLT(logKey(n, math.MaxUint64))
	last, head, size, err := current(it)
	if err != nil {
		return err
	}
	s.next = max(s.folded, last+uint64(head.count))
	s.total = head.before + size
	s.kept.Store(int64(s.total - trimmed))
	s.durable.Store(s.next)
	return nil
}

// current returns the batch that it is at; size is that of its key and value.
func current(it *pebble.Iterator) (first uint64, head batchHead, size uint64, err error) {
	if first, err = logKeyFirst(it.Key()); err != nil {
		return 0, head, 0, err
	}
	head, _, err = parseBatch(it.Value())
	return first, head, uint64(len(it.Key()) + len(it.Value())), err
}

// appendOp is one append on its way. It is used again, so that an append does not
// allocate.
type appendOp struct {
	op    store.Op
	log   *Log
	shard *shard
	key   [logKeyLen]byte
	head  [batchHeadLen]byte
	value []byte
	end   uint64
	done  func(error)
}

func newAppendOp() *appendOp {
	a := &appendOp{}
	a.op = store.Op{Write: a.write, Sync: true, Done: a.finish}
	return a
}

func (a *appendOp) write(b *store.Batch) { b.SetJoined(a.key[:], a.head[:], a.value) }

func (a *appendOp) finish(err error) {
	if err == nil {
		a.shard.durable.Store(a.end)
	}
	done := a.done
	a.value, a.done = nil, nil
	a.log.appends.Put(a)
	done(err)
}

// Append writes the records first to first+count-1 of a shard as one batch,
// atomically and durably, and calls done once, in the order of appends, with nil
// when they are durable or with the error that ends the store, or [ErrFenced]. It
// blocks while too much waits for the disk. value is copied before it returns.
func (l *Log) Append(n uint32, epoch, first uint64, count int, value []byte, done func(error)) {
	s := &l.shards[n]
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch != s.epoch || !s.loaded {
		// By way of the committer, so that done comes in order.
		l.committer.Submit(store.Op{Done: func(err error) {
			if err == nil {
				err = ErrFenced
			}
			done(err)
		}})
		return
	}
	if first != s.next || count <= 0 {
		panic(fmt.Sprintf("groups: shard %d: %d records appended at %d, want %d", n, count, first, s.next))
	}
	a := l.appends.Get().(*appendOp)
	a.log, a.shard, a.value, a.done = l, s, value, done
	a.end = first + uint64(count)
	appendLogKey(a.key[:0], n, first)
	batchHead{count: uint32(count), before: s.total}.appendTo(a.head[:0])
	s.next = a.end
	size := logKeyLen + batchHeadLen + len(value)
	s.total += uint64(size)
	s.kept.Add(int64(size))
	l.committer.Submit(a.op)
}

// Checkpoint replaces state rows (nil deletes one) and remembers folded, the first
// sequence number that they do not contain: atomically, behind every append made
// before it, without a sync of its own. rows is consumed before it returns. The
// checkpoint of an owner that is fenced is dropped.
func (l *Log) Checkpoint(n uint32, epoch, folded uint64, rows iter.Seq2[[]byte, []byte]) {
	b := l.encode(stateSpace, n, rows)
	defer b.Close()
	s := &l.shards[n]
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch != s.epoch || !s.loaded {
		return
	}
	if folded < s.folded || folded > s.next {
		panic(fmt.Sprintf("groups: shard %d: folded to %d, want %d to %d", n, folded, s.folded, s.next))
	}
	s.folded, s.rows = folded, true
	b.Set(metaKey(n, foldedRow), metaValue(folded))
	l.committer.Submit(store.Op{Write: func(all *store.Batch) { all.Append(b) }})
}

// encode puts rows into a batch of their own: the iterator is the caller's and may
// take its time, while others commit.
func (l *Log) encode(sp space, n uint32, rows iter.Seq2[[]byte, []byte]) *store.Batch {
	b := l.committer.NewBatch()
	key := appendPrefix(nil, sp, n)
	for k, v := range rows {
		key = append(key[:prefixLen], k...)
		if v == nil {
			b.Delete(key)
		} else {
			b.Set(key, v)
		}
	}
	return b
}

// Bounds returns the first sequence number that the change log still has and how
// many bytes its batches take.
func (l *Log) Bounds(n uint32) (first uint64, bytes int64, err error) {
	s := &l.shards[n]
	return s.first.Load(), s.kept.Load(), l.committer.Err()
}

// Trim removes the batches whose records all come before upto from the change log
// and at the same time replaces base rows (nil deletes one), which then contain
// everything before upto. It never passes the last checkpoint or what is durable:
// that is an error, as is going back. Like a checkpoint it has no sync of its own;
// it returns when BaseRows shows its rows, so that the next one begins from them.
func (l *Log) Trim(n uint32, epoch, upto uint64, rows iter.Seq2[[]byte, []byte]) error {
	b := l.encode(baseSpace, n, rows)
	defer b.Close()
	written := make(chan error, 1)
	if err := l.submitTrim(n, epoch, upto, b, func(err error) { written <- err }); err != nil {
		return err
	}
	return <-written
}

// submitTrim hands a trim to the committer, with the base rows in b.
func (l *Log) submitTrim(n uint32, epoch, upto uint64, b *store.Batch, done func(error)) error {
	s := &l.shards[n]
	s.mu.Lock()
	defer s.mu.Unlock()
	switch limit := min(s.folded, s.durable.Load()); {
	case l.committer.Err() != nil:
		return l.committer.Err()
	case epoch != s.epoch || !s.loaded:
		return ErrFenced
	case upto > limit:
		return fmt.Errorf("trim of shard %d to %d passes its checkpoint, or what is durable: %d", n, upto, limit)
	case upto < s.base:
		return fmt.Errorf("trim of shard %d to %d goes back behind %d", n, upto, s.base)
	}
	first, size, err := l.cut(n, s.first.Load(), upto)
	if err != nil {
		return err
	}
	if first > s.first.Load() {
		b.DeleteRange(logKey(n, s.first.Load()), logKey(n, first))
	}
	b.Set(metaKey(n, baseRow), metaValue(upto))
	s.base = upto
	s.first.Store(first)
	s.kept.Add(-int64(size))
	l.committer.Submit(store.Op{Write: func(all *store.Batch) { all.Append(b) }, Done: done})
	return nil
}

// cut returns where the log begins when what lies entirely before upto is gone, and
// how many bytes that is. Everything before upto must be durable, hence visible;
// batches after it may not be yet.
func (l *Log) cut(n uint32, low, upto uint64) (first, size uint64, err error) {
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: logKey(n, low), UpperBound: logKey(n, math.MaxUint64)})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.First() {
		return max(low, upto), 0, it.Error()
	}
	_, oldest, _, err := current(it)
	if err != nil {
		return 0, 0, err
	}
	var end uint64
	for ok := seekBatch(it, n, upto); ok; ok = it.Next() {
		first, head, size, err := current(it)
		if err != nil {
			return 0, 0, err
		}
		if first+uint64(head.count) > upto {
			return first, head.before - oldest.before, nil
		}
		end = head.before + size
	}
	return upto, end - oldest.before, it.Error()
}

// seekBatch goes to the last batch that begins at or before seq, or else to the
// first one.
func seekBatch(it *pebble.Iterator, n uint32, seq uint64) bool {
	if seq < math.MaxUint64 && it.SeekLT(logKey(n, seq+1)) {
		return true
	}
	return it.First()
}

// OwnedUntil is the zero time: a data directory has one process, and what it owns
// it owns for ever.
func (l *Log) OwnedUntil(uint32) time.Time { return time.Time{} }
