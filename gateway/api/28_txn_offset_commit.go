package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TxnOffsetCommit, key 28, versions 0 to 6: version 2 has a leader epoch, 3 is
// flexible and has the member that commits (KIP-447), 4 may answer
// TRANSACTION_ABORTABLE, from 5 on the group takes part in the transaction because of
// this request (KIP-890), 6 has topic ids instead of names (KIP-1319). Nothing is left
// out.

// txnCommitCall is one request. It is laid out as an OffsetCommit of the same topics,
// whose answer Kafka puts together in the same way.
type txnCommitCall struct {
	commitCall
	ev group.TxnCommit
}

func (h *TxnHandlers) txnOffsetCommit(c *Call) {
	req := c.Msg.(*kmsg.TxnOffsetCommitRequest)
	tc := &txnCommitCall{commitCall: commitCall{call: c, byID: c.Version >= 6}}
	offsets := offsetsOf(req)
	if code := h.refusedTxnCommit(c, req); code != 0 {
		tc.mirror(offsets, code)
		c.Respond(tc.Build())
		return
	}
	if !h.commitAll(c, offsets, &tc.commitCall) {
		h.commitSome(c, offsets, &tc.commitCall)
	}
	if len(tc.commitCall.ev.Topics) == 0 {
		c.Respond(tc.Build())
		return
	}
	if req.Group == "" {
		tc.reply.Code = group.InvalidGroupID
		c.Respond(tc.Build())
		return
	}
	tc.ev.Client = clientOf(c)
	tc.ev.MemberID, tc.ev.InstanceID, tc.ev.Generation = req.MemberID, req.InstanceID, req.Generation
	tc.ev.GroupIDNotFound = c.Version >= 6
	tc.ev.Topics = tc.commitCall.ev.Topics
	support := txn.Explicit
	switch {
	case c.Version >= 5:
		support = txn.Implicit
	case c.Version == 4:
		support = txn.Abortable
	}
	p := txn.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch}
	c.AwaitBuilder(1, tc)
	h.Txns.CommitOffsets(c.Context(), req.TransactionalID, p, req.Group, support, &tc.ev, tc)
}

func (h *TxnHandlers) refusedTxnCommit(c *Call, req *kmsg.TxnOffsetCommitRequest) int16 {
	switch {
	case !h.allowed(c, OpWrite, ResourceTransactionalID, req.TransactionalID):
		return kerr.TransactionalIDAuthorizationFailed.Code
	case !h.allowed(c, OpRead, ResourceGroup, req.Group):
		return kerr.GroupAuthorizationFailed.Code
	}
	return 0
}

// offsetsOf is the request's part that an OffsetCommit has, too.
func offsetsOf(req *kmsg.TxnOffsetCommitRequest) *kmsg.OffsetCommitRequest {
	out := &kmsg.OffsetCommitRequest{Topics: make([]kmsg.OffsetCommitRequestTopic, len(req.Topics))}
	for i := range req.Topics {
		rt, t := &req.Topics[i], &out.Topics[i]
		t.Topic, t.TopicID = rt.Topic, rt.TopicID
		t.Partitions = make([]kmsg.OffsetCommitRequestTopicPartition, len(rt.Partitions))
		for j := range rt.Partitions {
			p := &rt.Partitions[j]
			t.Partitions[j] = kmsg.OffsetCommitRequestTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata,
			}
		}
	}
	return out
}

// Build implements [Builder].
func (tc *txnCommitCall) Build() kmsg.Response {
	tc.fill()
	resp := &kmsg.TxnOffsetCommitResponse{Version: tc.call.Version, Topics: make([]kmsg.TxnOffsetCommitResponseTopic, len(tc.resp.Topics))}
	for i := range tc.resp.Topics {
		from, t := &tc.resp.Topics[i], &resp.Topics[i]
		t.Topic, t.TopicID = from.Topic, from.TopicID
		for _, p := range from.Partitions {
			code := p.ErrorCode
			if code == kerr.CoordinatorLoadInProgress.Code && tc.call.Version < 2 {
				code = kerr.CoordinatorNotAvailable.Code // such clients know no other to repeat
			}
			t.Partitions = append(t.Partitions, kmsg.TxnOffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: code})
		}
	}
	return resp
}
