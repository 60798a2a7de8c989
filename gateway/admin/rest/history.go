package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// History is what was; *coordinator.Router has it.
type History interface {
	// Changes calls f with the changes of a group, oldest first.
	Changes(ctx context.Context, id string, f func(seq uint64, rec *group.Record) error) error
	// OffsetsAsOf returns the committed offsets that a group had at a Unix time in
	// milliseconds.
	OffsetsAsOf(ctx context.Context, id string, at group.Time) ([]group.FetchedTopic, error)
}

// Change is one change of a group or its offsets.
type Change struct {
	Seq         uint64            `json:"seq" doc:"The place in the change log of the group's shard: its offset in the partition of __consumer_offsets."`
	At          time.Time         `json:"at"`
	Kind        string            `json:"kind" enum:"commit,delete-offsets,membership,delete-group,stage,commit-transaction,abort-transaction,delete-staged,unknown"`
	By          ChangedBy         `json:"by"`
	Transaction string            `json:"transaction,omitempty" doc:"The transactional id, of what was staged and how that ended."`
	Offsets     []CommittedOffset `json:"offsets,omitempty" doc:"What was committed or deleted."`
	Generation  int32             `json:"generation,omitempty" doc:"Of the membership that the change made."`
	Members     int               `json:"members,omitempty" doc:"Of the membership that the change made."`
}

// ChangedBy is who made a change; empty if the coordinator did.
type ChangedBy struct {
	Principal  string `json:"principal,omitempty"`
	ClientID   string `json:"client_id,omitempty"`
	Host       string `json:"host,omitempty"`
	Member     string `json:"member,omitempty"`
	Generation int32  `json:"generation" doc:"-1 if the request named none."`
}

// changesMax is the most changes that an answer has.
const changesMax = 10_000

type (
	historyInput struct {
		Group     string `path:"group"`
		Topic     string `query:"topic" doc:"Changes of offsets of this topic only."`
		Partition int32  `query:"partition" default:"-1" doc:"Changes of offsets of this partition only; -1 is every one."`
		Since     string `query:"since" doc:"Changes since then only: RFC 3339, or a duration back from now such as 2h."`
		Limit     int    `query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"The most changes; the newest are kept."`
	}
	historyOutput struct {
		Body struct {
			Changes []Change `json:"changes" doc:"Oldest first."`
			More    bool     `json:"more" doc:"There were older ones beyond the limit."`
		}
	}
	offsetsInput struct {
		Group string `path:"group"`
		AsOf  string `query:"as_of" doc:"What was committed then: RFC 3339, or a duration back from now such as 2h. Without it, what is now."`
	}
	diffInput struct {
		Group string `path:"group"`
		From  string `query:"from" required:"true" doc:"RFC 3339, or a duration back from now such as 2h."`
		To    string `query:"to" default:"0s" doc:"The same; without it, now."`
	}
	diffOutput struct {
		Body struct {
			Differences []Difference `json:"differences"`
		}
	}
)

// Difference is a partition whose committed offset is not what it was.
type Difference struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      *int64 `json:"from" doc:"Null if nothing was committed."`
	To        *int64 `json:"to" doc:"Null if nothing was committed."`
}

func (h *handlers) registerHistory(a huma.API) {
	huma.Register(a, operation("group-history", http.MethodGet, "/v1/groups/{group}/history",
		"What was committed, deleted and formed, when and by whom", "history"), h.groupHistory)
	huma.Register(a, operation("diff-offsets", http.MethodGet, "/v1/groups/{group}/diff",
		"How the committed offsets of two moments differ", "history"), h.diffOffsets)
}

// parseTime is [ParseTime] for a parameter.
func parseTime(name, text string) (group.Time, error) {
	t, err := ParseTime(text, time.Now())
	if err != nil {
		return 0, huma.Error422UnprocessableEntity(name + ": " + err.Error())
	}
	return group.Time(t.UnixMilli()), nil
}

func (h *handlers) groupHistory(ctx context.Context, in *historyInput) (*historyOutput, error) {
	since := group.Time(0)
	if in.Since != "" {
		var err error
		if since, err = parseTime("since", in.Since); err != nil {
			return nil, err
		}
	}
	out := &historyOutput{}
	changes := []Change{}
	err := h.History.Changes(ctx, in.Group, func(seq uint64, rec *group.Record) error {
		if rec.Wall < since {
			return nil
		}
		c, ok := change(seq, rec, in.Topic, in.Partition)
		if !ok {
			return nil
		}
		if changes = append(changes, c); len(changes) >= 2*changesMax {
			changes = append(changes[:0], changes[len(changes)-in.Limit:]...)
			out.Body.More = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(changes) > in.Limit {
		changes, out.Body.More = changes[len(changes)-in.Limit:], true
	}
	out.Body.Changes = changes
	return out, nil
}

// kind names the kind of a record.
func kind(rec *group.Record) string {
	switch rec.Kind {
	case group.RecordOffsets:
		return "commit"
	case group.RecordOffsetsDeleted:
		return "delete-offsets"
	case group.RecordMembership:
		return "membership"
	case group.RecordGroupDeleted:
		return "delete-group"
	case group.RecordPending:
		return "stage"
	case group.RecordPendingDeleted:
		return "delete-staged"
	case group.RecordResolved:
		if rec.Commit {
			return "commit-transaction"
		}
		return "abort-transaction"
	}
	return "unknown"
}

// change is a record as it is shown, and whether it is one of a topic and partition.
func change(seq uint64, rec *group.Record, topic string, partition int32) (Change, bool) {
	c := Change{Seq: seq, At: formatTime(int64(rec.Wall)), Kind: kind(rec), Transaction: rec.Txn.ID, By: ChangedBy{
		Principal: rec.By.Principal, ClientID: rec.By.ClientID, Host: rec.By.Host,
		Member: rec.By.MemberID, Generation: rec.By.Generation,
	}}
	if rec.Membership != nil {
		c.Generation, c.Members = rec.Membership.Generation, len(rec.Membership.Members)
	}
	for i := range rec.Offsets {
		t := &rec.Offsets[i]
		if topic != "" && t.Name != topic {
			continue
		}
		for _, p := range t.Partitions {
			if partition < 0 || p.Partition == partition {
				c.Offsets = append(c.Offsets, CommittedOffset{
					Topic: t.Name, Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata,
				})
			}
		}
	}
	return c, len(c.Offsets) > 0 || topic == "" && partition < 0
}

// asOf lists the offsets that a group had at a time.
func (h *handlers) asOf(ctx context.Context, id, name, text string) ([]CommittedOffset, error) {
	at, err := parseTime(name, text)
	if err != nil {
		return nil, err
	}
	topics, err := h.History.OffsetsAsOf(ctx, id, at)
	var before *coordinator.BeforeHistoryError
	if errors.As(err, &before) {
		return nil, huma.Error422UnprocessableEntity(name + ": " + err.Error())
	}
	if err != nil {
		return nil, err
	}
	all := []CommittedOffset{}
	for _, t := range topics {
		for _, p := range t.Partitions {
			all = append(all, CommittedOffset{Topic: t.Name, Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata})
		}
	}
	return all, nil
}

func (h *handlers) diffOffsets(ctx context.Context, in *diffInput) (*diffOutput, error) {
	from, err := h.asOf(ctx, in.Group, "from", in.From)
	if err != nil {
		return nil, err
	}
	to, err := h.asOf(ctx, in.Group, "to", in.To)
	if err != nil {
		return nil, err
	}
	out := &diffOutput{}
	out.Body.Differences = differences(from, to)
	return out, nil
}

// differences compares two lists, each sorted by topic and partition.
func differences(from, to []CommittedOffset) []Difference {
	all := []Difference{}
	for len(from) > 0 || len(to) > 0 {
		var a, b *CommittedOffset
		switch order := compareHeads(from, to); {
		case order < 0:
			a, from = &from[0], from[1:]
		case order > 0:
			b, to = &to[0], to[1:]
		default:
			a, b, from, to = &from[0], &to[0], from[1:], to[1:]
		}
		if a != nil && b != nil && a.Offset == b.Offset {
			continue
		}
		d := Difference{}
		if a != nil {
			d.Topic, d.Partition, d.From = a.Topic, a.Partition, &a.Offset
		}
		if b != nil {
			d.Topic, d.Partition, d.To = b.Topic, b.Partition, &b.Offset
		}
		all = append(all, d)
	}
	return all
}

// compareHeads orders the heads of two lists; an empty one is behind.
func compareHeads(a, b []CommittedOffset) int {
	if len(a) == 0 || len(b) == 0 {
		return cmp.Compare(len(b), len(a))
	}
	return comparePartitions(&a[0], &b[0])
}

func comparePartitions(a, b *CommittedOffset) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}
