package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// EndTxn, key 26, versions 0 to 5: version 2 may answer PRODUCER_FENCED, 3 is
// flexible, 5 ends a transaction of version 2 and returns the producer's next epoch
// (KIP-890). Nothing is left out.
//
// Differs from Kafka: [end-when-complete].

const endTxnKey = 26

func (h *TxnHandlers) endTxn(c *Call) {
	req := c.Msg.(*kmsg.EndTxnRequest)
	resp := req.ResponseKind().(*kmsg.EndTxnResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if resp.ErrorCode = h.refusedTxn(c, req.TransactionalID, false); resp.ErrorCode != 0 {
		c.Respond(resp)
		return
	}
	c.Await(1, func() kmsg.Response { return resp })
	p := txn.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch}
	h.Txns.End(req.TransactionalID, p, req.Commit, c.Version >= 5, func(p txn.Producer, code int16) {
		if resp.ErrorCode = fencedBefore(c.Version, 2, code); code == 0 && c.Version >= 5 {
			resp.ProducerID, resp.ProducerEpoch = p.ID, p.Epoch
		}
		c.Done()
	})
}
