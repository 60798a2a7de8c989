package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The files at the top of a data directory, besides groups/ and topics/.
const (
	formatFile = "FORMAT"
	// bootstrapFile is there while a store is being created.
	bootstrapFile = "BOOTSTRAP"
	lockFile      = "LOCK"
	pidFile       = "PID"
	tempSuffix    = ".tmp"
)

// directory is a locked data directory.
type directory struct {
	fs   vfs.FS
	path string
	lock io.Closer
}

// openDirectory checks the data directory, locks it and reads its FORMAT. If there
// is none, the store is new: then the caller has to put the Pebbles there and to
// end with [directory.created]. Whatever is refused is left untouched.
func openDirectory(o *Options) (_ *directory, info Info, isNew bool, err error) {
	if _, _, err = inspect(o); err != nil {
		return nil, Info{}, false, err
	}
	if err = checkRoom(o); err != nil {
		return nil, Info{}, false, err
	}
	if err = o.FS.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, Info{}, false, unusable(o.Dir, err)
	}
	d := &directory{fs: o.FS, path: o.Dir}
	if d.lock, err = o.FS.Lock(d.file(lockFile)); err != nil {
		return nil, Info{}, false, d.lockError(err)
	}
	// Another process may have been busy with the directory until now.
	info, found, err := inspect(o)
	if err == nil {
		if found {
			err = d.forgetBootstrap()
		} else {
			info, err = newInfo(o), d.clear()
		}
		if err == nil {
			err = d.writePID()
		}
		if err != nil {
			err = unusable(o.Dir, err)
		}
	}
	if err != nil {
		_ = d.lock.Close()
		return nil, Info{}, false, err
	}
	return d, info, !found, nil
}

// inspect reads what is in the directory without changing it and refuses what
// cannot be opened.
func inspect(o *Options) (info Info, found bool, err error) {
	stat, err := o.FS.Stat(o.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Info{}, false, shardsOfNew(o)
	case err != nil:
		return Info{}, false, unusable(o.Dir, err)
	case !stat.IsDir():
		return Info{}, false, fmt.Errorf("data directory %s is a file: give a directory", o.Dir)
	}
	data, err := readFile(o.FS, o.FS.PathJoin(o.Dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		if err := checkUnclaimed(o); err != nil {
			return Info{}, false, err
		}
		return Info{}, false, shardsOfNew(o)
	}
	if err != nil {
		return Info{}, false, unusable(o.Dir, err)
	}
	if info, err = decodeInfo(data); err != nil {
		return Info{}, false, fmt.Errorf("data directory %s: file %s: %w", o.Dir, formatFile, err)
	}
	return info, true, o.check(info)
}

func shardsOfNew(o *Options) error {
	if o.Shards == 0 {
		return fmt.Errorf("data directory %s has no store", o.Dir)
	}
	return nil
}

// checkUnclaimed refuses a directory that has other people's files in it.
func checkUnclaimed(o *Options) error {
	names, err := o.FS.List(o.Dir)
	if err != nil {
		return unusable(o.Dir, err)
	}
	slices.Sort(names)
	creating := slices.Contains(names, bootstrapFile)
	for _, name := range names {
		switch {
		case name == groupsName || name == topicsName:
			if creating {
				continue
			}
			return fmt.Errorf("data directory %s has %s but no %s file: restore the file from a backup",
				o.Dir, name, formatFile)
		// A mount point may have these.
		case strings.HasPrefix(name, "."), name == "lost+found":
		case name == lockFile, name == pidFile, name == formatFile+tempSuffix,
			name == bootstrapFile, name == bootstrapFile+tempSuffix:
		default:
			return fmt.Errorf("data directory %s has no store but other files (%s): give an empty or a new directory",
				o.Dir, name)
		}
	}
	return nil
}

// openBytesMin is the free space that opening a store takes besides what it makes of
// write-ahead logs: a few small files, with room to spare.
const openBytesMin = 1 << 20

// checkRoom refuses to open a store on a disk that is too full for it: what is in the
// write-ahead logs is written to tables before they can be removed. Without a way to
// tell how much is free it refuses nothing.
func checkRoom(o *Options) error {
	dir := o.Dir
	if _, err := o.FS.Stat(dir); err != nil { // it will be created
		dir = o.FS.PathDir(dir)
	}
	need := uint64(openBytesMin)
	for _, name := range []string{groupsName, topicsName} {
		need += logBytes(o.FS, o.FS.PathJoin(o.Dir, name))
	}
	usage, err := o.FS.GetDiskUsage(dir)
	if told := err == nil && usage.TotalBytes > 0; told && usage.AvailBytes < need {
		return fmt.Errorf("data directory %s cannot be opened with %d bytes free, it may take %d: make room on its disk",
			o.Dir, usage.AvailBytes, need)
	}
	return nil
}

// logBytes is the size of the write-ahead logs of a Pebble. What cannot be read will
// be reported when it is opened.
func logBytes(fs vfs.FS, dir string) (bytes uint64) {
	names, _ := fs.List(dir)
	for _, name := range names {
		if stat, err := fs.Stat(fs.PathJoin(dir, name)); err == nil && strings.HasSuffix(name, ".log") {
			bytes += uint64(stat.Size())
		}
	}
	return bytes
}

// clear begins a creation, or begins an interrupted one again. BOOTSTRAP says that
// nothing in the directory has been acknowledged to anybody.
func (d *directory) clear() error {
	if err := replaceFile(d.fs, d.path, bootstrapFile, nil); err != nil {
		return err
	}
	for _, name := range []string{groupsName, topicsName} {
		if err := d.fs.RemoveAll(d.file(name)); err != nil {
			return err
		}
	}
	// A directory that a power loss takes away takes everything in it along.
	if err := syncDir(d.fs, d.fs.PathDir(d.path)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return syncDir(d.fs, d.path)
}

// created ends a creation: from now on there is a store.
func (d *directory) created(info Info) error {
	if err := d.writeFormat(info); err != nil {
		return err
	}
	return d.forgetBootstrap()
}

func (d *directory) forgetBootstrap() error {
	err := d.fs.Remove(d.file(bootstrapFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncDir(d.fs, d.path))
}

// writeFormat replaces the FORMAT file, atomically and durably.
func (d *directory) writeFormat(info Info) error {
	return replaceFile(d.fs, d.path, formatFile, encodeInfo(info))
}

// writePID tells a second process who holds the directory.
func (d *directory) writePID() error {
	f, err := d.fs.Create(d.file(pidFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, strconv.Itoa(os.Getpid())+"\n")
	return errors.Join(err, f.Close())
}

// lockError says why the lock could not be had.
func (d *directory) lockError(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return unusable(d.path, err) // The file could not even be created.
	}
	holder := "another process"
	if data, err := readFile(d.fs, d.file(pidFile)); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			holder = "process " + strconv.Itoa(pid)
		}
	}
	return fmt.Errorf("data directory %s is in use by %s: stop it or give another directory (%w)", d.path, holder, err)
}

// Close lets the directory go.
func (d *directory) Close() error {
	err := d.fs.Remove(d.file(pidFile))
	return errors.Join(err, d.lock.Close())
}

func (d *directory) file(name string) string { return d.fs.PathJoin(d.path, name) }

func unusable(dir string, err error) error {
	return fmt.Errorf("data directory %s cannot be used: %w", dir, err)
}

// replaceFile writes a file so that after a crash either its old or its new
// content is there, whole.
func replaceFile(fs vfs.FS, dir, name string, data []byte) error {
	temp := fs.PathJoin(dir, name+tempSuffix)
	f, err := fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(temp, fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func readFile(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}
