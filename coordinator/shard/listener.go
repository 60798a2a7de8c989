package shard

import (
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// Listener hears what shards do and turns it into logs and metrics. Its methods
// are called from any goroutine, for several shards at once, must return quickly,
// keep nothing of what they get and not call back into the shard.
type Listener interface {
	// OnNotes tells what a step of a group did, in order. A note whose From and
	// To differ is a change of the group's state.
	OnNotes(shard uint32, groupID string, notes []group.Note)
	// OnTurn ends a turn that stepped something.
	OnTurn(shard uint32, t Turn)
	// OnDurable tells that a batch of the change log has become durable.
	OnDurable(shard uint32, d Durable)
	// OnTimeout tells that replies have waited offsets.commit.timeout.ms for the
	// disk and left with an error instead.
	OnTimeout(shard uint32, replies int)
	// OnStall tells that the shard stood still for about that long, so session
	// deadlines that passed meanwhile are postponed by as much.
	OnStall(shard uint32, length time.Duration)
	// OnCheckpoint tells that a fold of changed state was handed to the log.
	OnCheckpoint(shard uint32, c Checkpoint)
	// OnTrim tells that the beginning of the change log went into the base.
	OnTrim(shard uint32, t Trim)
	// OnState tells that the shard has come to a new state of its life. l is
	// filled in when it becomes Active; err says why a load failed or what ended
	// the shard, nil otherwise.
	OnState(shard uint32, s State, l Load, err error)
}

// Turn is what one turn of a shard did and found.
type Turn struct {
	// Events were stepped, ticks and sweeps included, and made Records of Bytes.
	Events, Records, Bytes int
	// Inbox is how many events were waiting when the turn began.
	Inbox int
	// Parked is how many requests the machines hold, Groups how many groups exist.
	Parked, Groups int
}

// Durable is what became durable with one batch.
type Durable struct {
	// Records of Bytes took Latency from the append to the disk, in the clock's
	// resolution, and let Replies go.
	Records, Bytes, Replies int
	Latency                 time.Duration
}

// Checkpoint is one fold of changed state.
type Checkpoint struct {
	// Folded is the first sequence number that it does not contain.
	Folded uint64
	// Groups had Rows of Bytes that changed.
	Groups, Rows, Bytes int
}

// Trim is one cut of the change log.
type Trim struct {
	// Upto is the first sequence number that is left; Bytes of batches are gone
	// and Rows of the base were written instead.
	Upto  uint64
	Bytes int64
	Rows  int
}

// Load is what it took to load a shard.
type Load struct {
	// Rows of the checkpoint and Records of the tail made Groups.
	Rows, Records, Groups int
	Took                  time.Duration
}

// NopListener hears nothing. Embed it to hear only some of it.
type NopListener struct{}

// OnNotes implements [Listener].
func (NopListener) OnNotes(uint32, string, []group.Note) {}

// OnTurn implements [Listener].
func (NopListener) OnTurn(uint32, Turn) {}

// OnDurable implements [Listener].
func (NopListener) OnDurable(uint32, Durable) {}

// OnTimeout implements [Listener].
func (NopListener) OnTimeout(uint32, int) {}

// OnStall implements [Listener].
func (NopListener) OnStall(uint32, time.Duration) {}

// OnCheckpoint implements [Listener].
func (NopListener) OnCheckpoint(uint32, Checkpoint) {}

// OnTrim implements [Listener].
func (NopListener) OnTrim(uint32, Trim) {}

// OnState implements [Listener].
func (NopListener) OnState(uint32, State, Load, error) {}
