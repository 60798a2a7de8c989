package api

import (
	"slices"

	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AddPartitionsToTxn, key 24, versions 0 to 5: version 2 may answer PRODUCER_FENCED,
// 3 is flexible; from 4 on brokers ask about many transactions, and also only whether
// partitions take part (KIP-890). Nothing is left out.
//
// Differs from Kafka: [add-partitions-in-order].

func (h *TxnHandlers) addPartitionsToTxn(c *Call) {
	req := c.Msg.(*kmsg.AddPartitionsToTxnRequest)
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	if c.Version >= 4 {
		h.addBatched(c, req, resp)
		return
	}
	one := kmsg.AddPartitionsToTxnRequestTransaction{TransactionalID: req.TransactionalID, ProducerID: req.ProducerID, ProducerEpoch: req.ProducerEpoch}
	for _, t := range req.Topics {
		one.Topics = append(one.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: t.Topic, Partitions: t.Partitions})
	}
	a := h.newAdding(c, &one)
	c.Await(1, func() kmsg.Response {
		for _, t := range a.topics {
			rt := kmsg.AddPartitionsToTxnResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				code := fencedBefore(c.Version, 2, p.ErrorCode)
				rt.Partitions = append(rt.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition{Partition: p.Partition, ErrorCode: code})
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp
	})
	h.add(c, a, h.refusedTxn(c, one.TransactionalID, true))
}

func (h *TxnHandlers) addBatched(c *Call, req *kmsg.AddPartitionsToTxnRequest, resp *kmsg.AddPartitionsToTxnResponse) {
	if !h.allowed(c, OpClusterAction, ResourceCluster, ClusterResource) {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		c.Respond(resp)
		return
	}
	all := make([]*adding, len(req.Transactions))
	for i := range req.Transactions {
		all[i] = h.newAdding(c, &req.Transactions[i])
	}
	build := func() kmsg.Response {
		for _, a := range all {
			resp.Transactions = append(resp.Transactions, kmsg.AddPartitionsToTxnResponseTransaction{TransactionalID: a.id, Topics: a.topics})
		}
		return resp
	}
	if len(all) == 0 {
		c.Respond(build())
		return
	}
	c.Await(len(all), build)
	for i, a := range all {
		t := &req.Transactions[i]
		code := int16(0)
		switch {
		case t.TransactionalID == "":
			code = kerr.InvalidRequest.Code
		case !t.VerifyOnly && h.DiskLow():
			code = kerr.CoordinatorNotAvailable.Code
		}
		if code == 0 && t.VerifyOnly {
			h.verify(c, a)
			continue
		}
		h.add(c, a, code)
	}
}

// adding is one transaction of a request with its answer.
type adding struct {
	id       string
	producer txn.Producer
	topics   []kmsg.AddPartitionsToTxnResponseTransactionTopic
	// parts are the partitions, and unknown tells that one of them cannot be added:
	// then none is.
	parts   []topics.TransactionPartition
	unknown bool
}

// newAdding lays out the answer, with what is known to be wrong.
func (h *TxnHandlers) newAdding(c *Call, t *kmsg.AddPartitionsToTxnRequestTransaction) *adding {
	a := &adding{id: t.TransactionalID, producer: txn.Producer{ID: t.ProducerID, Epoch: t.ProducerEpoch}}
	for _, rt := range t.Topics {
		out := kmsg.AddPartitionsToTxnResponseTransactionTopic{Topic: rt.Topic}
		topic := h.Log.Topic(rt.Topic)
		allowed := c.Version >= 4 || h.allowed(c, OpWrite, ResourceTopic, rt.Topic)
		for _, p := range rt.Partitions {
			rp := kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{Partition: p}
			switch {
			case !allowed:
				rp.ErrorCode = kerr.TopicAuthorizationFailed.Code
			case topic == nil || topic.Partition(p) == nil:
				rp.ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				a.parts = append(a.parts, topics.TransactionPartition{Topic: topic.ID, Partition: p})
			}
			a.unknown = a.unknown || rp.ErrorCode != 0
			out.Partitions = append(out.Partitions, rp)
		}
		a.topics = append(a.topics, out)
	}
	return a
}

// set gives a code to all partitions, or to those only that have none.
func (a *adding) set(code int16, all bool) {
	for i := range a.topics {
		for j := range a.topics[i].Partitions {
			if p := &a.topics[i].Partitions[j]; all || p.ErrorCode == 0 {
				p.ErrorCode = code
			}
		}
	}
}

// add adds the partitions, unless code is why not.
func (h *TxnHandlers) add(c *Call, a *adding, code int16) {
	switch {
	case code != 0:
		a.set(code, true)
		c.Done()
	case a.unknown:
		a.set(kerr.OperationNotAttempted.Code, false)
		c.Done()
	default:
		h.Txns.AddPartitions(a.id, a.producer, a.parts, func(code int16) {
			a.set(code, true)
			c.Done()
		})
	}
}

// verify tells which of the partitions take part.
func (h *TxnHandlers) verify(c *Call, a *adding) {
	parts := slices.Clone(a.parts)
	for i := range a.topics {
		for j := range a.topics[i].Partitions {
			if p := &a.topics[i].Partitions[j]; p.ErrorCode == 0 {
				p.ErrorCode = h.Txns.Verify(a.id, a.producer, parts[0])
				parts = parts[1:]
			}
		}
	}
	c.Done()
}
