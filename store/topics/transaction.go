package topics

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall-mq/rollcall/store"
)

// TransactionState is where a transactional id is in its life, with the numbers of
// Kafka's TransactionState.
type TransactionState uint8

// The states that are stored.
const (
	TransactionEmpty          TransactionState = 0
	TransactionOngoing        TransactionState = 1
	TransactionPrepareCommit  TransactionState = 2
	TransactionPrepareAbort   TransactionState = 3
	TransactionCompleteCommit TransactionState = 4
	TransactionCompleteAbort  TransactionState = 5
)

// Transaction is what is kept of a transactional id: its producer and the state of
// its newest transaction. A change of it is one row.
type Transaction struct {
	State TransactionState
	// V2: the newest transaction is one of version 2 (KIP-890), whose end gives the
	// producer a new epoch.
	V2 bool
	// Committed: transaction Number has ended, and was committed.
	Committed bool
	// ProducerID and Epoch are those of the producer that may write.
	ProducerID int64
	Epoch      int16
	// LastProducerID and LastEpoch are what the producer had before, as far as a
	// retry may still name it; -1 if none may.
	LastProducerID int64
	LastEpoch      int16
	// TimeoutMs is after how long an open transaction is aborted.
	TimeoutMs int32
	// Number counts the transactions of the id; it never goes back.
	Number int64
	// StartMs is when the transaction began, -1 without one, and UpdatedMs when
	// anything was changed last.
	StartMs, UpdatedMs int64
}

// TransactionPartition is a partition that takes part in a transaction.
type TransactionPartition struct {
	Topic     ID
	Partition int32
}

// StoredTransaction is a transactional id with all that takes part in its open, or
// not yet completed, transaction.
type StoredTransaction struct {
	ID string
	Transaction
	Partitions []TransactionPartition
	Groups     []string
}

// TransactionChange is one atomic change of a transactional id.
type TransactionChange struct {
	ID string
	// Row is the new row, nil to forget the id. It must not change afterwards.
	Row *Transaction
	// Added and AddedGroups take part from now on, Ended and EndedGroups no more.
	Added, Ended             []TransactionPartition
	AddedGroups, EndedGroups []string
	// Markers end the transaction in its partitions.
	Markers []Marker
}

// transactionRowVersion is the version of the rows of transactional ids.
const transactionRowVersion = 1

// Flags of a row.
const (
	flagV2        = 1
	flagCommitted = 2
)

// What follows the transactional id in the key of a participant.
const (
	participantGroup     = 'g'
	participantPartition = 'p'
)

// ChangeTransaction writes a change, and calls done when it is durable. done must
// not block, and must not call the Log. Changes become durable in the order of the
// calls, and in order with appends. A marker that is refused stops no others.
func (l *Log) ChangeTransaction(c *TransactionChange, done func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range c.Markers {
		l.placeMarker(&c.Markers[i])
	}
	l.committer.Submit(store.Op{
		Sync:  true,
		Write: c.write,
		Done: func(err error) {
			if err == nil {
				markersDurable(c.Markers)
			}
			done(err)
		},
	})
}

// AwaitDurable calls done when all that was submitted before is durable.
func (l *Log) AwaitDurable(done func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.barrier(done)
}

// WriteMarkers ends transactions of any producers, as an administrator may, and
// calls done when the markers that were not refused are durable. done must not block.
func (l *Log) WriteMarkers(markers []Marker, done func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range markers {
		l.placeMarker(&markers[i])
	}
	l.committer.Submit(store.Op{
		Sync:  true,
		Write: func(b *store.Batch) { writeMarkers(markers, b) },
		Done: func(err error) {
			if err == nil {
				markersDurable(markers)
			}
			done(err)
		},
	})
}

func (c *TransactionChange) write(b *store.Batch) {
	key := transactionKey(c.ID)
	if c.Row == nil {
		b.Delete(key)
	} else {
		b.Set(key, c.Row.encode())
	}
	for _, p := range c.Added {
		b.Set(appendPartitionParticipant(key, p), nil)
	}
	for _, g := range c.AddedGroups {
		b.Set(appendGroupParticipant(key, g), nil)
	}
	for _, p := range c.Ended {
		b.Delete(appendPartitionParticipant(key, p))
	}
	for _, g := range c.EndedGroups {
		b.Delete(appendGroupParticipant(key, g))
	}
	writeMarkers(c.Markers, b)
}

func transactionKey(id string) []byte {
	return append(binary.AppendUvarint([]byte{noTenant, kindTransact}, uint64(len(id))), id...)
}

func appendPartitionParticipant(key []byte, p TransactionPartition) []byte {
	dst := append(key[:len(key):len(key)], participantPartition)
	return binary.BigEndian.AppendUint32(append(dst, p.Topic[:]...), uint32(p.Partition))
}

func appendGroupParticipant(key []byte, group string) []byte {
	return append(append(key[:len(key):len(key)], participantGroup), group...)
}

func (t *Transaction) encode() []byte {
	flags := byte(0)
	if t.V2 {
		flags |= flagV2
	}
	if t.Committed {
		flags |= flagCommitted
	}
	b := []byte{transactionRowVersion, byte(t.State), flags}
	for _, n := range t.numbers() {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// numbers are the fields that are stored as numbers, in their order.
func (t *Transaction) numbers() [8]int64 {
	return [8]int64{t.ProducerID, int64(t.Epoch), t.LastProducerID, int64(t.LastEpoch), int64(t.TimeoutMs), t.Number, t.StartMs, t.UpdatedMs}
}

func decodeTransaction(b []byte) (t Transaction, err error) {
	r := rowReader{b: b}
	if v := r.byte(); v != transactionRowVersion && !r.failed {
		return t, fmt.Errorf("unknown version %d", v)
	}
	state, flags := TransactionState(r.byte()), r.byte()
	t = Transaction{
		State: state, V2: flags&flagV2 != 0, Committed: flags&flagCommitted != 0,
		ProducerID: r.varint(), Epoch: int16(r.varint()), LastProducerID: r.varint(), LastEpoch: int16(r.varint()),
		TimeoutMs: int32(r.varint()), Number: r.varint(), StartMs: r.varint(), UpdatedMs: r.varint(),
	}
	if t.State > TransactionCompleteAbort {
		return t, fmt.Errorf("unknown state %d", t.State)
	}
	return t, r.err()
}

// Transactions reads all transactional ids.
func (l *Log) Transactions() ([]StoredTransaction, error) {
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: []byte{noTenant, kindTransact}, UpperBound: []byte{noTenant, kindTransact + 1}})
	if err != nil {
		return nil, fmt.Errorf("read the transactions: %w", err)
	}
	defer it.Close()
	var all []StoredTransaction
	for it.First(); it.Valid(); it.Next() {
		if all, err = appendTransactionRow(all, it.Key(), it.Value()); err != nil {
			return nil, fmt.Errorf("read the transaction under key %x: %w", it.Key(), err)
		}
	}
	if err := it.Error(); err != nil {
		return nil, fmt.Errorf("read the transactions: %w", err)
	}
	return all, nil
}

// appendTransactionRow adds what a row says; the row of an id comes before those of
// what takes part in its transaction.
func appendTransactionRow(all []StoredTransaction, key, value []byte) ([]StoredTransaction, error) {
	r := rowReader{b: key[2:]}
	id := r.string()
	switch {
	case r.failed:
		return nil, errRow
	case len(r.b) == 0:
		row, err := decodeTransaction(value)
		return append(all, StoredTransaction{ID: id, Transaction: row}), err
	case len(all) == 0 || all[len(all)-1].ID != id:
		return nil, errRow
	}
	t := &all[len(all)-1]
	switch kind := r.byte(); {
	case kind == participantGroup:
		t.Groups = append(t.Groups, string(r.b))
	case kind == participantPartition && len(r.b) == 16+4:
		t.Partitions = append(t.Partitions, TransactionPartition{ID(r.b), int32(binary.BigEndian.Uint32(r.b[16:]))})
	default:
		return nil, errRow
	}
	return all, nil
}

// stateNames are Kafka's.
var stateNames = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"}

// String returns Kafka's name of the state.
func (s TransactionState) String() string { return stateNames[s] }

// TransactionStateOf returns the state of a name.
func TransactionStateOf(name string) (TransactionState, bool) {
	i := slices.Index(stateNames[:], name)
	return TransactionState(max(i, 0)), i >= 0
}
