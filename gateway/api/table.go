package api

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Entry is one API key in the table from which ApiVersions is derived.
type Entry struct {
	Key, Min, Max int16
	// Holds: the request may be held for long (JoinGroup, SyncGroup, Fetch), so
	// no further frame of its connection is started before it is answered. Msg is
	// gone when Handle has returned, so a handler copies what it needs.
	Holds  bool
	Handle func(c *Call)
}

// Table is every API key that is served. It does not change once it is made.
type Table struct {
	cluster *ClusterView
	entries []Entry // by key
	rows    []kmsg.ApiVersionsResponseApiKey
}

// NewTable makes the table of the entries and adds ApiVersions, which answers
// from it and tells clients that mean another node from cluster. Two entries for a key, an inverted range or a missing handler are
// bugs of the caller and panic.
func NewTable(cluster *ClusterView, entries ...Entry) *Table {
	t := &Table{cluster: cluster}
	t.entries = append(append(t.entries, entries...), t.apiVersionsEntry())
	slices.SortFunc(t.entries, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	for i := range t.entries {
		e := &t.entries[i]
		if e.Key < 0 || e.Min < 0 || e.Min > e.Max || e.Handle == nil {
			panic(fmt.Sprintf("api: bad table entry for key %d: versions %d to %d", e.Key, e.Min, e.Max))
		}
		if i > 0 && t.entries[i-1].Key == e.Key {
			panic(fmt.Sprintf("api: two table entries for key %d", e.Key))
		}
		t.rows = append(t.rows, kmsg.ApiVersionsResponseApiKey{ApiKey: e.Key, MinVersion: e.Min, MaxVersion: e.Max})
	}
	return t
}

// Entries returns all entries in order of their keys. The slice is shared.
func (t *Table) Entries() []Entry { return t.entries }
