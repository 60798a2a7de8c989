package groups

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/rollcall-mq/rollcall/store"
)

const shards = 3

func open(t testing.TB, fs vfs.FS) (*store.Store, *Log) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: "data", FS: fs, Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(s.Groups(), shards)
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

func mustClose(t testing.TB, s *store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A record of these tests is its sequence number, and it sets the row of its
// residue to that: so the rows before any sequence number can be computed.
func records(first uint64, count int) []byte {
	var value []byte
	for i := range count {
		value = binary.BigEndian.AppendUint64(value, first+uint64(i))
	}
	return value
}

const residues = 5

func rowKey(seq uint64) string { return fmt.Sprintf("row-%d", seq%residues) }

// rowsBefore are the rows that contain the records before upto.
func rowsBefore(upto uint64) map[string]uint64 {
	rows := map[string]uint64{}
	for seq := max(upto, residues) - residues; seq < upto; seq++ {
		rows[rowKey(seq)] = seq
	}
	return rows
}

// changes are the rows that change from one checkpoint to the next.
func changes(from, upto uint64) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		for seq := from; seq < upto; seq++ {
			if !yield([]byte(rowKey(seq)), binary.BigEndian.AppendUint64(nil, seq)) {
				return
			}
		}
	}
}

// contents is what a shard was found to have.
type contents struct {
	folded, epoch, end, base uint64
	rows                     map[string]uint64
	baseRows                 map[string]uint64
}

func collect(rows map[string]uint64) func(k, v []byte) error {
	return func(k, v []byte) error {
		if _, twice := rows[string(k)]; twice {
			return fmt.Errorf("row %s comes twice", k)
		}
		rows[string(k)] = binary.BigEndian.Uint64(v)
		return nil
	}
}

// load loads a shard and checks all that must hold of it at any time.
func load(t testing.TB, l *Log, n uint32) (c contents) {
	t.Helper()
	ctx := context.Background()
	c.rows, c.baseRows = map[string]uint64{}, map[string]uint64{}
	end := uint64(0)
	batch := func(first uint64, value []byte) error {
		if end != 0 && first != end {
			return fmt.Errorf("batch %d follows the one that ends at %d", first, end)
		}
		end = first + uint64(len(value)/8)
		if got := records(first, len(value)/8); string(got) != string(value) {
			return fmt.Errorf("batch %d has %x", first, value)
		}
		return nil
	}
	var err error
	if c.folded, c.epoch, err = l.Load(ctx, n, collect(c.rows), batch); err != nil {
		t.Fatal(err)
	}
	c.end = max(end, c.folded)
	if !maps.Equal(c.rows, rowsBefore(c.folded)) {
		t.Errorf("shard %d, folded to %d: rows %v", n, c.folded, c.rows)
	}
	if c.base, err = l.BaseRows(ctx, n, nil, collect(c.baseRows)); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(c.baseRows, rowsBefore(c.base)) || c.base > c.folded {
		t.Errorf("shard %d, base to %d, folded to %d: rows %v", n, c.base, c.folded, c.baseRows)
	}
	end = 0
	first, size, err := l.Bounds(n)
	if err != nil {
		t.Fatal(err)
	}
	kept, lowest := int64(0), uint64(0)
	if err := l.Scan(ctx, n, 0, 1<<60, func(first uint64, value []byte) error {
		if kept == 0 {
			lowest = first
		}
		kept += int64(logKeyLen + batchHeadLen + len(value))
		return batch(first, value)
	}); err != nil {
		t.Fatal(err)
	}
	if kept != size || kept > 0 && (lowest != first || end != c.end || first > c.base) || kept == 0 && first != c.end {
		t.Errorf("shard %d ends at %d, base to %d: bounds %d, %d bytes; the scan shows %d to %d, %d bytes", n, c.end, c.base, first, size, lowest, end, kept)
	}
	return c
}

// TestCrash runs random operations on all shards and crashes after each of them:
// what was acknowledged is there, batches are whole and contiguous, and rows are
// exactly those of the sequence number that they are said to contain.
func TestCrash(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	fs := vfs.NewCrashableMem()
	s, l := open(t, fs)
	defer func() { mustClose(t, s) }()
	var state [shards]contents
	var next, acked [shards]uint64
	for n := range state {
		state[n] = load(t, l, uint32(n))
	}
	for round := range 300 {
		n := uint32(rng.IntN(shards))
		c := &state[n]
		what := ""
		switch p := rng.IntN(20); {
		case p < 12:
			count := 1 + rng.IntN(4)
			result := make(chan error, 1)
			l.Append(n, c.epoch, next[n], count, records(next[n], count), func(err error) { result <- err })
			next[n] += uint64(count)
			what = "append"
			if p < 8 {
				if err := <-result; err != nil {
					t.Fatal(err)
				}
				acked[n] = next[n]
				what = "acknowledged append"
			}
		case p < 15:
			upto := c.folded + rng.Uint64N(next[n]-c.folded+1)
			l.Checkpoint(n, c.epoch, upto, changes(c.folded, upto))
			c.folded = upto
			what = "checkpoint"
		case p < 18:
			upto := c.base + rng.Uint64N(max(min(c.folded, acked[n]), c.base)-c.base+1)
			if err := l.Trim(n, c.epoch, upto, changes(c.base, upto)); err != nil {
				t.Fatal(err)
			}
			c.base = upto
			what = "trim"
		case p < 19:
			again := load(t, l, n)
			if again.epoch <= c.epoch || again.end != next[n] || again.folded != c.folded || again.base != c.base {
				t.Errorf("seed %d round %d: loaded %+v, want %+v and end %d", seed, round, again, *c, next[n])
			}
			*c, acked[n], what = again, next[n], "load"
		default:
			mustClose(t, s)
			s, l = open(t, fs)
			for n := range state {
				again := load(t, l, uint32(n))
				if again.epoch <= state[n].epoch || again.end != next[n] {
					t.Errorf("seed %d round %d: loaded %+v after a clean stop, want end %d and more than epoch %d", seed, round, again, next[n], state[n].epoch)
				}
				state[n], acked[n] = again, next[n]
			}
			what = "restart"
		}
		for _, percent := range []int{0, 50} {
			s, l := open(t, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
			for n := range state {
				if c := load(t, l, uint32(n)); c.end < acked[n] || c.end > next[n] {
					t.Errorf("seed %d round %d, %s, crash with %d %%: shard %d ends at %d, want %d to %d", seed, round, what, percent, n, c.end, acked[n], next[n])
				}
			}
			mustClose(t, s)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// sink collects the results of appends in the order in which they come.
type sink struct{ results chan string }

func (s sink) done(name string) func(error) {
	return func(err error) { s.results <- fmt.Sprintf("%s %v", name, err) }
}

// TestFencing is requirement S1.19: a shard that was loaded again has a new owner,
// and what the old one writes is refused, in order and without a trace.
func TestFencing(t *testing.T) {
	fs := vfs.NewMem()
	s, l := open(t, fs)
	out := sink{make(chan string, 10)}
	l.Append(0, 2, 0, 1, records(0, 1), out.done("early"))
	old := load(t, l, 0)
	l.Append(0, old.epoch, 0, 2, records(0, 2), out.done("a"))
	l.Append(0, old.epoch, 2, 1, records(2, 1), out.done("b"))
	now := load(t, l, 0)
	if now.epoch != old.epoch+1 || now.end != 3 {
		t.Errorf("the new owner sees %+v after %+v", now, old)
	}
	l.Append(0, old.epoch, 3, 1, []byte("stale record"), out.done("c"))
	l.Checkpoint(0, old.epoch, 3, changes(0, 3))
	if err := l.Trim(0, old.epoch, 0, changes(0, 0)); !errors.Is(err, ErrFenced) {
		t.Errorf("trim of the old owner: %v", err)
	}
	l.Append(0, now.epoch, 3, 1, records(3, 1), out.done("d"))
	for _, want := range []string{"early " + ErrFenced.Error(), "a <nil>", "b <nil>", "c " + ErrFenced.Error(), "d <nil>"} {
		if got := <-out.results; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	mustClose(t, s)
	s, l = open(t, fs)
	defer mustClose(t, s)
	if again := load(t, l, 0); again.epoch != now.epoch+1 || again.end != 4 || again.folded != 0 {
		t.Errorf("after a restart: %+v", again)
	}
	if err := l.Trim(1, 1, 0, changes(0, 0)); !errors.Is(err, ErrFenced) {
		t.Errorf("trim of a shard that nobody loaded: %v", err)
	}
}

func appendAll(t *testing.T, l *Log, n uint32, epoch uint64, counts ...int) {
	t.Helper()
	next := uint64(0)
	result := make(chan error, len(counts))
	for _, count := range counts {
		l.Append(n, epoch, next, count, records(next, count), func(err error) { result <- err })
		next += uint64(count)
	}
	for range counts {
		if err := <-result; err != nil {
			t.Fatal(err)
		}
	}
}

// TestTrim: whole batches before the mark go, the one that it is in stays, and the
// mark never passes the checkpoint.
func TestTrim(t *testing.T) {
	s, l := open(t, vfs.NewMem())
	defer mustClose(t, s)
	c := load(t, l, 1)
	appendAll(t, l, 1, c.epoch, 2, 3, 1, 4) // 0, 2, 5, 6 to 9
	l.Checkpoint(1, c.epoch, 8, changes(0, 8))
	if err := l.Trim(1, c.epoch, 9, changes(0, 9)); err == nil || !strings.Contains(err.Error(), "passes its checkpoint") {
		t.Errorf("trim beyond the checkpoint: %v", err)
	}
	base := uint64(0)
	for _, tc := range []struct{ upto, first uint64 }{{0, 0}, {1, 0}, {2, 2}, {4, 2}, {5, 5}, {6, 6}, {8, 6}, {8, 6}} {
		if err := l.Trim(1, c.epoch, tc.upto, changes(base, tc.upto)); err != nil {
			t.Fatal(err)
		}
		base = tc.upto
		if c = load(t, l, 1); c.base != tc.upto {
			t.Errorf("trimmed to %d: base to %d", tc.upto, c.base)
		}
		if first, _, _ := l.Bounds(1); first != tc.first {
			t.Errorf("trimmed to %d: log begins at %d, want %d", tc.upto, first, tc.first)
		}
	}
	if err := l.Trim(1, c.epoch, 7, changes(0, 0)); err == nil || !strings.Contains(err.Error(), "goes back") {
		t.Errorf("trim back: %v", err)
	}
	l.Checkpoint(1, c.epoch, 10, changes(8, 10))
	if err := l.Trim(1, c.epoch, 10, changes(8, 10)); err != nil {
		t.Fatal(err)
	}
	if c = load(t, l, 1); c.end != 10 {
		t.Errorf("with everything trimmed the shard ends at %d", c.end)
	}
	if first, size, _ := l.Bounds(1); first != 10 || size != 0 {
		t.Errorf("with everything trimmed: %d, %d bytes", first, size)
	}
	var none []string
	if _, err := l.BaseRows(context.Background(), 1, []byte("row-3"), func(k, _ []byte) error {
		none = append(none, string(k))
		return nil
	}); err != nil || !slices.Equal(none, []string{"row-3"}) {
		t.Errorf("base rows under row-3: %q, %v", none, err)
	}
}

// TestTrimIsSeen: what a trim wrote to the base is there for whoever makes the next
// one, however soon.
func TestTrimIsSeen(t *testing.T) {
	s, l := open(t, vfs.NewMem())
	defer mustClose(t, s)
	c := load(t, l, 0)
	const batches = 200
	appendAll(t, l, 0, c.epoch, slices.Repeat([]int{1}, batches)...)
	l.Checkpoint(0, c.epoch, batches, changes(0, batches))
	for upto := uint64(1); upto <= batches; upto++ {
		if err := l.Trim(0, c.epoch, upto, changes(upto-1, upto)); err != nil {
			t.Fatal(err)
		}
		rows := map[string]uint64{}
		seen, err := l.BaseRows(context.Background(), 0, nil, func(k, v []byte) error {
			rows[string(k)] = binary.BigEndian.Uint64(v)
			return nil
		})
		if err != nil || seen != upto || !maps.Equal(rows, rowsBefore(upto)) {
			t.Fatalf("trimmed to %d: the base reaches to %d with %v, %v", upto, seen, rows, err)
		}
	}
}

// TestDeletedRows: a nil value deletes a row, an empty one does not.
func TestDeletedRows(t *testing.T) {
	s, l := open(t, vfs.NewMem())
	defer mustClose(t, s)
	ctx := context.Background()
	_, epoch, err := l.Load(ctx, 0, func(k, v []byte) error { return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	put := func(rows ...string) iter.Seq2[[]byte, []byte] {
		return func(yield func(k, v []byte) bool) {
			for _, r := range rows {
				k, v, ok := strings.Cut(r, "=")
				value := []byte(v)
				if !ok {
					value = nil
				}
				if !yield([]byte(k), value) {
					return
				}
			}
		}
	}
	l.Checkpoint(0, epoch, 0, put("a=1", "b=", "c=3"))
	l.Checkpoint(0, epoch, 0, put("c", "d=4"))
	var got []string
	if _, _, err := l.Load(ctx, 0, func(k, v []byte) error {
		got = append(got, fmt.Sprintf("%s=%s", k, v))
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a=1", "b=", "d=4"}; !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
}

// TestScan reads parts of the log.
func TestScan(t *testing.T) {
	s, l := open(t, vfs.NewMem())
	defer mustClose(t, s)
	c := load(t, l, 2)
	appendAll(t, l, 2, c.epoch, 2, 3, 1, 4)
	for _, tc := range []struct {
		from, to uint64
		want     []uint64
	}{
		{0, 0, nil},
		{0, 1, []uint64{0}},
		{1, 2, []uint64{0}},
		{2, 3, []uint64{2}},
		{3, 6, []uint64{2, 5}},
		{5, 7, []uint64{5, 6}},
		{9, 10, []uint64{6}},
		{10, 20, nil},
		{0, 1 << 63, []uint64{0, 2, 5, 6}},
		{1<<64 - 2, 1<<64 - 1, nil},
	} {
		var got []uint64
		if err := l.Scan(context.Background(), 2, tc.from, tc.to, func(first uint64, _ []byte) error {
			got = append(got, first)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("scan [%d, %d): batches %v, want %v", tc.from, tc.to, got, tc.want)
		}
	}
	stop := errors.New("enough")
	calls := 0
	if err := l.Scan(context.Background(), 2, 0, 10, func(uint64, []byte) error { calls++; return stop }); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("scan that is stopped: %v after %d batches", err, calls)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := l.Load(ctx, 2, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("load with an ended context: %v", err)
	}
}

// gatedFS holds back the syncs of logs while gate is set.
type gatedFS struct {
	*errorfs.FS
	gate *atomic.Pointer[chan struct{}]
}

func newGatedFS(fs vfs.FS) gatedFS {
	gate := new(atomic.Pointer[chan struct{}])
	return gatedFS{errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".log") && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			if wait := gate.Load(); wait != nil {
				<-*wait
			}
		}
		return nil
	})), gate}
}

// TestScanShowsWhatIsDurable: Pebble shows a batch before its sync; Scan does not,
// and Trim does not touch it.
func TestScanShowsWhatIsDurable(t *testing.T) {
	fs := newGatedFS(vfs.NewMem())
	s, l := open(t, fs)
	defer mustClose(t, s)
	c := load(t, l, 0)
	appendAll(t, l, 0, c.epoch, 2)
	gate := make(chan struct{})
	fs.gate.Store(&gate)
	result := make(chan error, 1)
	l.Append(0, c.epoch, 2, 1, records(2, 1), func(err error) { result <- err })
	l.Checkpoint(0, c.epoch, 3, changes(0, 3))
	for { // until the batch is visible in Pebble
		if _, closer, err := s.Groups().Pebble.Get(logKey(0, 2)); err == nil {
			_ = closer.Close()
			break
		} else if !errors.Is(err, pebble.ErrNotFound) {
			t.Fatal(err)
		}
	}
	scan := func() (batches []uint64) {
		if err := l.Scan(context.Background(), 0, 0, 10, func(first uint64, _ []byte) error {
			batches = append(batches, first)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return batches
	}
	if got := scan(); !slices.Equal(got, []uint64{0}) {
		t.Errorf("batches %v are shown before the sync", got)
	}
	if err := l.Trim(0, c.epoch, 3, changes(0, 3)); err == nil {
		t.Error("a batch was trimmed before its sync")
	}
	fs.gate.Store(nil)
	close(gate)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if got := scan(); !slices.Equal(got, []uint64{0, 2}) {
		t.Errorf("batches %v after the sync", got)
	}
}

// TestFailedAppend: the error ends the log; nothing is acknowledged afterwards.
func TestFailedAppend(t *testing.T) {
	var broken atomic.Bool
	fs := vfs.NewCrashableMem()
	s, l := open(t, errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && strings.HasSuffix(op.Path, ".log") {
			return errorfs.ErrInjected
		}
		return nil
	})))
	c := load(t, l, 0)
	appendAll(t, l, 0, c.epoch, 1)
	broken.Store(true)
	result := make(chan error, 2)
	l.Append(0, c.epoch, 1, 1, records(1, 1), func(err error) { result <- err })
	l.Append(0, c.epoch, 2, 1, records(2, 1), func(err error) { result <- err })
	for range 2 {
		if err := <-result; !errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("append on a broken disk: %v", err)
		}
	}
	if err := l.Scan(context.Background(), 0, 0, 10, func(first uint64, _ []byte) error {
		if first != 0 {
			t.Errorf("batch %d is shown", first)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	_, _, err := l.Load(context.Background(), 0, nil, nil)
	_, _, boundsErr := l.Bounds(0)
	for what, err := range map[string]error{"load": err, "bounds": boundsErr, "trim": l.Trim(0, c.epoch, 0, changes(0, 0)), "close": s.Close()} {
		if !errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("%s after the failure: %v", what, err)
		}
	}
	s, l = open(t, fs.CrashClone(vfs.CrashCloneCfg{}))
	defer mustClose(t, s)
	if c := load(t, l, 0); c.end != 1 {
		t.Errorf("after a restart the shard ends at %d", c.end)
	}
}

// TestOneRow is requirement S1.14: a snapshot that is written again and again takes
// the room of one.
func TestOneRow(t *testing.T) {
	s, l := open(t, vfs.NewMem())
	defer mustClose(t, s)
	c := load(t, l, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	snapshot := make([]byte, 64<<10)
	for range 1000 {
		for i := range snapshot {
			snapshot[i] = byte(rng.Uint32())
		}
		l.Checkpoint(0, c.epoch, 0, func(yield func(k, v []byte) bool) { yield([]byte("g"), snapshot) })
	}
	if err := s.Groups().Pebble.Flush(); err != nil {
		t.Fatal(err)
	}
	low := prefixKey(stateSpace, 0, nil)
	if err := s.Groups().Pebble.Compact(context.Background(), low, prefixEnd(low), false); err != nil {
		t.Fatal(err)
	}
	size, err := s.Groups().Pebble.EstimateDiskUsage(low, prefixEnd(low))
	if err != nil || size > 2*uint64(len(snapshot)) {
		t.Errorf("1000 snapshots of %d bytes take %d bytes, %v", len(snapshot), size, err)
	}
}

// TestDamage: rows that are not understood stop the start, they are not skipped.
func TestDamage(t *testing.T) {
	for name, row := range map[string][2][]byte{
		"meta of a later version": {metaKey(1, epochRow), []byte{2, 0}},
		"unknown meta":            {metaKey(1, 9), metaValue(1)},
		"batch":                   {logKey(2, 5), []byte{9}},
	} {
		s, _ := open(t, vfs.NewMem())
		done := make(chan error, 1)
		s.Groups().Committer.Submit(store.Op{Sync: true, Write: func(b *store.Batch) { b.Set(row[0], row[1]) }, Done: func(err error) { done <- err }})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if _, err := Open(s.Groups(), shards); err == nil {
			t.Errorf("%s: opened", name)
		}
		mustClose(t, s)
	}
}
