// Package shard is the runtime of the coordinator: it steps the machines of one
// shard's groups, hands their records to a [Log] and lets each reply go when the
// records of its group that were made before it are durable.
//
// # A turn
//
// All work happens in turns ([Shard.RunOnce]), one at a time: drain a bounded part
// of the inbox, step each event on its group's machine, put the records of all of
// them into one batch, hand that to the log, and go on with the next turn while the
// log syncs. The log's own goroutine then releases the replies that waited for the
// batch. Nothing is decided by anything but a turn's arguments, the clock and the
// log of its [Config], so a simulator can run many shards on one goroutine and get
// the same bytes for the same events.
//
// Turns are done by [Shard.Run], one goroutine a shard, or by a submitter who finds
// the shard at rest: an event other than a commit then needs no other goroutine at
// all (docs/adr/0006).
//
// # What a reply waits for
//
// Each group remembers the sequence number after its last record. A reply made
// while that is durable leaves at once; otherwise it is put on the list of the
// batch that has the record. Batches become durable in order, so the replies of
// one group leave in the order in which they were made, and no group waits for
// another one's records.
//
// # Time
//
// An event is stamped under the inbox lock, so stamps and queue have one order. A
// machine gets its Tick after every event that arrived by the deadline. If the
// shard itself stood still for over a second, deadlines that passed meanwhile are
// ticked with the length of the standstill.
//
// # Checkpoints
//
// A fold begins at a sequence number F and visits, some at a time, the groups
// that changed since the last one. A group that is about to be stepped before its
// turn comes is visited first, so every row handed to the log is as of F exactly.
//
// # Trimming
//
// [Shard.Trim] moves the beginning of the change log into the base, beside the
// turns: it reads the log and the rows of the groups in question, applies the
// records to machines of its own, and hands the rows that changed to the log
// together with the cut. It takes no lock and knows of the turns only how far they
// have folded and what is durable. What it takes at a time is bounded.
//
// # Locks
//
// There are three, none is held while another is taken except in this order:
// Shard.turn (the right to step machines), inbox.mu, outbox.mu. A sink and a
// listener must not call back into the shard.
package shard
