package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// InitProducerId, key 22, versions 0 to 5: version 2 is flexible, 3 has the id and
// epoch that the producer had (KIP-360; looked at for transactions only, as in
// Kafka: without one, every call gives a new id), 4 may answer PRODUCER_FENCED, 5
// goes with transactions of version 2. Nothing is left out.

func (h *TxnHandlers) initProducerID(c *Call) {
	req := c.Msg.(*kmsg.InitProducerIDRequest)
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if resp.ErrorCode = h.refusedInit(c, req); resp.ErrorCode != 0 {
		c.Respond(resp)
		return
	}
	c.Await(1, func() kmsg.Response { return resp })
	if req.TransactionalID == nil {
		h.Log.NewProducerID(func(id int64, err error) {
			if resp.ErrorCode = codeFor(err); err == nil {
				resp.ProducerID, resp.ProducerEpoch = id, 0
			}
			c.Done()
		})
		return
	}
	expected := txn.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch}
	h.Txns.Init(*req.TransactionalID, req.TransactionTimeoutMillis, expected, func(p txn.Producer, code int16) {
		if resp.ErrorCode = fencedBefore(c.Version, 4, code); code == 0 {
			resp.ProducerID, resp.ProducerEpoch = p.ID, p.Epoch
		}
		c.Done()
	})
}

func (h *TxnHandlers) refusedInit(c *Call, req *kmsg.InitProducerIDRequest) int16 {
	if req.TransactionalID == nil {
		if !h.allowed(c, OpIdempotentWrite, ResourceCluster, ClusterResource) {
			return kerr.ClusterAuthorizationFailed.Code
		}
		return 0
	}
	if code := h.refusedTxn(c, *req.TransactionalID, true); code != 0 {
		return code
	}
	if (req.ProducerID == -1) != (req.ProducerEpoch == -1) {
		return kerr.InvalidRequest.Code
	}
	return 0
}
