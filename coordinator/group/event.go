package group

// Time is a point in time in milliseconds. The machine never asks for it: the
// now of [Machine.Step] comes from a clock that only moves forward (session and
// rebalance timers), while fields called Wall are Unix time (offset retention).
type Time int64

// ReqID names one request that waits for an answer. The runtime chooses it; the
// machine answers each ReqID that it was given exactly once, at once or later.
// Zero is the ReqID of events that want no answer.
type ReqID uint64

// Event is something that happened to a group. The implementations are the
// pointer types of this file.
type Event interface {
	// Meta returns what every event has. The runtime fills it in.
	Meta() *Head
}

// Head is the part that all events share.
type Head struct {
	// Req is the request to answer.
	Req ReqID
	// Wall is the Unix time in milliseconds at which the event arrived.
	Wall Time
	// DiskLow is set while free space is below store.min.free.bytes: what would
	// store something new is refused with COORDINATOR_NOT_AVAILABLE.
	DiskLow bool
}

// Meta implements [Event].
func (h *Head) Meta() *Head { return h }

// Client says who sent a request. It goes into the change log and into
// DescribeGroups and decides nothing.
type Client struct {
	// ID is the client id of the request header, "" if null.
	ID string
	// Host is the peer's address as Kafka renders it, with a leading slash.
	Host string
	// Principal is the authenticated user, "User:ANONYMOUS" without security.
	Principal string
}

// Protocol is one entry of a member's list of protocols. Metadata is opaque.
type Protocol struct {
	Name     string
	Metadata []byte
}

// Join is a JoinGroup request (key 11) freed of its version.
type Join struct {
	Head
	Client Client
	// MemberID is "" for a client that has none yet.
	MemberID string
	// InstanceID is nil for a dynamic member (KIP-345).
	InstanceID *string
	// NewID is a member id never used before; the machine takes it if it has to
	// name a member, since it has no entropy of its own.
	NewID string
	// RequireMemberID asks for the KIP-394 round trip (version 4 and later).
	RequireMemberID bool
	// CanSkipAssignment: the reply can say skip_assignment (KIP-814, version 9).
	CanSkipAssignment bool
	// SessionTimeout and RebalanceTimeout are milliseconds. For version 0, which
	// has no rebalance timeout, both are the session timeout.
	SessionTimeout   int32
	RebalanceTimeout int32
	ProtocolType     string
	Protocols        []Protocol
	// Reason is the client's own words (KIP-800), for notes only.
	Reason string
}

// Assignment is what the leader hands out to one member. Bytes are opaque.
type Assignment struct {
	MemberID string
	Bytes    []byte
}

// Sync is a SyncGroup request (key 14).
type Sync struct {
	Head
	Client     Client
	MemberID   string
	InstanceID *string
	Generation int32
	// ProtocolType and ProtocolName are nil if the version has none (below 5);
	// a null in version 5 never gets here.
	ProtocolType *string
	ProtocolName *string
	Assignments  []Assignment
}

// Heartbeat is a Heartbeat request (key 12).
type Heartbeat struct {
	Head
	MemberID   string
	InstanceID *string
	Generation int32
}

// LeaveMember is one member of a [Leave].
type LeaveMember struct {
	MemberID   string
	InstanceID *string
	Reason     string
}

// Leave is a LeaveGroup request (key 13). Versions below 3 have one member.
type Leave struct {
	Head
	Client  Client
	Members []LeaveMember
}

// TopicID is the id of a topic; the zero value means "not known".
type TopicID [16]byte

// CommitPartition is one partition of a [Commit].
type CommitPartition struct {
	Partition int32
	Offset    int64
	// LeaderEpoch is -1 if the client named none.
	LeaderEpoch int32
	// Metadata is "" for null.
	Metadata string
}

// CommitTopic is one topic of a [Commit].
type CommitTopic struct {
	Name       string
	ID         TopicID
	Partitions []CommitPartition
}

// Commit is an OffsetCommit request (key 8). The handler has already answered
// for partitions that do not exist; what is left here is not empty.
type Commit struct {
	Head
	Client     Client
	MemberID   string
	InstanceID *string
	Generation int32
	// GroupIDNotFound: an unknown group is GROUP_ID_NOT_FOUND (version 9 and
	// later) instead of ILLEGAL_GENERATION.
	GroupIDNotFound bool
	// Retention is in milliseconds (versions 2 to 4), -1 for the broker's own.
	Retention int64
	Topics    []CommitTopic
}

// Transaction names one transaction of a transactional id.
type Transaction struct {
	// ID is the transactional id.
	ID string
	// Number tells the transactions of one id apart. It grows with each, also where
	// the epoch does not (EndTxn up to version 4).
	Number int64
	// ProducerID and Epoch are those that wrote; they decide nothing here.
	ProducerID int64
	Epoch      int16
}

// TxnCommit is a TxnOffsetCommit request (key 28): its offsets are pending until a
// [Resolve] of the transaction. The handler has already answered for partitions
// that do not exist; the transaction is open, and the group durably in it.
type TxnCommit struct {
	Head
	Client Client
	Txn    Transaction
	// MemberID, InstanceID and Generation are "", nil and -1 where the version (below
	// 3) or the producer names no member (KIP-447).
	MemberID   string
	InstanceID *string
	Generation int32
	// GroupIDNotFound: an unknown group is GROUP_ID_NOT_FOUND (version 6 and
	// later) instead of ILLEGAL_GENERATION.
	GroupIDNotFound bool
	Topics          []CommitTopic
}

// Resolve ends a transaction in the group: its pending offsets become committed, or
// are dropped. The decision is durable before. It may be sent again at any time; one
// of a transaction that has nothing pending here changes nothing.
type Resolve struct {
	Head
	Txn    Transaction
	Commit bool
}

// FetchTopic is one topic of a [Fetch]. ID is zero if the version has names only.
type FetchTopic struct {
	Name       string
	ID         TopicID
	Partitions []int32
}

// Fetch is an OffsetFetch request (key 9) for one group.
type Fetch struct {
	Head
	// All asks for every partition with a committed offset; Topics is ignored.
	All bool
	// RequireStable answers UNSTABLE_OFFSET_COMMIT for pending offsets (KIP-447).
	RequireStable bool
	Topics        []FetchTopic
}

// DeleteOffsetsTopic is one topic of a [DeleteOffsets].
type DeleteOffsetsTopic struct {
	Name       string
	Partitions []int32
}

// DeleteOffsets is an OffsetDelete request (key 47, KIP-496).
type DeleteOffsets struct {
	Head
	Client Client
	Topics []DeleteOffsetsTopic
}

// Reset sets offsets of a group on behalf of an operator, all or nothing. An unknown
// group begins. It answers with a code only.
type Reset struct {
	Head
	Client Client
	Topics []CommitTopic
	// Replace removes all offsets that Topics does not name.
	Replace bool
	// Fence removes the members, if there are any; without it they are in the way.
	Fence bool
}

// DeleteGroup is one group of a DeleteGroups request (key 42).
type DeleteGroup struct {
	Head
	Client Client
}

// Describe is one group of a DescribeGroups request (key 15).
type Describe struct{ Head }

// List asks for the group's line in ListGroups (key 16). A group that does not
// exist answers with Code GROUP_ID_NOT_FOUND.
type List struct{ Head }

// TopicDeleted says that a topic is gone: committed and pending offsets of that
// name whose stored id equals ID or is zero are dropped.
type TopicDeleted struct {
	Head
	Name string
	ID   TopicID
}

// CheckTopics compares the stored topic ids with those that exist; it is sent
// once after a load, for deletions that a crash cut short. Lookup returns the
// id of a topic and whether it exists, and must be a pure function.
type CheckTopics struct {
	Head
	Lookup func(name string) (TopicID, bool)
}

// Outcome is what became of a transaction.
type Outcome uint8

// The outcomes. An open transaction is one whose end will still come as a [Resolve],
// decided or not.
const (
	TransactionOpen Outcome = iota
	TransactionCommitted
	TransactionAborted
)

// CheckTransactions ends here the transactions that have ended elsewhere. It is sent
// once after a load, for ends that this store has lost and the transactions' own store
// has kept, or beginnings that it has lost: without store.sync a crash can take back
// what was written last, in each store by itself. Lookup returns what became of a transaction in
// which the group takes part, [TransactionAborted] if nothing is known of that. It must
// not wait for the group's shard.
type CheckTransactions struct {
	Head
	Lookup func(group string, txn Transaction) Outcome
}

// ExpireOffsets runs the offset expiry of [Config.OffsetsRetention].
type ExpireOffsets struct{ Head }

// Tick makes the machine handle every deadline that is due. Late is how many
// milliseconds the process itself was stopped before it (rule 13): session
// deadlines move by that much instead of expiring.
type Tick struct {
	Head
	Late Time
}

// Loaded ends the replay: hard state is complete, soft state is made from it.
type Loaded struct{ Head }

// Lost ends the ownership of the shard: parked requests are answered with
// NOT_COORDINATOR and nothing may follow.
type Lost struct{ Head }

// Checkpoint asks for the state rows that changed since the last Checkpoint.
type Checkpoint struct{ Head }
