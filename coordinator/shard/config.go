package shard

import (
	"errors"
	"fmt"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// Clock tells the time in milliseconds: now never goes back and counts from an
// arbitrary start, wall is Unix time.
type Clock func() (now, wall group.Time)

// SystemClock returns the clock of the machine; its now counts from this call.
func SystemClock() Clock {
	start := time.Now()
	return func() (now, wall group.Time) {
		t := time.Now()
		return group.Time(t.Sub(start).Milliseconds()), group.Time(t.UnixMilli())
	}
}

// Config is what the shards of one coordinator share. A zero limit or interval
// stands for its default. Durations are milliseconds.
type Config struct {
	// Group decides what machines do.
	Group group.Config
	// Clock is the only source of time; nil stands for [SystemClock].
	Clock Clock
	// DiskLow tells whether free space is below store.min.free.bytes. It is
	// asked once a turn and must be cheap; nil stands for never.
	DiskLow func() bool
	// Topics tells the id of a topic and whether it exists. A shard that has loaded
	// drops the offsets of those that do not, in case a crash cut their deletion
	// short; nil leaves them.
	Topics func(name string) (group.TopicID, bool)
	// Transactions tells what became of a transaction in which a group takes part. A
	// shard that has loaded resolves what is pending of those that have ended, see
	// [group.CheckTransactions]; nil leaves them.
	Transactions func(group string, txn group.Transaction) group.Outcome
	// Listener hears what happens; nil stands for nobody.
	Listener Listener

	// CommitTimeout is offsets.commit.timeout.ms: how long a reply waits for the
	// disk before it is replaced by an error. Default 5000.
	CommitTimeout group.Time
	// ExpireInterval is offsets.retention.check.interval.ms. Default 600000.
	ExpireInterval group.Time
	// CheckpointBytes is how much change log makes a shard fold its state, and so
	// about how much of it a restart replays. Default 1 MiB.
	CheckpointBytes int
	// CheckpointInterval is how long a change waits for a fold at most. Default
	// 60000: rows that change every few seconds are then written once a minute.
	CheckpointInterval group.Time

	// InboxMax is how many events may wait for a shard before Submit blocks.
	InboxMax int
	// BatchMax is how many events one turn steps.
	BatchMax int
	// BatchBytesMax is the size from which on a batch takes no further step.
	BatchBytesMax int
	// SweepMax is how many groups one turn visits for folds, expiry and Each.
	SweepMax int
}

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = SystemClock()
	}
	if c.DiskLow == nil {
		c.DiskLow = func() bool { return false }
	}
	if c.Listener == nil {
		c.Listener = NopListener{}
	}
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	defTime := func(p *group.Time, v group.Time) {
		if *p == 0 {
			*p = v
		}
	}
	defTime(&c.CommitTimeout, 5_000)
	defTime(&c.ExpireInterval, 600_000)
	defTime(&c.CheckpointInterval, 60_000)
	def(&c.CheckpointBytes, 1<<20)
	def(&c.InboxMax, 1024)
	def(&c.BatchMax, 512)
	def(&c.BatchBytesMax, 512<<10)
	def(&c.SweepMax, 256)
	return c
}

// Validate returns what is wrong with the limits and intervals, nil if nothing.
func (c Config) Validate() error {
	var errs []error
	check := func(name string, v int64) {
		if v < 0 {
			errs = append(errs, fmt.Errorf("shard: %s is %d, want at least 1, or 0 for the default", name, v))
		}
	}
	check("CommitTimeout", int64(c.CommitTimeout))
	check("ExpireInterval", int64(c.ExpireInterval))
	check("CheckpointBytes", int64(c.CheckpointBytes))
	check("CheckpointInterval", int64(c.CheckpointInterval))
	check("InboxMax", int64(c.InboxMax))
	check("BatchMax", int64(c.BatchMax))
	check("BatchBytesMax", int64(c.BatchBytesMax))
	check("SweepMax", int64(c.SweepMax))
	return errors.Join(errs...)
}

// invariant panics if a condition that only a bug can break does not hold.
func invariant(ok bool, what string) {
	if !ok {
		panic("coordinator/shard: " + what)
	}
}
