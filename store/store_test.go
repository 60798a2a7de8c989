package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func memOptions(fs vfs.FS) Options {
	return Options{Dir: "data", FS: fs, Shards: 50, Version: "1.2.3"}
}

func mustOpen(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// put commits one key, synced, and returns the result.
func put(db *DB, key, value string) error {
	result := make(chan error, 1)
	db.Committer.Submit(Op{
		Sync:  true,
		Write: func(b *Batch) { b.Set([]byte(key), []byte(value)) },
		Done:  func(err error) { result <- err },
	})
	return <-result
}

func get(t testing.TB, db *DB, key string) string {
	t.Helper()
	value, closer, err := db.Pebble.Get([]byte(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	return string(value)
}

func TestBootstrapOnce(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, memOptions(fs))
	info := s.Info()
	if len(info.ClusterID) != 22 || info.ClusterID[0] == '-' {
		t.Errorf("cluster id %q, want 22 characters", info.ClusterID)
	}
	want := Info{FormatVersion: 1, WrittenBy: "1.2.3", CreatedBy: "1.2.3", ClusterID: info.ClusterID, Shards: 50, Hash: "java-hashcode", Epoch: 1}
	if info != want {
		t.Errorf("info %+v, want %+v", info, want)
	}
	if err := put(s.Groups(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)

	o := memOptions(fs)
	o.Version, o.Shards = "1.2.4", 0
	s = mustOpen(t, o)
	defer mustClose(t, s)
	if s.Info() != want {
		t.Errorf("second start: %+v, want %+v", s.Info(), want)
	}
	for _, db := range []*DB{s.Groups(), s.Topics()} {
		if n := db.Pebble.Metrics().WAL.BytesIn; n != 0 {
			t.Errorf("second start wrote %d bytes to %s", n, db.name)
		}
	}
	if got := get(t, s.Groups(), "k"); got != "v" {
		t.Errorf("k = %q after the second start", got)
	}
}

// TestCreationRace is requirement S0.10: whoever comes first creates the store, and
// everybody sees that one.
func TestCreationRace(t *testing.T) {
	o := memOptions(vfs.NewMem())
	var wg sync.WaitGroup
	ids := make([]string, 64)
	var turn sync.Mutex // The holder closes before the next one may succeed.
	for i := range ids {
		wg.Go(func() {
			turn.Lock()
			defer turn.Unlock()
			s := mustOpen(t, o)
			ids[i] = s.Info().ClusterID
			if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "in use") {
				t.Errorf("second Open: %v", err)
			}
			mustClose(t, s)
		})
	}
	wg.Wait()
	if ids = slices.Compact(ids); len(ids) != 1 {
		t.Errorf("%d stores were created: %q", len(ids), ids)
	}
}

// TestRefused opens directories that must be refused with one clear line and
// nothing changed on disk.
func TestRefused(t *testing.T) {
	good := func(t *testing.T, dir string) {
		o := Options{Dir: dir, Shards: 16, Version: "1.2.3"}
		s := mustOpen(t, o)
		if err := put(s.Groups(), "k", "v"); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
	}
	write := func(t *testing.T, name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name string
		make func(t *testing.T, dir string)
		want []string
	}{
		{"file", func(t *testing.T, dir string) { write(t, dir, "hello") }, []string{"is a file"}},
		{"other files", func(t *testing.T, dir string) {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "thesis.tex"), "hello")
		}, []string{"thesis.tex", "empty or a new directory"}},
		{"other number of shards", good, []string{"offsets.topic.num.partitions=16", "but 50 is"}},
		{"newer format", func(t *testing.T, dir string) {
			good(t, dir)
			write(t, filepath.Join(dir, formatFile), `{"format":7,"writtenBy":"9.0.1","shards":"many"}`)
		}, []string{"format 7", "written by Rollcall 9.0.1", "this is Rollcall 1.2.3", "up to 1"}},
		{"older than can be migrated", func(t *testing.T, dir string) {
			good(t, dir)
			old := formats{current: 2}
			o := Options{Dir: dir, Version: "2.0.0", formats: &old}
			if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "cannot migrate") {
				t.Errorf("opened by a later version: %v", err)
			}
		}, []string{"num.partitions"}},
		{"damaged FORMAT", func(t *testing.T, dir string) {
			good(t, dir)
			write(t, filepath.Join(dir, formatFile), "{")
		}, []string{"FORMAT", "damaged"}},
		{"empty FORMAT", func(t *testing.T, dir string) {
			good(t, dir)
			write(t, filepath.Join(dir, formatFile), "{}")
		}, []string{"FORMAT", "damaged"}},
		{"other hash", func(t *testing.T, dir string) {
			good(t, dir)
			write(t, filepath.Join(dir, formatFile), `{"format":1,"hash":"murmur","shards":50}`)
		}, []string{`"murmur"`, `"java-hashcode"`}},
		{"no FORMAT", func(t *testing.T, dir string) {
			good(t, dir)
			if err := os.Remove(filepath.Join(dir, formatFile)); err != nil {
				t.Fatal(err)
			}
		}, []string{"no FORMAT file"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			tc.make(t, dir)
			before := snapshot(t, dir)
			_, err := Open(Options{Dir: dir, Shards: 50, Version: "1.2.3"})
			if err == nil {
				t.Fatal("opened")
			}
			for _, want := range append(tc.want, dir) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error has several lines: %q", err)
			}
			if after := snapshot(t, dir); after != before {
				t.Errorf("directory changed from\n%sto\n%s", before, after)
			}
		})
	}
}

// snapshot lists every file with its time and the hash of what is in it.
func snapshot(t *testing.T, dir string) string {
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s %v %v", path, info.Mode(), info.ModTime())
		if !d.IsDir() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, " %x", sha256.Sum256(data))
		}
		out.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestUnwritable is requirement S0.14's store half: a directory that cannot be
// written is an error at once, whatever the reason.
func TestUnwritable(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpMkdirAll, errorfs.OpLock, errorfs.OpCreate, errorfs.OpRename} {
		readOnly := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind {
				return &fs.PathError{Op: "open", Path: op.Path, Err: syscall.EROFS}
			}
			return nil
		})
		_, err := Open(memOptions(errorfs.Wrap(vfs.NewMem(), readOnly)))
		if err == nil || !strings.Contains(err.Error(), "data directory data cannot be used") || !errors.Is(err, syscall.EROFS) {
			t.Errorf("operation %d fails: %v", kind, err)
		}
	}
}

// TestMixedHalves: groups/ and topics/ of different stores, or one of them empty.
func TestMixedHalves(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(a, b string) error
		want string
	}{
		{"foreign topics", func(a, b string) error {
			return errors.Join(os.RemoveAll(filepath.Join(a, "topics")), os.Rename(filepath.Join(b, "topics"), filepath.Join(a, "topics")))
		}, "topics is of another store"},
		{"foreign groups", func(a, b string) error {
			return errors.Join(os.RemoveAll(filepath.Join(a, "groups")), os.Rename(filepath.Join(b, "groups"), filepath.Join(a, "groups")))
		}, "groups is of another store"},
		{"lost groups", func(a, b string) error { return os.RemoveAll(filepath.Join(a, "groups")) }, "groups: its data is gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tmp := t.TempDir()
			a, b := filepath.Join(tmp, "a"), filepath.Join(tmp, "b")
			for _, dir := range []string{a, b} {
				mustClose(t, mustOpen(t, Options{Dir: dir, Shards: 50}))
			}
			if err := tc.make(a, b); err != nil {
				t.Fatal(err)
			}
			before, _ := filepath.Glob(a + "/*")
			_, err := Open(Options{Dir: a, Shards: 50})
			if after, _ := filepath.Glob(a + "/*"); !slices.Equal(before, after) {
				t.Errorf("directory changed from %q to %q", before, after)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestMigration(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, memOptions(fs))
	if err := errors.Join(put(s.Groups(), "k", "old"), put(s.Topics(), "t", "old")); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)

	interrupted := errors.New("interrupted")
	step := func(fail error) map[uint32]func(groups, topics *pebble.DB) error {
		return map[uint32]func(groups, topics *pebble.DB) error{1: func(groups, topics *pebble.DB) error {
			if err := topics.Set([]byte("t"), []byte("new"), pebble.Sync); err != nil || fail != nil {
				return errors.Join(err, fail)
			}
			return groups.Set([]byte("k"), []byte("new"), pebble.Sync)
		}}
	}
	o := memOptions(fs)
	o.Version, o.formats = "2.0.0", &formats{current: 2, steps: step(interrupted)}
	if _, err := Open(o); !errors.Is(err, interrupted) {
		t.Fatalf("interrupted migration: %v", err)
	}
	if _, err := Open(memOptions(fs)); err == nil || !strings.Contains(err.Error(), "written by Rollcall 2.0.0") {
		t.Fatalf("old version on a half migrated store: %v", err)
	}
	o.formats = &formats{current: 2, steps: step(nil)}
	s = mustOpen(t, o)
	if got := get(t, s.Groups(), "k") + get(t, s.Topics(), "t"); got != "newnew" {
		t.Errorf("migrated data: %q", got)
	}
	if i := s.Info(); i.FormatVersion != 2 || i.WrittenBy != "2.0.0" || i.CreatedBy != "1.2.3" {
		t.Errorf("info after the migration: %+v", i)
	}
	mustClose(t, s)
	o.formats = &formats{current: 2, steps: map[uint32]func(groups, topics *pebble.DB) error{}}
	mustClose(t, mustOpen(t, o))

	back := memOptions(fs)
	back.Dir = "data/format-1"
	s = mustOpen(t, back)
	defer mustClose(t, s)
	if got := get(t, s.Groups(), "k") + get(t, s.Topics(), "t"); got != "oldold" {
		t.Errorf("data in the copy: %q", got)
	}
	if s.Info().FormatVersion != 1 {
		t.Errorf("format of the copy: %d", s.Info().FormatVersion)
	}
}

// TestFullDisk: a store is not opened, or created, where there is no room for what
// that writes, and the refusal writes nothing itself.
func TestFullDisk(t *testing.T) {
	fs := vfs.NewMem()
	refused := func(free uint64) {
		t.Helper()
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: free, TotalBytes: 1 << 40, UsedBytes: 1})
		before := fs.String()
		if _, err := Open(memOptions(fs)); err == nil || !strings.Contains(err.Error(), "make room") || strings.Contains(err.Error(), "\n") {
			t.Errorf("opened with %d bytes free: %v", free, err)
		}
		if after := fs.String(); after != before {
			t.Errorf("the directory changed from\n%sto\n%s", before, after)
		}
	}
	opened := func(free uint64) *Store {
		t.Helper()
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: free, TotalBytes: 1 << 40, UsedBytes: 1})
		return mustOpen(t, memOptions(fs))
	}
	refused(0)
	s := opened(openBytesMin)
	if err := put(s.Topics(), "k", strings.Repeat("v", 1<<20)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	refused(openBytesMin + 1<<20)
	mustClose(t, opened(2*openBytesMin+1<<20))
	fs.TestingSetDiskUsage(vfs.DiskUsage{UsedBytes: 1}) // it does not tell
	mustClose(t, mustOpen(t, memOptions(fs)))
}

func TestDiskGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		free := func(n uint64) {
			fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 40, UsedBytes: 1})
			time.Sleep(guardInterval)
			synctest.Wait()
		}
		o := memOptions(fs)
		o.MinFreeBytes = 1600
		var lines []string
		o.Logger.Errorf = func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
		o.Logger.Infof = func(format string, args ...any) {
			if strings.HasPrefix(format, "disk") {
				lines = append(lines, fmt.Sprintf(format, args...))
			}
		}
		s := mustOpen(t, o)
		defer mustClose(t, s)
		if s.DiskLow() || s.FreeBytes() != -1 {
			t.Errorf("unknown free space: low %v, free %d", s.DiskLow(), s.FreeBytes())
		}
		for _, step := range []struct {
			free uint64
			low  bool
		}{{1 << 30, false}, {1600, false}, {1599, true}, {1650, true}, {0, true}, {1700, false}} {
			free(step.free)
			if s.DiskLow() != step.low || s.FreeBytes() != int64(step.free) {
				t.Errorf("free %d: low %v, free %d", step.free, s.DiskLow(), s.FreeBytes())
			}
		}
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 3, TotalBytes: 1 << 40, UsedBytes: 1})
		if err := put(s.Groups(), "k", strings.Repeat("v", 1600)); err != nil || !s.DiskLow() {
			t.Error("a large write is not followed by a look at the free space")
		}
		if len(lines) != 3 {
			t.Errorf("%d lines logged, want one for each change: %q", len(lines), lines)
		}
	})
}
