package store

import (
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
)

// migrate takes the data from the format of row, the one in groups/, to the
// current one. Both Pebbles are checkpointed first, in a directory that the
// operator may move back in place. FORMAT goes ahead of the data, so that an older
// version refuses a store that is half migrated, and the row of groups/ follows
// last: until it is written, the next start begins again.
func (s *Store) migrate(row Info) error {
	from := row.FormatVersion
	for v := from; v < s.opts.formats.current; v++ {
		if s.opts.formats.steps[v] == nil {
			return fmt.Errorf("no way from format %d: an interrupted migration must be completed by the version that began it", v)
		}
	}
	if err := s.checkpoint(row); err != nil {
		return fmt.Errorf("checkpoint of format %d before its migration: %w", row.FormatVersion, err)
	}
	s.info.FormatVersion, s.info.WrittenBy = s.opts.formats.current, s.opts.Version
	if err := s.dir.writeFormat(s.info); err != nil {
		return err
	}
	for _, db := range []*DB{s.groups, s.topics} {
		if err := db.Pebble.RatchetFormatMajorVersion(max(pebbleFormat, db.Pebble.FormatMajorVersion())); err != nil {
			return err
		}
	}
	for v := from; v < s.opts.formats.current; v++ {
		if err := s.opts.formats.steps[v](s.groups.Pebble, s.topics.Pebble); err != nil {
			return fmt.Errorf("migrate from format %d to %d: %w", v, v+1, err)
		}
	}
	if err := s.writeRow(s.topics, s.info); err != nil {
		return err
	}
	return s.writeRow(s.groups, s.info)
}

// checkpoint copies the store as it is, by hard links where the file system has
// them, to format-N below the data directory. A complete one stays as it is: it is
// older than anything that an interrupted migration did.
func (s *Store) checkpoint(row Info) error {
	fs := s.opts.FS
	final := s.dir.file(fmt.Sprintf("format-%d", row.FormatVersion))
	if _, err := fs.Stat(final); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	temp := final + tempSuffix
	if err := fs.RemoveAll(temp); err != nil {
		return err
	}
	for _, db := range []*DB{s.groups, s.topics} {
		if err := db.Pebble.Checkpoint(fs.PathJoin(temp, db.name), pebble.WithFlushedWAL()); err != nil {
			return err
		}
	}
	if err := replaceFile(fs, temp, formatFile, encodeInfo(row)); err != nil {
		return err
	}
	if err := fs.Rename(temp, final); err != nil {
		return err
	}
	return syncDir(fs, s.opts.Dir)
}
