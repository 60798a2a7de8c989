package coordinator

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
)

// lookbackTries is how often a look back begins anew because a trim of the history
// came between its reads. Trims are a minute apart.
const lookbackTries = 3

// BeforeHistoryError is what a look back fails with at a time of which the history
// knows nothing any more.
type BeforeHistoryError struct {
	// Begins is the Unix time from which on it knows.
	Begins group.Time
}

func (e *BeforeHistoryError) Error() string {
	return "the history begins at " + time.UnixMilli(int64(e.Begins)).UTC().Format(time.RFC3339Nano) +
		"; offsets.history.retention.ms and .bytes say how much is kept"
}

// Changes calls f with the changes of a group that the history still has, oldest
// first, and their sequence numbers in the change log of the group's shard. The
// record is valid during the call. It reads all of the shard's history.
func (r *Router) Changes(ctx context.Context, id string, f func(seq uint64, rec *group.Record) error) error {
	return r.changes(ctx, id, 0, math.MaxUint64, f)
}

func (r *Router) changes(ctx context.Context, id string, from, to uint64, f func(seq uint64, rec *group.Record) error) error {
	return r.log.Scan(ctx, ShardFor(id, r.n), from, to, func(first uint64, value []byte) error {
		return shard.DecodeBatch(first, value, func(seq uint64, of string, rec *group.Record) error {
			if of != id || seq < from || seq >= to {
				return nil
			}
			return f(seq, rec)
		})
	})
}

// OffsetsAsOf returns the committed offsets that a group had at a Unix time, sorted
// by topic and partition; nil if it had none. The error is a [*BeforeHistoryError]
// for a time before the history.
//
// It is the state after the last change that is not later than the time, so that it
// is one that really was, also where the clock was set back meanwhile.
func (r *Router) OffsetsAsOf(ctx context.Context, id string, at group.Time) ([]group.FetchedTopic, error) {
	for range lookbackTries {
		m, trimmed, err := r.asOf(ctx, id, at)
		if err != nil {
			return nil, err
		}
		if trimmed {
			continue
		}
		out := m.Step(0, &group.Fetch{Head: group.Head{Req: 1}, All: true})
		body, ok := out.Replies[0].Body.(*group.FetchReply)
		if !ok {
			return nil, fmt.Errorf("group %q at %d: code %d", id, at, out.Replies[0].Code)
		}
		return body.Topics, nil
	}
	return nil, fmt.Errorf("the history of group %q is being trimmed; try again", id)
}

// asOf makes the machine of a group as of a time. trimmed tells that the history was
// cut between the reads, so that the machine is not what it should be.
func (r *Router) asOf(ctx context.Context, id string, at group.Time) (m *group.Machine, trimmed bool, err error) {
	n := ShardFor(id, r.n)
	m = group.New(&group.Env{Config: r.cfg.Group}, id)
	base, err := r.log.BaseRows(ctx, n, group.AppendRowPrefix(nil, id), m.ApplyRow)
	if err != nil {
		return nil, false, err
	}
	begins, upto := r.wall(), base
	err = r.log.Scan(ctx, n, base, math.MaxUint64, func(first uint64, value []byte) error {
		return shard.DecodeBatch(first, value, func(seq uint64, of string, rec *group.Record) error {
			begins = min(begins, rec.Wall)
			if of == id && rec.Wall <= at {
				upto = seq + 1
			}
			return nil
		})
	})
	if err != nil {
		return nil, false, err
	}
	if base > 0 && at < begins {
		return nil, false, &BeforeHistoryError{begins}
	}
	if err := r.changes(ctx, id, base, upto, func(_ uint64, rec *group.Record) error {
		m.Apply(rec)
		return nil
	}); err != nil {
		return nil, false, err
	}
	first, _, err := r.log.Bounds(n)
	return m, first > base, err
}
