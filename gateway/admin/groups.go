package admin

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
)

// Groups turns what shards report into log lines and metrics. It implements
// [shard.Listener].
type Groups struct {
	log *zap.Logger
	// shards has the last figures of each shard, by number.
	shards []shardFigures
	began  time.Time

	rules       ruleCounters
	transitions [5]prometheus.Counter

	turnEvents, turnInbox  prometheus.Observer
	records, bytes         prometheus.Counter
	durable, load          prometheus.Observer
	waited, timeouts       prometheus.Counter
	stalls                 prometheus.Counter
	checkpoints, rows      prometheus.Counter
	trimmed                prometheus.Counter
	timeoutLine, stallLine throttle

	mu sync.Mutex
	// states is what OnState said last of each shard, loaded the sum of all loads.
	states []shard.State
	loaded shard.Load
}

// shardFigures is what a shard's last turn found.
type shardFigures struct{ groups, parked, inbox atomic.Int64 }

// ruleCounters has the counter of each rule, made when the rule first acts.
type ruleCounters struct {
	vec  *prometheus.CounterVec
	made [256]atomic.Pointer[prometheus.Counter]
}

func (r *ruleCounters) inc(rule group.Rule) {
	c := r.made[rule].Load()
	if c == nil {
		made := r.vec.WithLabelValues(rule.String())
		c = &made
		r.made[rule].Store(c)
	}
	(*c).Inc()
}

// NewGroups returns the listener of that many shards.
func NewGroups(m *Metrics, log *zap.Logger, shards uint32) *Groups {
	g := &Groups{
		log:    log,
		shards: make([]shardFigures, shards),
		states: make([]shard.State, shards),
		began:  time.Now(),
	}
	g.timeoutLine.every, g.stallLine.every = time.Second, time.Second
	g.define(m)
	return g
}

func (g *Groups) define(m *Metrics) {
	g.rules.vec = m.counter("group_rules_total", "How often each rule of the group protocol acted; coordinator/group/doc.go lists them.", "rule")
	transitions := m.counter("group_transitions_total", "How often a group came into a state.", "state")
	for s := range g.transitions {
		g.transitions[s] = transitions.WithLabelValues(group.State(s).String())
	}
	m.gaugeFunc("groups", "Groups that exist.", func() float64 { return g.sum(func(f *shardFigures) *atomic.Int64 { return &f.groups }) })
	m.gaugeFunc("group_requests_parked", "JoinGroup and SyncGroup requests that are held.", func() float64 { return g.sum(func(f *shardFigures) *atomic.Int64 { return &f.parked }) })
	m.gaugeFunc("shard_inbox_events", "Events that waited for their shard when its last turn began.", func() float64 { return g.sum(func(f *shardFigures) *atomic.Int64 { return &f.inbox }) })
	m.gaugeFunc("shards_active", "Shards that are loaded.", g.active)
	g.turnEvents = m.histogram("shard_turn_events", "Events that one turn of a shard stepped.", countBuckets).WithLabelValues()
	g.turnInbox = m.histogram("shard_turn_inbox_events", "Events that waited when a turn began.", countBuckets).WithLabelValues()
	g.records = m.counter("shard_records_total", "Records that were written to the change log.").WithLabelValues()
	g.bytes = m.counter("shard_record_bytes_total", "Bytes of records that were written to the change log.").WithLabelValues()
	g.durable = m.histogram("shard_durable_seconds", "Time from handing a batch to the store until it was durable.", timeBuckets).WithLabelValues()
	g.load = m.histogram("shard_load_seconds", "Time to load a shard.", timeBuckets).WithLabelValues()
	g.waited = m.counter("shard_replies_waited_total", "Replies that waited for the disk.").WithLabelValues()
	g.timeouts = m.counter("shard_reply_timeouts_total", "Replies that waited offsets.commit.timeout.ms and left with an error.").WithLabelValues()
	g.stalls = m.counter("shard_stalls_total", "Times that a shard stood still and session deadlines were postponed.").WithLabelValues()
	g.checkpoints = m.counter("shard_checkpoints_total", "Folds of changed state into the checkpoint.").WithLabelValues()
	g.rows = m.counter("shard_checkpoint_rows_total", "Rows that folds into the checkpoint wrote.").WithLabelValues()
	g.trimmed = m.counter("shard_trimmed_bytes_total", "Bytes of the change log that were trimmed.").WithLabelValues()
}

func (g *Groups) sum(of func(*shardFigures) *atomic.Int64) float64 {
	var total int64
	for i := range g.shards {
		total += of(&g.shards[i]).Load()
	}
	return float64(total)
}

// OnNotes implements [shard.Listener]: a line per rebalance, a count per rule.
func (g *Groups) OnNotes(shardNumber uint32, groupID string, notes []group.Note) {
	for i := range notes {
		n := &notes[i]
		g.rules.inc(n.Rule)
		if n.From == n.To {
			continue
		}
		g.transitions[n.To].Inc()
		line := g.log.Check(zap.DebugLevel, "group")
		if n.To == group.PreparingRebalance {
			line = g.log.Check(zap.InfoLevel, "rebalance")
		}
		if line != nil {
			line.Write(zap.String("group", groupID), zap.String("reason", n.Reason), zap.String("member", n.Member),
				zap.Int32("gen", n.Generation), zap.Stringer("from", n.From), zap.Stringer("to", n.To),
				zap.Stringer("rule", n.Rule), zap.Uint32("shard", shardNumber))
		}
	}
}

// OnTurn implements [shard.Listener].
func (g *Groups) OnTurn(shardNumber uint32, t shard.Turn) {
	f := &g.shards[shardNumber]
	f.groups.Store(int64(t.Groups))
	f.parked.Store(int64(t.Parked))
	f.inbox.Store(int64(t.Inbox))
	g.turnEvents.Observe(float64(t.Events))
	g.turnInbox.Observe(float64(t.Inbox))
}

// OnDurable implements [shard.Listener].
func (g *Groups) OnDurable(_ uint32, d shard.Durable) {
	g.records.Add(float64(d.Records))
	g.bytes.Add(float64(d.Bytes))
	g.waited.Add(float64(d.Replies))
	g.durable.Observe(d.Latency.Seconds())
}

// OnTimeout implements [shard.Listener].
func (g *Groups) OnTimeout(shardNumber uint32, replies int) {
	g.timeouts.Add(float64(replies))
	if fields, ok := g.timeoutLine.pass(zap.Uint32("shard", shardNumber), zap.Int("replies", replies)); ok {
		g.log.Warn("disk slow", fields...)
	}
}

// OnStall implements [shard.Listener].
func (g *Groups) OnStall(shardNumber uint32, length time.Duration) {
	g.stalls.Inc()
	if fields, ok := g.stallLine.pass(zap.Uint32("shard", shardNumber), zap.Duration("length", length)); ok {
		g.log.Warn("stall", fields...)
	}
}

// OnCheckpoint implements [shard.Listener].
func (g *Groups) OnCheckpoint(_ uint32, c shard.Checkpoint) {
	g.checkpoints.Inc()
	g.rows.Add(float64(c.Rows))
}

// OnTrim implements [shard.Listener].
func (g *Groups) OnTrim(_ uint32, t shard.Trim) { g.trimmed.Add(float64(t.Bytes)) }

// OnState implements [shard.Listener]: one line when all shards are loaded, and
// one for each shard that fails.
func (g *Groups) OnState(shardNumber uint32, s shard.State, l shard.Load, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.states[shardNumber] = s
	if err != nil {
		g.log.Error("shard failed", zap.Uint32("shard", shardNumber), zap.Error(err))
	}
	if s != shard.Active {
		return
	}
	g.shards[shardNumber].groups.Store(int64(l.Groups))
	g.load.Observe(l.Took.Seconds())
	g.loaded.Groups += l.Groups
	g.loaded.Rows += l.Rows
	g.loaded.Records += l.Records
	if g.countActive() == len(g.states) {
		g.log.Info("loaded", zap.Int("shards", len(g.states)), zap.Int("groups", g.loaded.Groups),
			zap.Int("rows", g.loaded.Rows), zap.Int("records", g.loaded.Records), zap.Duration("took", time.Since(g.began)))
	}
}

// countActive counts the loaded shards; the caller holds the lock.
func (g *Groups) countActive() (n int) {
	for _, s := range g.states {
		if s == shard.Active {
			n++
		}
	}
	return n
}

func (g *Groups) active() float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return float64(g.countActive())
}
