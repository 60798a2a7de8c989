// Package txn coordinates transactions: who may write under a transactional id, what
// takes part in its open transaction, and how that ends in all of it or in none.
//
// # One decision
//
// Transactional ids are rows of the topics' Pebble, beside the records. So the end of
// a transaction in its partitions is one write: the decision, the markers and what
// ends are one op of the committer. Groups are in a Pebble of their own. If any take
// part the op leaves the transaction prepared; then each gets a Resolve, again and
// again until it is durable there, and a second write completes the transaction.
// After a crash a prepared transaction is resolved again; a Resolve may come twice.
// Until it is complete, nothing of the id's next transaction is accepted.
//
// # Order
//
// What is in memory is of the newest change, durable or not. Changes and appends go
// through one committer in the order of their submission, under the transaction's
// lock. So a record is never durable without its partition taking part, and an answer
// only waits until what it rests on is durable. A group is not in that order: it takes
// part durably before an offset is staged in it.
//
// # Locks
//
// A transaction has a lock. Under it requests are checked and what follows from them
// is submitted: appends, changes, staged offsets, Resolves. A submission may wait for
// the committer or for the inbox of a shard, so neither their goroutines nor a sink
// takes the lock: they hand what is to be done to the goroutine of [Coordinator.Run].
// Coordinator.mu guards the map of ids, and may be taken under a transaction's lock.
package txn
