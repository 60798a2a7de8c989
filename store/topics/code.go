package topics

// Code is a Kafka error code: the outcome of an operation for its client.
type Code int16

// The codes of this package, with Kafka's names.
const (
	UnknownServerError           Code = -1
	None                         Code = 0
	OffsetOutOfRange             Code = 1
	CorruptMessage               Code = 2
	UnknownTopicOrPartition      Code = 3
	MessageTooLarge              Code = 10
	InvalidTopicException        Code = 17
	InvalidTimestamp             Code = 32
	TopicAlreadyExists           Code = 36
	InvalidPartitions            Code = 37
	InvalidConfig                Code = 40
	PolicyViolation              Code = 44
	OutOfOrderSequenceNumber     Code = 45
	InvalidProducerEpoch         Code = 47
	InvalidTxnState              Code = 48
	TransactionCoordinatorFenced Code = 52
	KafkaStorageError            Code = 56
	UnsupportedCompression       Code = 76
	InvalidRecord                Code = 87
)

// Refusal is why an operation was refused; nil if it was not. It is shared and
// must not be changed.
type Refusal struct {
	Code Code
	// Message is for people; it may be empty.
	Message string
	// Records are the records at fault, where single ones are.
	Records []RecordError
}

// RecordError is what is wrong with one record of a batch.
type RecordError struct {
	// Index is the record's place in its batch, from 0.
	Index   int32
	Message string
}

func refuse(code Code, message string) *Refusal { return &Refusal{Code: code, Message: message} }
