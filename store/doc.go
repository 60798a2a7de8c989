// Package store opens the data directory: the two Pebbles groups/ and topics/,
// their format and the committer of each.
//
// A data directory has
//
//	FORMAT     which format, which version wrote it, cluster id, number of shards (one JSON object)
//	BOOTSTRAP  there only while the store is being created
//	LOCK, PID  who has the directory open
//	groups/    the Pebble of groups and committed offsets, written by store/groups
//	topics/    the Pebble of topics, records and transactions, written by store/topics
//	format-N/  a copy from before the migration from format N, to be deleted by the operator
//
// Two Pebbles, so that produce traffic never stalls a commit. Each has one
// [Committer], which merges what is handed in while a sync runs into one batch
// with one sync. Nothing needs a batch over both.
//
// The first error of a write ends the store ([Failure]): every later op fails with
// it, the process stops, and the restart replays what is durable.
package store
