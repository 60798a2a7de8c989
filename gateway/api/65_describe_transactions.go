package api

import (
	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeTransactions, key 65, version 0 (KIP-664). Nothing is left out.

// offsetsTopic is the topic that a group in a transaction is shown as.
const offsetsTopic = "__consumer_offsets"

func (h *TxnHandlers) describeTransactions(c *Call) {
	req := c.Msg.(*kmsg.DescribeTransactionsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
	for _, id := range req.TransactionalIDs {
		s := kmsg.DescribeTransactionsResponseTransactionState{TransactionalID: id}
		switch d, ok := h.Txns.Describe(id); {
		case !h.allowed(c, OpDescribe, ResourceTransactionalID, id):
			s.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		case id == "":
			s.ErrorCode = kerr.InvalidRequest.Code
		case !ok:
			s.ErrorCode = kerr.TransactionalIDNotFound.Code
		default:
			s.State, s.TimeoutMillis, s.StartTimestamp = d.State.String(), d.TimeoutMs, d.StartMs
			s.ProducerID, s.ProducerEpoch = d.ProducerID, d.Epoch
			s.Topics = h.participants(c, &d)
		}
		resp.TransactionStates = append(resp.TransactionStates, s)
	}
	c.Respond(resp)
}

// participants are the partitions that take part, as far as the client may see them.
func (h *TxnHandlers) participants(c *Call, d *txn.Description) (all []kmsg.DescribeTransactionsResponseTransactionStateTopic) {
	add := func(topic string, partition int32) {
		if !h.allowed(c, OpDescribe, ResourceTopic, topic) {
			return
		}
		if n := len(all); n == 0 || all[n-1].Topic != topic {
			all = append(all, kmsg.DescribeTransactionsResponseTransactionStateTopic{Topic: topic})
		}
		t := &all[len(all)-1]
		t.Partitions = append(t.Partitions, partition)
	}
	for _, p := range d.Partitions {
		if topic := h.Log.TopicByID(p.Topic); topic != nil {
			add(topic.Name, p.Partition)
		}
	}
	for _, id := range d.Groups {
		add(offsetsTopic, int32(coordinator.ShardFor(id, h.Groups.Shards())))
	}
	return all
}
