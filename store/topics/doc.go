// Package topics is the embedded topic store: topics, their records and the state
// of idempotent producers, in one Pebble that no group state shares.
//
// A [Log] holds all topics. Record batches are stored as producers sent them, but
// for the first bytes of the header that a broker owns (base offset, leader epoch
// and, where asked for, the timestamps of the append), and are served by putting
// stored batches one behind the other.
//
// # What is durable
//
// An append gives offsets and checks sequence numbers against the newest state,
// durable or not, under one lock, and submits everything that it writes as one op
// to the store's committer; it is done when that op is on the disk. The end of a
// partition that readers see (its high watermark) moves only then, so nothing that
// a crash can take back is ever shown. Topics come into being, and go, in the same
// way.
//
// # Keys
//
// All begin with the tenant: its length plus one, and that many bytes; for now always
// the byte 1. Numbers are big-endian.
//
//	'm' id                              a topic: name, partitions, configs
//	't' transactional id                its producer, and its transaction's state
//	't' transactional id 'p' topic partition, 't' transactional id 'g' group
//	                                    what takes part in its open transaction
//	'n'                                 the first producer id that is not handed out
//	'd' id partition 'b' offset         a record batch under its base offset
//	'd' id partition 'i' time offset    a batch whose largest timestamp is above all before it
//	'd' id partition 'a' offset         an aborted transaction, under the offset of its marker
//	'd' id partition 's'                where the partition begins, and up to where it is compacted
//	'd' id partition 'p' producer       what is remembered of an idempotent producer
//
// So everything of a partition, and everything of a topic, is one range of keys.
// The rows under 'i' are the time index: the first one at or after a time is the
// first batch that has such a record. They are exact as long as no batch is removed
// from the front; whoever trims a partition has to write the rows that are missing
// from the new front to the next row that remains.
package topics
