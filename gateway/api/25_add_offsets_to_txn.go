package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AddOffsetsToTxn, key 25, versions 0 to 4: version 2 may answer PRODUCER_FENCED, 3
// is flexible, 4 goes with transactions of version 2, which do not need it. The group
// itself is not looked at. Nothing is left out.

func (h *TxnHandlers) addOffsetsToTxn(c *Call) {
	req := c.Msg.(*kmsg.AddOffsetsToTxnRequest)
	resp := req.ResponseKind().(*kmsg.AddOffsetsToTxnResponse)
	resp.ErrorCode = h.refusedTxn(c, req.TransactionalID, true)
	if resp.ErrorCode != kerr.TransactionalIDAuthorizationFailed.Code && !h.allowed(c, OpRead, ResourceGroup, req.Group) {
		resp.ErrorCode = kerr.GroupAuthorizationFailed.Code
	}
	if resp.ErrorCode != 0 {
		c.Respond(resp)
		return
	}
	c.Await(1, func() kmsg.Response { return resp })
	p := txn.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch}
	h.Txns.AddGroup(req.TransactionalID, p, req.Group, func(code int16) {
		resp.ErrorCode = fencedBefore(c.Version, 2, code)
		c.Done()
	})
}
