package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
)

// TxnHandlers serves the API keys of transactions, and producer ids. The fields must
// be set before Entries is called; none may change after.
type TxnHandlers struct {
	// Handlers is who serves committed offsets, which a transaction may have too.
	*Handlers
	Txns *txn.Coordinator
	Log  *topics.Log
	// DiskLow tells whether the disk is nearly full: then no transaction begins or
	// grows, but all can end.
	DiskLow func() bool
}

// Entries returns the table's entries of the transaction APIs.
func (h *TxnHandlers) Entries() []Entry {
	if h.DiskLow == nil {
		h.DiskLow = func() bool { return false }
	}
	return []Entry{
		{Key: 22, Min: 0, Max: 5, Handle: h.initProducerID},
		{Key: 24, Min: 0, Max: 5, Handle: h.addPartitionsToTxn},
		{Key: 25, Min: 0, Max: 4, Handle: h.addOffsetsToTxn},
		{Key: endTxnKey, Min: 0, Max: 5, Handle: h.endTxn},
		{Key: 27, Min: 1, Max: 2, Handle: h.writeTxnMarkers},
		{Key: 28, Min: 0, Max: 6, Handle: h.txnOffsetCommit},
		{Key: 61, Min: 0, Max: 0, Handle: h.describeProducers},
		{Key: 65, Min: 0, Max: 0, Handle: h.describeTransactions},
		{Key: 66, Min: 0, Max: 2, Handle: h.listTransactions},
	}
}

// refusedTxn makes the checks that a request of a transactional producer begins with,
// in Kafka's order. grows: it would store something new.
func (h *TxnHandlers) refusedTxn(c *Call, id string, grows bool) int16 {
	switch {
	case !h.allowed(c, OpWrite, ResourceTransactionalID, id):
		return kerr.TransactionalIDAuthorizationFailed.Code
	case id == "":
		return kerr.InvalidRequest.Code
	case grows && h.DiskLow():
		return kerr.CoordinatorNotAvailable.Code
	}
	return 0
}

// fencedBefore is the code for a producer that was fenced: versions of a request
// before the one that knows PRODUCER_FENCED have another.
func fencedBefore(version, knows, code int16) int16 {
	if code == kerr.ProducerFenced.Code && version < knows {
		return kerr.InvalidProducerEpoch.Code
	}
	return code
}
