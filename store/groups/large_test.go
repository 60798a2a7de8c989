package groups

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/rollcall-mq/rollcall/store"
)

// TestLargeRowsAreReadSeldom has one shard with large rows among many without. Each
// look for a row in one of those would end at a large one and read it whole: a start
// took a minute with two groups of 120 MiB.
func TestLargeRowsAreReadSeldom(t *testing.T) {
	const many = 50
	fs := vfs.NewMem()
	var reads atomic.Int64
	count := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, ".sst") {
			reads.Add(1)
		}
		return nil
	})
	reopen := func() (*store.Store, *Log) {
		// Nothing large fits into the cache.
		s, err := store.Open(store.Options{Dir: "data", FS: errorfs.Wrap(fs, count), Shards: many, CacheBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		reads.Store(0)
		l, err := Open(s.Groups(), many)
		if err != nil {
			t.Fatal(err)
		}
		return s, l
	}
	nothing := func([]byte, []byte) error { return nil }
	loadAll := func(l *Log) {
		for n := range uint32(many) {
			if _, _, err := l.Load(t.Context(), n, nothing, func(uint64, []byte) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, l := reopen()
	loadAll(l)
	large := make([]byte, 4<<20)
	for _, n := range []uint32{many / 2, many - 1} {
		done := make(chan error, 1)
		l.Append(n, 2, 0, 1, large, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		l.Checkpoint(n, 2, 1, func(yield func(k, v []byte) bool) { yield([]byte("k"), large) })
	}
	mustClose(t, s)

	s, l = reopen()
	loadAll(l)
	if n := reads.Load(); n > many/2 {
		t.Errorf("%d reads of tables by a start of %d shards, of which 2 have rows", n, many)
	}
	mustClose(t, s)
}
