package rest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall-mq/rollcall/store/named"
)

// Limits of snapshots of committed offsets. One is a single row of the store.
const (
	snapshotNameMax = 200
	// snapshotBytesMax bounds the encoded offsets.
	snapshotBytesMax = 256 << 20
)

// SnapshotLine is a snapshot in a list.
type SnapshotLine struct {
	Snapshot string    `json:"snapshot"`
	At       time.Time `json:"at" doc:"When it was taken."`
	Groups   int       `json:"groups"`
	Offsets  int       `json:"offsets"`
}

// NewSnapshot says of which groups to take a snapshot.
type NewSnapshot struct {
	Groups []string `json:"groups,omitempty" doc:"Of these groups; of all if neither groups nor a prefix is given."`
	Prefix string   `json:"prefix,omitempty" doc:"Of the groups whose id begins with this."`
}

type (
	snapshotInput struct {
		Name string `path:"name"`
	}
	newSnapshotInput struct {
		Name string `path:"name" doc:"1 to 200 characters that can be printed, but not . or .."`
		Body NewSnapshot
	}
	snapshotOutput  struct{ Body SnapshotLine }
	snapshotsOutput struct {
		Body struct {
			Snapshots []SnapshotLine `json:"snapshots" doc:"By name."`
		}
	}
	snapshotOffsetsInput struct {
		Name  string `path:"name"`
		Group string `path:"group"`
	}
)

func (h *handlers) registerSnapshots(a huma.API) {
	create := operation("create-snapshot", http.MethodPut, "/v1/snapshots/{name}",
		"Keep the committed offsets of groups under a name, whatever the history's limits", "snapshots")
	create.DefaultStatus = http.StatusCreated
	create.Errors = append(create.Errors, http.StatusConflict)
	huma.Register(a, create, h.createSnapshot)
	huma.Register(a, operation("list-snapshots", http.MethodGet, "/v1/snapshots", "List snapshots", "snapshots"), h.listSnapshots)
	huma.Register(a, operation("snapshot-offsets", http.MethodGet, "/v1/snapshots/{name}/groups/{group}/offsets",
		"The offsets of a group in a snapshot", "snapshots"), h.snapshotOffsets)
	huma.Register(a, operation("delete-snapshot", http.MethodDelete, "/v1/snapshots/{name}",
		"Delete a snapshot; that it is gone already is no error", "snapshots"), h.deleteSnapshot)
}

// storedSnapshot is the value of a row: a line of JSON, so that a list need not read
// the rest, and behind it the groups, compressed.
type storedSnapshot struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	Groups  int       `json:"groups"`
	Offsets int       `json:"offsets"`
}

// checkSnapshotName refuses names that a list could not show or a path not name.
func checkSnapshotName(name string) error {
	unprintable := func(c rune) bool { return !strconv.IsPrint(c) }
	switch {
	case name == "." || name == "..", name == "", len(name) > snapshotNameMax,
		!utf8.ValidString(name), strings.ContainsFunc(name, unprintable):
		return huma.Error422UnprocessableEntity(fmt.Sprintf("%q is no name of 1 to %d characters that can be printed; . and .. are none either", name, snapshotNameMax))
	}
	return nil
}

func (h *handlers) createSnapshot(ctx context.Context, in *newSnapshotInput) (*snapshotOutput, error) {
	if err := checkSnapshotName(in.Name); err != nil {
		return nil, err
	}
	head := storedSnapshot{Version: storedVersion, At: time.Now().UTC()}
	var content bytes.Buffer
	zip := gzip.NewWriter(&content)
	lines := json.NewEncoder(zip)
	add := func(id string) error {
		offsets, err := h.committed(ctx, id)
		if err != nil || len(offsets) == 0 {
			return err
		}
		head.Groups, head.Offsets = head.Groups+1, head.Offsets+len(offsets)
		if content.Len() > snapshotBytesMax {
			return huma.Error422UnprocessableEntity("the snapshot would be too large; take it of fewer groups, with a prefix")
		}
		return lines.Encode(snapshotGroup{id, offsets})
	}
	if err := h.eachGroup(ctx, &in.Body, add); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	first, err := json.Marshal(&head)
	if err != nil {
		return nil, err
	}
	_, created, err := h.Snapshots.Add(in.Name, append(append(first, '\n'), content.Bytes()...), time.Time{})
	if err != nil {
		return nil, err
	}
	if !created {
		return nil, huma.Error409Conflict(fmt.Sprintf("there is a snapshot %q", in.Name))
	}
	return &snapshotOutput{SnapshotLine{in.Name, head.At, head.Groups, head.Offsets}}, nil
}

// snapshotGroup is a group in a snapshot.
type snapshotGroup struct {
	Group   string            `json:"group"`
	Offsets []CommittedOffset `json:"offsets"`
}

// eachGroup calls f with the ids that a request means.
func (h *handlers) eachGroup(ctx context.Context, which *NewSnapshot, f func(id string) error) error {
	ids := slices.Clone(which.Groups)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if err := f(id); err != nil {
			return err
		}
	}
	if len(which.Groups) > 0 {
		return nil
	}
	for shard := range h.Groups.Shards() {
		lines, err := h.shardGroups(ctx, shard, &GroupFilter{Prefix: which.Prefix})
		if err != nil {
			return err
		}
		for i := range lines {
			if err := f(lines[i].Group); err != nil {
				return err
			}
		}
	}
	return nil
}

// openSnapshot splits a row.
func openSnapshot(r *named.Row) (head storedSnapshot, groups []byte, err error) {
	first, groups, _ := bytes.Cut(r.Value, []byte{'\n'})
	if err := json.Unmarshal(first, &head); err != nil {
		return head, nil, fmt.Errorf("snapshot %q cannot be read: %w", r.Name, err)
	}
	if head.Version != storedVersion {
		return head, nil, fmt.Errorf("snapshot %q has version %d, which this release does not know", r.Name, head.Version)
	}
	return head, groups, nil
}

func (h *handlers) listSnapshots(context.Context, *struct{}) (*snapshotsOutput, error) {
	out := &snapshotsOutput{}
	out.Body.Snapshots = []SnapshotLine{}
	var bad error
	err := h.Snapshots.List("", func(r named.Row) bool {
		head, _, err := openSnapshot(&r)
		if err != nil {
			bad = err
			return false
		}
		out.Body.Snapshots = append(out.Body.Snapshots, SnapshotLine{r.Name, head.At, head.Groups, head.Offsets})
		return true
	})
	return out, errors.Join(err, bad)
}

func (h *handlers) snapshotOffsets(_ context.Context, in *snapshotOffsetsInput) (*committedOutput, error) {
	row, ok, err := h.Snapshots.Get(in.Name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, huma.Error404NotFound(fmt.Sprintf("there is no snapshot %q", in.Name))
	}
	_, content, err := openSnapshot(&row)
	if err != nil {
		return nil, err
	}
	zip, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	lines := json.NewDecoder(zip)
	for {
		var g snapshotGroup
		if err := lines.Decode(&g); errors.Is(err, io.EOF) {
			return nil, huma.Error404NotFound(fmt.Sprintf("snapshot %q has no offsets of group %q", in.Name, in.Group))
		} else if err != nil {
			return nil, fmt.Errorf("snapshot %q cannot be read: %w", in.Name, err)
		}
		if g.Group == in.Group {
			out := &committedOutput{}
			out.Body.Offsets = g.Offsets
			return out, nil
		}
	}
}

func (h *handlers) deleteSnapshot(_ context.Context, in *snapshotInput) (*struct{}, error) {
	return nil, h.Snapshots.Delete(in.Name, 0)
}
