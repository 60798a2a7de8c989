package group

// RecordKind says what a record changes. The numbers are on disk: never reuse one.
type RecordKind uint8

// The kinds of records.
const (
	// RecordOffsets sets committed offsets.
	RecordOffsets RecordKind = 1
	// RecordOffsetsDeleted removes committed offsets.
	RecordOffsetsDeleted RecordKind = 2
	// RecordMembership replaces the snapshot of the membership.
	RecordMembership RecordKind = 3
	// RecordGroupDeleted removes the group with all it has.
	RecordGroupDeleted RecordKind = 4
	// RecordPending makes offsets of a transaction pending.
	RecordPending RecordKind = 5
	// RecordResolved ends a transaction: its pending offsets are committed or dropped.
	RecordResolved RecordKind = 6
	// RecordPendingDeleted removes pending offsets of a transaction.
	RecordPendingDeleted RecordKind = 7
)

// Record is one change of hard state: what [Machine.Apply] takes and what the
// change log keeps. What Kind does not need is zero.
type Record struct {
	Kind RecordKind
	// Wall is when the change was decided, Unix time in milliseconds.
	Wall Time
	// By is who asked for it; zero for what the coordinator did by itself.
	By Provenance
	// Txn is the transaction of pending offsets, and Commit how it ended.
	Txn    Transaction
	Commit bool
	// Offsets are set or, by the kinds that delete, removed (only names and
	// partitions count then).
	Offsets []OffsetsTopic
	// Membership is the new snapshot.
	Membership *Membership
}

// Provenance is who caused a record.
type Provenance struct {
	ClientID, Host, Principal, MemberID string
	// Generation is -1 where the request had none.
	Generation int32
}

// OffsetsTopic is the part of a record about one topic.
type OffsetsTopic struct {
	Name       string
	ID         TopicID
	Partitions []OffsetsPartition
}

// OffsetsPartition is one committed offset.
type OffsetsPartition struct {
	Partition   int32
	LeaderEpoch int32
	Offset      int64
	// Commit is the time of the commit, Unix milliseconds.
	Commit Time
	// Expire is the explicit expiry of commits v2 to v4, -1 for none.
	Expire   Time
	Metadata string
}

// Membership is the snapshot of the live membership that survives a restart.
type Membership struct {
	// ProtocolType is "" only for a group that never had a member.
	ProtocolType string
	Generation   int32
	// Ceiling is the reserved generation of design rule 10.
	Ceiling int32
	// Protocol is the selected one, nil if there is none.
	Protocol *string
	Leader   string
	// Since is when the group entered this state, Unix milliseconds.
	Since   Time
	Members []MemberSnapshot
}

// MemberSnapshot is one member in a [Membership].
type MemberSnapshot struct {
	MemberID         string
	InstanceID       *string
	ClientID         string
	ClientHost       string
	SessionTimeout   int32
	RebalanceTimeout int32
	// Protocols are all that the member offered (Kafka keeps only the selected).
	Protocols  []Protocol
	Assignment []byte
}
