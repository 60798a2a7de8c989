package api

// TopicIndex is what the group handlers ask about topics: OffsetCommit and
// OffsetDelete refuse partitions that do not exist, and version 10 of OffsetCommit
// and OffsetFetch names topics by id. It answers from memory.
type TopicIndex interface {
	// Lookup returns the id of a topic and its number of partitions.
	Lookup(name string) (id [16]byte, partitions int32, ok bool)
	// ByID returns the name of the topic that has this id; the zero id is nobody's.
	ByID(id [16]byte) (name string, ok bool)
}
