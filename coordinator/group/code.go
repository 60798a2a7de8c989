package group

// Code is a Kafka error code. The machine answers with these; what a request
// was refused for is data, never a Go error.
type Code int16

// The codes that the machine uses, with Kafka's names.
const (
	UnknownServerError      Code = -1
	None                    Code = 0
	OffsetMetadataTooLarge  Code = 12
	CoordinatorLoading      Code = 14
	CoordinatorNotAvailable Code = 15
	NotCoordinator          Code = 16
	IllegalGeneration       Code = 22
	InconsistentProtocol    Code = 23
	InvalidGroupID          Code = 24
	UnknownMemberID         Code = 25
	RebalanceInProgress     Code = 27
	NonEmptyGroup           Code = 68
	GroupIDNotFound         Code = 69
	MemberIDRequired        Code = 79
	GroupMaxSizeReached     Code = 81
	FencedInstanceID        Code = 82
	GroupSubscribedToTopic  Code = 86
	UnstableOffsetCommit    Code = 88
	UnknownTopicID          Code = 100
)
