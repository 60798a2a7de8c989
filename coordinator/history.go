package coordinator

import (
	"context"
	"math"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
)

// trimInterval is how often [Router.TrimHistory] looks, by default: a row of the
// base is then written once a minute at most, like one of the checkpoint.
const trimInterval = time.Minute

// trimSlack is the part of the bytes allowed, one in so many, that goes with what is
// too much, so that a log at its limit is not cut in small pieces.
const trimSlack = 32

// History says how much of the change logs is kept.
type History struct {
	// Retention is offsets.history.retention.ms; 0 keeps what recovery needs only.
	Retention time.Duration
	// Bytes is offsets.history.retention.bytes, over all shards that are here. It may
	// be passed by what is written in an interval.
	Bytes int64
	// Interval is how often to look; 0 stands for a minute.
	Interval time.Duration
}

// TrimHistory keeps the change logs of the shards that are here within limits,
// until ctx ends. What goes is folded into a base first. A shard that cannot be
// trimmed is tried again the next time; failed is told why.
func (r *Router) TrimHistory(ctx context.Context, h History, failed func(shard uint32, err error)) {
	interval := h.Interval
	if interval == 0 {
		interval = trimInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.trim(ctx, h, failed)
		case <-ctx.Done():
			return
		}
	}
}

// trim cuts the change logs once.
func (r *Router) trim(ctx context.Context, h History, failed func(shard uint32, err error)) {
	m := r.owned.Load()
	if m == nil {
		return
	}
	sizes := make([]int64, r.n)
	total := int64(0)
	for n, s := range m.shards {
		if s == nil {
			continue
		}
		var err error
		if _, sizes[n], err = r.log.Bounds(uint32(n)); err != nil {
			failed(uint32(n), err)
		}
		total += sizes[n]
	}
	since := group.Time(math.MaxInt64)
	if h.Retention > 0 {
		since = r.wall() - group.Time(h.Retention.Milliseconds())
	}
	for n, s := range m.shards {
		if s == nil || sizes[n] == 0 {
			continue
		}
		keep := shard.Keep{Since: since}
		if over := total - h.Bytes; over > 0 { // each shard gives its share
			over += h.Bytes / trimSlack
			keep.Excess = int64(math.Ceil(float64(over) / float64(total) * float64(sizes[n])))
		}
		if err := trimShard(ctx, s, keep); err != nil && ctx.Err() == nil {
			failed(uint32(n), err)
		}
	}
}

// wall is the Unix time.
func (r *Router) wall() group.Time {
	if r.cfg.Clock != nil {
		_, wall := r.cfg.Clock()
		return wall
	}
	return group.Time(time.Now().UnixMilli())
}

// trimShard cuts all that need not be kept of one shard.
func trimShard(ctx context.Context, s *shard.Shard, keep shard.Keep) error {
	for {
		more, cut, err := s.Trim(ctx, keep)
		if err != nil || !more || ctx.Err() != nil {
			return err
		}
		keep.Excess -= cut
	}
}
