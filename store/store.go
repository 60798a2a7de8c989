package store

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// closeWait is how long Close waits for a Pebble of a store that has failed.
const closeWait = time.Second

// Options says how to open a store.
type Options struct {
	// Dir is the data directory. It is created if it is missing.
	Dir string
	// FS is where Dir is; nil is the disk.
	FS vfs.FS
	// Shards is offsets.topic.num.partitions. It is fixed when the store is
	// created; 0 takes what an existing store has.
	Shards uint32
	// NoSync acknowledges writes without waiting for the disk (store.sync=false) and
	// syncs them within a second: a crash, of the process too, may take back those
	// of that time, but never one without the later. Syncs must not be faked below Pebble instead: its write-ahead
	// log says how far it was synced, and one that lies cannot be opened.
	NoSync bool
	// MinFreeBytes is store.min.free.bytes: with less free space than that,
	// [Store.DiskLow] is true. 0 turns the guard off.
	MinFreeBytes int64
	// CacheBytes is the size of the block cache that both Pebbles share; 0 is
	// CacheBytesDefault.
	CacheBytes int64
	// Version is the version of Rollcall that opens the store.
	Version string
	// ClusterID is the id of a new store; "" is a random one, as usual.
	ClusterID string
	// Logger takes messages of the store and its Pebbles.
	Logger Logger
	// Observe, if set, is told of each batch that the committer of groups/ or
	// topics/ (that is name) wrote, on the committer's goroutine. It must not block.
	Observe func(name string, c Commit)

	// formats is set by tests.
	formats *formats
}

// Store is an open data directory.
type Store struct {
	opts    Options
	info    Info
	failure *Failure
	dir     *directory
	cache   *pebble.Cache
	groups  *DB
	topics  *DB
	guard   *guard

	// opening: the Pebbles are being opened, and what fails in the background ends
	// that. hangs: one of them did not come back from it.
	opening atomic.Bool
	hangs   bool
}

// DB is one of the two Pebbles of a store. Keys that begin with the byte 0 belong
// to package store.
type DB struct {
	// Pebble is for reading. What it shows may not be durable yet.
	Pebble *pebble.DB
	// Committer is the only one that writes.
	Committer *Committer

	name string
}

// Open opens the data directory, creates it at the first start and completes a
// creation that a crash interrupted. An error says in one line what is wrong and
// what to do; a directory that is refused is left as it was.
func Open(o Options) (_ *Store, err error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = CacheBytesDefault
	}
	if o.formats == nil {
		o.formats = &currentFormats
	}
	s := &Store{opts: o, failure: NewFailure()}
	var isNew bool
	if s.dir, s.info, isNew, err = openDirectory(&s.opts); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if err := s.openPebbles(isNew); err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", o.Dir, err)
	}
	s.guard = startGuard(o.FS, o.Dir, o.MinFreeBytes, o.Logger)
	s.groups.Committer = s.newCommitter(s.groups)
	s.topics.Committer = s.newCommitter(s.topics)
	return s, nil
}

func (s *Store) newCommitter(db *DB) *Committer {
	o := CommitterOptions{Name: db.name, NoSync: s.opts.NoSync, Failure: s.failure}
	o.Observe = func(c Commit) {
		s.guard.wrote(c.Bytes)
		if s.opts.Observe != nil {
			s.opts.Observe(db.name, c)
		}
	}
	return NewCommitter(db.Pebble, o)
}

// openPebbles opens both Pebbles side by side, since either may have a write-ahead
// log to replay, and makes sure that they belong together.
func (s *Store) openPebbles(isNew bool) error {
	s.cache = pebble.NewCache(s.opts.CacheBytes)
	s.groups, s.topics = &DB{name: groupsName}, &DB{name: topicsName}
	results := make(chan opened, 2)
	s.opening.Store(true)
	for _, db := range []*DB{s.groups, s.topics} {
		go func() {
			o := opened{db: db}
			o.err = guarded(s.failure, func() (err error) {
				o.pebble, err = s.openPebble(db.name, isNew)
				return err
			})
			results <- o
		}()
	}
	if err := s.awaitPebbles(results); err != nil {
		return err
	}
	s.opening.Store(false)
	if isNew {
		return guarded(s.failure, s.create)
	}
	return guarded(s.failure, s.verify)
}

// opened is a Pebble, or why it could not be opened.
type opened struct {
	db     *DB
	pebble *pebble.DB
	err    error
}

// awaitPebbles takes both Pebbles. One that has failed may hang in its opening, as it
// does in its closing.
func (s *Store) awaitPebbles(results <-chan opened) (err error) {
	failed := s.failure.Failed()
	var giveUp <-chan time.Time
	for range 2 {
		for taken := false; !taken; {
			select {
			case o := <-results:
				taken = true
				o.db.Pebble = o.pebble
				if o.err != nil {
					err = errors.Join(err, fmt.Errorf("%s: %w", o.db.name, o.err))
				}
			case <-failed:
				failed, giveUp = nil, time.After(closeWait)
			case <-giveUp:
				s.hangs = true
				return s.failure.Err()
			}
		}
	}
	if failed := s.failure.Err(); failed != nil {
		return failed
	}
	return err
}

// Groups is the Pebble of groups and committed offsets.
func (s *Store) Groups() *DB { return s.groups }

// Topics is the Pebble of topics, records and transactions.
func (s *Store) Topics() *DB { return s.topics }

// Info is what was fixed when the store was created.
func (s *Store) Info() Info { return s.info }

// Failed is closed when the store cannot go on; see [Store.Err]. The process must
// then stop.
func (s *Store) Failed() <-chan struct{} { return s.failure.Failed() }

// Err is what ended the store, nil as long as it works.
func (s *Store) Err() error { return s.failure.Err() }

// DiskLow tells whether less space is free than Options.MinFreeBytes. It is safe
// for concurrent use and costs next to nothing.
func (s *Store) DiskLow() bool { return s.guard.low.Load() }

// FreeBytes is the free space as of the last look, some second ago; -1 if the
// file system does not tell.
func (s *Store) FreeBytes() int64 { return s.guard.free.Load() }

// Close writes what was submitted, closes the Pebbles and lets the directory go.
// It returns the error that ended the store, if one did. Iterators must be closed
// before.
func (s *Store) Close() error {
	if s.guard != nil {
		s.guard.stop()
	}
	var err error
	released := !s.hangs
	for _, db := range []*DB{s.groups, s.topics} {
		if db == nil || db.Pebble == nil {
			continue
		}
		if db.Committer != nil {
			_ = db.Committer.Close()
		}
		closed, closeErr := s.closePebble(db)
		released = released && closed
		err = errors.Join(err, closeErr)
	}
	if s.cache != nil && released {
		s.cache.Unref()
	}
	if released {
		err = errors.Join(err, s.dir.Close())
	}
	if failed := s.failure.Err(); failed != nil {
		return failed
	}
	return err
}

// closePebble closes a Pebble. One that has failed may hang or panic in that: then
// it is left to the end of the process, and so is the lock of the directory.
func (s *Store) closePebble(db *DB) (closed bool, err error) {
	if s.failure.Err() == nil {
		return true, guarded(s.failure, db.Pebble.Close)
	}
	done := make(chan struct{})
	ok := false
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		_ = db.Pebble.Close()
		ok = true
	}()
	select {
	case <-done:
		return ok, nil
	case <-time.After(closeWait):
		return false, nil
	}
}

// guarded runs f on a goroutine that may be ended by [fatalLogger], and returns
// its error or the failure that ended it. Pebble panics when the sync of a
// directory fails; while it is being opened or closed that is an error like others.
func guarded(failure *Failure, f func() error) error {
	result := make(chan error, 1)
	go func() {
		err := io.ErrUnexpectedEOF // Replaced below, or by the failure after Goexit.
		defer func() {
			if r := recover(); r != nil {
				cause, ok := r.(error)
				if _, bug := r.(runtime.Error); bug || !ok {
					panic(r)
				}
				failure.fail(cause)
			}
			if failed := failure.Err(); failed != nil {
				err = failed
			}
			result <- err
		}()
		err = f()
	}()
	return <-result
}
