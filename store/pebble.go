package store

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	groupsName = "groups"
	topicsName = "topics"

	// CacheBytesDefault is the size of the block cache. Groups are served from
	// memory and consumers mostly read what was just written, so it can be small.
	CacheBytesDefault = 32 << 20

	// pebbleFormat is Pebble's own format of store format 1. It is named, not
	// FormatNewest, so that a newer Pebble library does not silently make stores
	// that the version before cannot open.
	pebbleFormat = pebble.FormatValueSeparation

	// memTableBytes: a flush costs a new WAL with several syncs, so at 20 MB/s of
	// commits it should not come more than once a second; and what a start after a
	// crash replays is at most about two of these.
	memTableBytes = 16 << 20
)

var errLost = errors.New("its data is gone: restore groups and topics from the same backup")

// openPebble opens one Pebble; that of a new store is created.
func (s *Store) openPebble(name string, isNew bool) (*pebble.DB, error) {
	dir := s.opts.FS.PathJoin(s.opts.Dir, name)
	o := s.pebbleOptions(name)
	if !isNew {
		desc, err := pebble.Peek(dir, s.opts.FS)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil || !desc.Exists {
			return nil, errLost
		}
		if s.info.FormatVersion < s.opts.formats.current {
			// An older store keeps Pebble's format until it has been checkpointed.
			o.FormatMajorVersion = desc.FormatMajorVersion
		}
	}
	return pebble.Open(dir, o)
}

func (s *Store) pebbleOptions(name string) *pebble.Options {
	logger := fatalLogger{Logger: s.opts.Logger, name: name, failure: s.failure}
	o := &pebble.Options{
		FS:                 s.opts.FS,
		Logger:             logger,
		EventListener:      s.listener(logger),
		FormatMajorVersion: pebbleFormat,
		Cache:              s.cache,
		MaxOpenFiles:       500,

		MemTableSize: memTableBytes,
		// A slow flush may be overtaken by this many memtables before commits stall.
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0CompactionFileThreshold:   500,
		// Commits rather make reads slower than wait for compactions.
		L0StopWritesThreshold: 100,
		LBaseMaxBytes:         64 << 20,
		FlushSplitBytes:       4 << 20,
		// Trimmed history and deleted topics give their space back soon.
		FlushDelayDeleteRange: 10 * time.Second,
		BytesPerSync:          1 << 20,
	}
	o.CompactionConcurrencyRange = func() (int, int) { return 1, 2 }
	o.TargetFileSizes[0] = 4 << 20
	// Everything is read in ranges: groups at load, records by Fetch.
	o.Levels[0].BlockSize = 32 << 10
	o.Levels[0].IndexBlockSize = 64 << 10
	return o
}

// listener reports what an operator must know of a Pebble's background work.
func (s *Store) listener(l fatalLogger) *pebble.EventListener {
	var last atomic.Int64
	return &pebble.EventListener{
		// A flush that fails, on a full disk for instance, is tried again at once
		// and for ever; one line a second is enough. But the opening waits for it.
		BackgroundError: func(err error) {
			if s.opening.Load() {
				s.failure.fail(fmt.Errorf("%s: %w", l.name, err))
				return
			}
			now := time.Now().UnixNano()
			if before := last.Load(); now-before >= int64(time.Second) && last.CompareAndSwap(before, now) {
				l.Errorf("background work failed and is tried again: %v", err)
			}
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			l.Errorf("writes wait for background work: %s", info.Reason)
		},
		WriteStallEnd: func() { l.Infof("writes go on") },
	}
}
