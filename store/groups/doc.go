// Package groups keeps the change log of each shard, the checkpoint that makes its
// replay short, and the base that trimmed history was folded into, in the Pebble
// groups/ of a store. It knows shards, sequence numbers and bytes; what a record
// means is the business of the coordinator.
//
// The change log is the truth: a batch of records is one synced row. State is a
// checkpoint of it, written in the background without a sync of its own: Pebble's
// write-ahead log keeps the order, so a checkpoint that survives a crash has all
// batches before it, and one that does not is replaced by a longer replay.
package groups
