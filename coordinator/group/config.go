package group

// Config is the part of the configuration that decides. Durations are
// milliseconds; the comments name Kafka's keys.
type Config struct {
	InitialRebalanceDelay Time // group.initial.rebalance.delay.ms
	MaxSize               int  // group.max.size
	MaxMetadata           int  // offset.metadata.max.bytes, in UTF-16 units as in Kafka
	OffsetsRetention      Time // offsets.retention.minutes
	PendingMax            int  // most member ids handed out and not yet joined, per group (our own limit)
	// Assignors assign on the server, by protocol type (design rule 8).
	Assignors map[string]Assignor
}

// Assignor computes assignments for a protocol type whose leader sent none.
type Assignor interface {
	// Assign gets the members of the round in join order with the metadata of
	// the selected protocol and returns each one's assignment in that order.
	Assign(members []JoinMember) [][]byte
}
