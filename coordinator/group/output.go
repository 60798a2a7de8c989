package group

// Output is what a step did. Its slices belong to the machine's [Env] and are
// valid until the next step of any machine that shares it.
type Output struct {
	// Records became part of hard state in this step and must be durable before
	// any reply of this or a later step of the group leaves.
	Records []Record
	// Replies answer this event or earlier ones that were parked.
	Replies []Reply
	// Notes say what happened, for logs, metrics and tests.
	Notes []Note
	// Rows are the changed state rows; only [Checkpoint] fills them.
	Rows []Row
	// Gone: the group does not exist (any more) and holds nothing, not even rows
	// that the next checkpoint has to remove; the runtime may forget the machine.
	Gone bool
}

// Reply answers one request.
type Reply struct {
	Req  ReqID
	Code Code
	// Body is nil where a code says it all (Heartbeat, DeleteGroup, and an
	// OffsetCommit whose partitions all have the same code).
	Body Body
}

// Body is the part of a reply that differs by request: *JoinReply, *SyncReply,
// *LeaveReply, *CommitReply, *FetchReply, *DeleteOffsetsReply, *DescribeReply
// or *ListReply.
type Body interface{ body() }

// JoinMember is a member as the leader of a round sees it. Metadata is that of
// the selected protocol.
type JoinMember struct {
	MemberID   string
	InstanceID *string
	Metadata   []byte
}

// JoinReply answers [Join], with or without an error.
type JoinReply struct {
	Generation int32
	// ProtocolType and ProtocolName are nil for null; below version 7 a null
	// name goes out as "".
	ProtocolType   *string
	ProtocolName   *string
	Leader         string
	SkipAssignment bool
	MemberID       string
	Members        []JoinMember
}

// SyncReply answers [Sync]. The protocol fields are nil with an error.
type SyncReply struct {
	ProtocolType *string
	ProtocolName *string
	Assignment   []byte
}

// LeaveReply answers [Leave] if its Code is none: one code a listed member, in
// request order.
type LeaveReply struct{ Codes []Code }

// CommitReply has a code for each topic and partition of the [Commit] or
// [TxnCommit], in its order. Without it Reply.Code stands for all of them.
type CommitReply struct{ Codes [][]Code }

// FetchedPartition is one partition of a [FetchReply].
type FetchedPartition struct {
	Partition   int32
	Code        Code
	Offset      int64
	LeaderEpoch int32
	Metadata    string
}

// FetchedTopic is one topic of a [FetchReply].
type FetchedTopic struct {
	Name       string
	ID         TopicID
	Partitions []FetchedPartition
}

// FetchReply answers [Fetch]: topics in request order, or sorted by name for All.
type FetchReply struct{ Topics []FetchedTopic }

// DeleteOffsetsReply has a code for each topic and partition of the request.
type DeleteOffsetsReply struct{ Codes [][]Code }

// DescribedMember is one member in a [DescribeReply].
type DescribedMember struct {
	MemberID   string
	InstanceID *string
	ClientID   string
	ClientHost string
	Metadata   []byte
	Assignment []byte
}

// DescribeReply answers [Describe]; an unknown group has Code
// GROUP_ID_NOT_FOUND and State Dead.
type DescribeReply struct {
	State        State
	ProtocolType string
	Protocol     string
	Members      []DescribedMember
}

// ListReply answers [List].
type ListReply struct {
	GroupID      string
	ProtocolType string
	State        State
	// Members is how many there are, Offsets how many partitions have a committed
	// offset.
	Members, Offsets int
}

func (*JoinReply) body()          {}
func (*SyncReply) body()          {}
func (*LeaveReply) body()         {}
func (*CommitReply) body()        {}
func (*FetchReply) body()         {}
func (*DeleteOffsetsReply) body() {}
func (*DescribeReply) body()      {}
func (*ListReply) body()          {}

// Note is one thing that happened: which rule acted, on whom, and what state
// the group went from and to (equal if it stayed).
type Note struct {
	Rule     Rule
	From, To State
	// Generation is the group's after the rule.
	Generation int32
	// Member is the member concerned, "" if none.
	Member string
	// Reason is in words that an operator would grep for.
	Reason string
}

// Row is one row of checkpointed state. A nil Value deletes the row.
type Row struct{ Key, Value []byte }
