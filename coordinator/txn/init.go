package txn

import (
	"math"

	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
)

// exhausted tells whether no further epoch may be given out: the last one is kept
// for fencing (Kafka's TransactionMetadata.isEpochExhausted).
func exhausted(epoch int16) bool { return epoch >= math.MaxInt16-1 }

// Init gives the producer of a transactional id its producer id and a new epoch, so
// that those before it are fenced, and calls done when that is durable. expected is
// what the producer had before (KIP-360), or NoProducer. An open transaction is
// aborted; then the answer is CONCURRENT_TRANSACTIONS, and the producer asks again.
// The order of the checks is that of Kafka's
// TransactionCoordinator.handleInitProducerId. done must not block.
func (c *Coordinator) Init(id string, timeoutMs int32, expected Producer, done func(Producer, int16)) {
	if timeoutMs <= 0 || timeoutMs > c.cfg.TimeoutMaxMs {
		done(NoProducer, kerr.InvalidTransactionTimeout.Code)
		return
	}
	t := c.obtain(id)
	if t == nil {
		done(NoProducer, kerr.PolicyViolation.Code)
		return
	}
	defer t.mu.Unlock()
	if code := t.checkInit(expected); code != 0 {
		done(NoProducer, code)
		return
	}
	if t.row.State == topics.TransactionOngoing {
		c.fence(t)
		done(NoProducer, kerr.ConcurrentTransactions.Code)
		return
	}
	c.renew(t, expected)
	t.row.State, t.row.TimeoutMs = topics.TransactionEmpty, timeoutMs
	t.row.StartMs, t.row.UpdatedMs = -1, c.NowMs()
	p := t.producer()
	c.log.ChangeTransaction(t.change(), func(err error) { done(p, codeOf(err)) })
}

// checkInit tells why the producer may not begin now.
func (t *transaction) checkInit(expected Producer) int16 {
	row := &t.row
	switch {
	case t.preparing():
		return kerr.ConcurrentTransactions.Code
	case expected == NoProducer || row.Epoch < 0 || row.State == topics.TransactionOngoing && expected.ID == row.ProducerID:
		return 0
	case expected.ID == row.LastProducerID && expected.ID != row.ProducerID && exhausted(expected.Epoch) && expected.Epoch == row.LastEpoch,
		expected.ID == row.ProducerID && (expected.Epoch == row.Epoch || expected.Epoch == row.LastEpoch):
		return 0
	}
	return kerr.ProducerFenced.Code
}

// renew gives the id its next epoch, or its next producer id, unless the request is
// one that was answered before.
func (c *Coordinator) renew(t *transaction, expected Producer) {
	row := &t.row
	current := expected == NoProducer || expected.Epoch == row.Epoch
	switch {
	case row.ProducerID < 0:
		row.ProducerID, row.Epoch, row.LastEpoch = c.log.TakeProducerID(), 0, -1
	case current && exhausted(row.Epoch):
		row.LastProducerID, row.LastEpoch = row.ProducerID, -1
		if expected != NoProducer {
			row.LastEpoch = row.Epoch
		}
		row.ProducerID, row.Epoch = c.log.TakeProducerID(), 0
	case current:
		row.LastEpoch = -1
		if expected != NoProducer {
			row.LastEpoch = row.Epoch
		}
		row.Epoch++
	}
}
