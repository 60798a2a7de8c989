package named

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall-mq/rollcall/store"
)

// env is a table over a store in memory, with a clock that a test sets.
type env struct {
	*testing.T
	fs    *vfs.MemFS
	store *store.Store
	table *Table
	now   time.Time
}

func newEnv(t *testing.T) *env {
	e := &env{T: t, fs: vfs.NewCrashableMem(), now: time.UnixMilli(1_800_000_000_000)}
	e.open()
	t.Cleanup(func() { _ = e.store.Close() })
	return e
}

func (e *env) open() {
	e.Helper()
	var err error
	if e.store, err = store.Open(store.Options{Dir: "data", FS: e.fs, Shards: 1, Version: "test"}); err != nil {
		e.Fatal(err)
	}
	if e.table, err = Open(e.store.Groups(), ProducerOffsets); err != nil {
		e.Fatal(err)
	}
	e.table.now = func() time.Time { return e.now }
}

// crash goes on with what is on the disk.
func (e *env) crash() {
	e.Helper()
	fs := e.fs.CrashClone(vfs.CrashCloneCfg{})
	_ = e.store.Close()
	e.fs = fs
	e.open()
}

func (e *env) add(name, value string, expires time.Time) (Row, bool) {
	e.Helper()
	row, added, err := e.table.Add(name, []byte(value), expires)
	if err != nil {
		e.Fatal(err)
	}
	return row, added
}

// want fails unless a name has a value, "" for none.
func (e *env) want(name, value string) {
	e.Helper()
	row, ok, err := e.table.Get(name)
	if err != nil || ok != (value != "") || string(row.Value) != value {
		e.Errorf("%s is %q, %v, %v; want %q", name, row.Value, ok, err, value)
	}
}

// S2.1, S2.5, S2.11: the first value stays, versions only grow, and what is gone can
// be registered again, also over crashes.
func TestAddAndDelete(t *testing.T) {
	e := newEnv(t)
	first, added := e.add("a", "1", time.Time{})
	if !added {
		t.Error("the first was not added")
	}
	if again, added := e.add("a", "2", time.Time{}); added || string(again.Value) != "1" || again.Version != first.Version {
		t.Errorf("the second: %+v, %v", again, added)
	}
	e.crash()
	e.want("a", "1")
	if err := e.table.Delete("a", first.Version+999); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: %v", err)
	}
	e.want("a", "1")
	if err := e.table.Delete("a", first.Version); err != nil {
		t.Error(err)
	}
	if err := e.table.Delete("a", first.Version); err != nil {
		t.Errorf("gone already: %v", err)
	}
	e.crash()
	e.want("a", "")
	second, _ := e.add("a", "3", time.Time{})
	if second.Version <= first.Version {
		t.Errorf("version %d after %d", second.Version, first.Version)
	}
	// A delete that read the first version must not take the second.
	if err := e.table.Delete("a", first.Version); !errors.Is(err, ErrVersion) {
		t.Errorf("an older version: %v", err)
	}
	e.want("a", "3")
}

// S2.2: of many at the same time one is first, and all see its value.
func TestAddConcurrently(t *testing.T) {
	for _, n := range []int{10, 200} {
		e := newEnv(t)
		for round := range 20 {
			var created atomic.Int32
			var wg sync.WaitGroup
			values := make([]string, n)
			for i := range n {
				wg.Go(func() {
					row, added, err := e.table.Add(fmt.Sprint("id-", round), fmt.Append(nil, i), time.Time{})
					if err != nil {
						t.Error(err)
					}
					if added {
						created.Add(1)
					}
					values[i] = string(row.Value)
				})
			}
			wg.Wait()
			for _, v := range values {
				if v != values[0] {
					t.Fatalf("round %d: %q and %q", round, v, values[0])
				}
			}
			if created.Load() != 1 {
				t.Fatalf("round %d: %d were created", round, created.Load())
			}
		}
	}
}

// S2.3, S2.4, S2.13: a row is there at its expiry and not after it; a sweep takes what
// has expired, and leaves what it cannot read.
func TestExpiry(t *testing.T) {
	e := newEnv(t)
	e.add("a", "1", e.now.Add(time.Hour))
	e.add("b", "2", e.now.Add(2*time.Hour))
	e.add("c", "3", time.Time{})
	future := append([]byte{rowVersion + 1}, make([]byte, 40)...)
	if err := e.table.write(func(b *store.Batch) { b.Set(e.table.key(namedRow, "aa"), future) }); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		after time.Duration
		value string
	}{{time.Hour - time.Millisecond, "1"}, {time.Hour, "1"}, {time.Hour + time.Millisecond, ""}} {
		start := e.now
		e.now = start.Add(test.after)
		e.want("a", test.value)
		e.now = start
	}
	if n, err := e.table.Sweep(); n != 0 || !errors.Is(err, errRow) {
		t.Errorf("swept %d early, %v", n, err)
	}
	e.now = e.now.Add(90 * time.Minute)
	if row, added := e.add("a", "4", time.Time{}); !added || row.Version != 4 {
		t.Errorf("an expired one is in the way: %+v", row)
	}
	e.now = e.now.Add(time.Hour)
	if n, err := e.table.Sweep(); n != 1 || !errors.Is(err, errRow) {
		t.Errorf("swept %d, %v", n, err)
	}
	var names []string
	if err := e.table.List("", func(r Row) bool {
		names = append(names, r.Name)
		return true
	}); err != nil || fmt.Sprint(names) != "[a c]" {
		t.Errorf("%v, %v", names, err)
	}
	if _, _, err := e.table.Get("aa"); !errors.Is(err, errRow) {
		t.Errorf("a row of a newer version: %v", err)
	}
}

func TestList(t *testing.T) {
	e := newEnv(t)
	for _, name := range []string{"b", "a", "ab", "c"} {
		e.add(name, "x", time.Time{})
	}
	other, err := Open(e.store.Groups(), OffsetSnapshots)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.Add("aaa", nil, time.Time{}); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[string]string{"": "[a ab]", "a": "[ab b]", "aa": "[ab b]", "b": "[c]", "c": "[]"} {
		var names []string
		if err := e.table.List(after, func(r Row) bool {
			names = append(names, r.Name)
			return len(names) < 2
		}); err != nil || fmt.Sprint(names) != want {
			t.Errorf("after %q: %v, %v, want %s", after, names, err, want)
		}
	}
}

// TestGolden has the bytes of the rows: they are on disks.
func TestGolden(t *testing.T) {
	e := newEnv(t)
	e.add("id", "value", time.UnixMilli(1_800_000_000_001))
	for key, want := range map[string]string{
		"\x05\x01\x00":   "010000000000000001",
		"\x05\x01\x01id": "010000000000000001000001a3185c500176616c7565",
	} {
		value, closer, err := e.store.Groups().Pebble.Get([]byte(key))
		if errors.Is(err, pebble.ErrNotFound) {
			t.Errorf("%q is not there", key)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", value); got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
		_ = closer.Close()
	}
}
