package store

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// hashID names the function from group ids to shards: Java's String.hashCode, so
// that shard n is what Kafka calls __consumer_offsets-n.
const hashID = "java-hashcode"

// Info is what was fixed when a store was created. The same JSON object is in the
// FORMAT file, which is read before anything is opened, and in a row of each
// Pebble, which ties them together.
type Info struct {
	// FormatVersion is the format of the whole directory. In FORMAT it is that of
	// the newest thing in the directory, in groups/ that of the data: they differ
	// while a migration is not complete.
	FormatVersion uint32 `json:"format"`
	// WrittenBy is the version of Rollcall that gave the store this format. The
	// two fields so far keep their meaning in all formats to come.
	WrittenBy string `json:"writtenBy"`
	// CreatedBy is the version of Rollcall that created the store.
	CreatedBy string `json:"createdBy"`
	// ClusterID is what Metadata answers: 22 characters, as Kafka makes them.
	ClusterID string `json:"clusterId"`
	// Shards is offsets.topic.num.partitions.
	Shards uint32 `json:"shards"`
	// Hash names the function from group ids to shards.
	Hash string `json:"hash"`
	// Epoch is what the epochs of the shards begin with.
	Epoch uint64 `json:"epoch"`
}

// formats is what a version of Rollcall can read.
type formats struct {
	current uint32
	// steps[n] takes the data from format n to n+1. It may be interrupted by a
	// crash and begun again, and must not touch the row at infoKey.
	steps map[uint32]func(groups, topics *pebble.DB) error
}

var currentFormats = formats{current: 1}

// infoKey is the row of [Info] in both Pebbles.
var infoKey = []byte("\x00store")

func newInfo(o *Options) Info {
	id := o.ClusterID
	if id == "" {
		id = newClusterID()
	}
	return Info{
		FormatVersion: o.formats.current, WrittenBy: o.Version, CreatedBy: o.Version,
		ClusterID: id, Shards: o.Shards, Hash: hashID, Epoch: 1,
	}
}

// newClusterID makes an id as Kafka's Uuid.randomUuid does: a version 4 UUID in
// URL-safe base64 that does not begin with a dash.
func newClusterID() string {
	for {
		var id [16]byte
		_, _ = rand.Read(id[:]) // It never fails; see the package.
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if s := base64.RawURLEncoding.EncodeToString(id[:]); s[0] != '-' {
			return s
		}
	}
}

func encodeInfo(info Info) []byte {
	data, err := json.Marshal(info)
	if err != nil {
		panic("store: " + err.Error()) // It has strings and numbers only.
	}
	return append(data, '\n')
}

func decodeInfo(data []byte) (Info, error) {
	var info Info
	if err := json.Unmarshal(data, &info); err != nil {
		// The rest may look different in a newer format.
		var first struct {
			Format    uint32 `json:"format"`
			WrittenBy string `json:"writtenBy"`
		}
		if json.Unmarshal(data, &first) != nil || first.Format <= currentFormats.current {
			return Info{}, fmt.Errorf("it is damaged: %w", err)
		}
		info = Info{FormatVersion: first.Format, WrittenBy: first.WrittenBy}
	}
	if info.FormatVersion == 0 {
		return Info{}, errors.New("it is damaged: no format")
	}
	return info, nil
}

// check refuses a store that this version or this configuration does not fit.
func (o *Options) check(info Info) error {
	if info.FormatVersion > o.formats.current {
		return fmt.Errorf("data directory %s has store format %d, written by Rollcall %s; this is Rollcall %s, which knows formats up to %d: use the newer version",
			o.Dir, info.FormatVersion, info.WrittenBy, o.Version, o.formats.current)
	}
	for v := info.FormatVersion; v < o.formats.current; v++ {
		if o.formats.steps[v] == nil {
			return fmt.Errorf("data directory %s has store format %d, written by Rollcall %s, which Rollcall %s cannot migrate any more: open it with a version in between first",
				o.Dir, info.FormatVersion, info.WrittenBy, o.Version)
		}
	}
	if info.Hash != hashID {
		return fmt.Errorf("data directory %s maps groups to shards with %q, Rollcall %s with %q", o.Dir, info.Hash, o.Version, hashID)
	}
	if o.Shards != 0 && info.Shards != o.Shards {
		return fmt.Errorf("data directory %s was created with offsets.topic.num.partitions=%d, but %d is configured: the number is fixed, set it to %d",
			o.Dir, info.Shards, o.Shards, info.Shards)
	}
	return nil
}

// create makes the store in two empty Pebbles: one synced batch in groups/, the row
// that ties topics/ to it, and last FORMAT. A crash before FORMAT is durable leaves
// BOOTSTRAP, and the next start begins anew; nothing has been acknowledged by then.
func (s *Store) create() error {
	for _, db := range []*DB{s.groups, s.topics} {
		if err := s.writeRow(db, s.info); err != nil {
			return err
		}
	}
	return s.dir.created(s.info)
}

// verify makes sure that both Pebbles are of this store and of this format.
func (s *Store) verify() error {
	groups, err := s.readRow(s.groups)
	if err != nil {
		return err
	}
	if _, err := s.readRow(s.topics); err != nil {
		return err
	}
	if groups.FormatVersion < s.opts.formats.current {
		return s.migrate(groups)
	}
	return nil
}

// readRow reads the row of a Pebble and compares it with FORMAT.
func (s *Store) readRow(db *DB) (Info, error) {
	value, closer, err := db.Pebble.Get(infoKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return Info{}, fmt.Errorf("%s: %w", db.name, errLost)
	}
	if err != nil {
		return Info{}, err
	}
	info, err := decodeInfo(bytes.Clone(value))
	if err := errors.Join(err, closer.Close()); err != nil {
		return Info{}, fmt.Errorf("row of the store in %s: %w", db.name, err)
	}
	if info.ClusterID != s.info.ClusterID || info.Shards != s.info.Shards || info.Hash != s.info.Hash {
		return Info{}, fmt.Errorf("%s is of another store (cluster %s, %d shards) than %s (cluster %s, %d shards): restore groups and topics from the same backup",
			db.name, info.ClusterID, info.Shards, formatFile, s.info.ClusterID, s.info.Shards)
	}
	return info, nil
}

func (s *Store) writeRow(db *DB, info Info) error {
	return db.Pebble.Set(infoKey, encodeInfo(info), pebble.Sync)
}
