package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Produce, key 0, versions 0 to 13: version 3 has the transactional id, 7 allows
// zstd, 8 names the records at fault (KIP-467), 9 is flexible, 10 has the new leader
// (KIP-951), 13 topic ids instead of names. Versions 0 to 2 are advertised as in
// Kafka 4, because librdkafka compresses nothing otherwise, and close the connection
// as there. Versions 11 and 12 go with transactions of version 2 (KIP-890): 11 may
// answer TRANSACTION_ABORTABLE, and from 12 on a partition takes part in the
// transaction because it is written to.

// produceCall is one request.
type produceCall struct {
	call *Call
	resp *kmsg.ProduceResponse
	// appends are the parts that go to the log, and slots where their answers go.
	appends []topics.Append
	slots   []*kmsg.ProduceResponseTopicPartition
}

func (h *TopicHandlers) produce(c *Call) {
	req := c.Msg.(*kmsg.ProduceRequest)
	if c.Version < 3 {
		c.Close("Produce version 0, 1 or 2: message sets are not supported")
		return
	}
	pc := &produceCall{call: c, resp: req.ResponseKind().(*kmsg.ProduceResponse)}
	refused := h.mirrorProduce(c, req, pc)
	if req.Acks != 0 {
		c.AwaitBuilder(1, pc)
		h.append(c, req, pc.appends, c.Done)
		return
	}
	if h.append(c, req, pc.appends, func() {}) > 0 || refused {
		// Without an answer, this is how the producer learns to look again.
		c.Close("Produce with acks 0 failed")
		return
	}
	c.NoResponse()
}

// append appends, if need be as part of a transaction.
func (h *TopicHandlers) append(c *Call, req *kmsg.ProduceRequest, appends []topics.Append, done func()) (refused int) {
	if req.TransactionID == nil {
		return h.Log.Append(appends, done)
	}
	support := txn.Explicit
	switch {
	case c.Version >= 12:
		support = txn.Implicit
	case c.Version == 11:
		support = txn.Abortable
	}
	return h.Txns.Append(*req.TransactionID, support, appends, done)
}

// mirrorProduce fills in the response's partitions and collects those to append. It
// returns whether it refused one.
func (h *TopicHandlers) mirrorProduce(c *Call, req *kmsg.ProduceRequest, pc *produceCall) (refused bool) {
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	pc.appends = make([]topics.Append, 0, n)
	pc.slots = make([]*kmsg.ProduceResponseTopicPartition, 0, n)
	all := make([]kmsg.ProduceResponseTopicPartition, n)
	var whole int16
	switch {
	case req.Acks < -1 || req.Acks > 1:
		whole = kerr.InvalidRequiredAcks.Code
	case transactional(req) && (req.TransactionID == nil || !h.allowed(c, OpWrite, ResourceTransactionalID, *req.TransactionID)):
		whole = kerr.TransactionalIDAuthorizationFailed.Code
	case h.DiskLow():
		whole = kerr.KafkaStorageError.Code
	}
	pc.resp.Topics = make([]kmsg.ProduceResponseTopic, 0, len(req.Topics))
	for i := range req.Topics {
		rt := &req.Topics[i]
		if len(rt.Partitions) == 0 {
			continue
		}
		pc.resp.Topics = append(pc.resp.Topics, kmsg.ProduceResponseTopic{Topic: rt.Topic, TopicID: rt.TopicID})
		t := &pc.resp.Topics[len(pc.resp.Topics)-1]
		topic, code := h.produceTopic(c, rt)
		if code == 0 {
			code = whole
		}
		t.Partitions, all = all[:len(rt.Partitions):len(rt.Partitions)], all[len(rt.Partitions):]
		for j := range rt.Partitions {
			p := &t.Partitions[j]
			p.Default()
			p.Partition = rt.Partitions[j].Partition
			p.ErrorCode = code
			if code == 0 {
				part := topic.Partition(p.Partition)
				if part != nil {
					pc.appends = append(pc.appends, topics.Append{
						Partition: part, Records: rt.Partitions[j].Records, Zstd: c.Version >= 7})
					pc.slots = append(pc.slots, p)
					continue
				}
				p.ErrorCode = kerr.UnknownTopicOrPartition.Code
			}
			p.BaseOffset = -1
			refused = true
		}
	}
	return refused
}

// transactional tells whether a batch of the request says to be part of a
// transaction, which only the owner of a transactional id may write.
func transactional(req *kmsg.ProduceRequest) bool {
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			if topics.Transactional(req.Topics[i].Partitions[j].Records) {
				return true
			}
		}
	}
	return false
}

func (h *TopicHandlers) produceTopic(c *Call, rt *kmsg.ProduceRequestTopic) (*topics.Topic, int16) {
	name := rt.Topic
	var topic *topics.Topic
	if c.Version >= 13 {
		if topic = h.Log.TopicByID(rt.TopicID); topic == nil {
			return nil, kerr.UnknownTopicID.Code
		}
		name = topic.Name
	}
	if !h.allowed(c, OpWrite, ResourceTopic, name) {
		return nil, kerr.TopicAuthorizationFailed.Code
	}
	if topics.Reserved(name) {
		return nil, kerr.InvalidTopicException.Code
	}
	if topic == nil {
		if topic = h.Log.Topic(name); topic == nil {
			return nil, kerr.UnknownTopicOrPartition.Code
		}
	}
	return topic, 0
}

// Build fills in what the log answered.
func (pc *produceCall) Build() kmsg.Response {
	for i := range pc.appends {
		a, p := &pc.appends[i], pc.slots[i]
		p.BaseOffset, p.LogAppendTime, p.LogStartOffset = a.BaseOffset, a.LogAppendTime, a.LogStart
		if a.Refusal == nil {
			continue
		}
		p.ErrorCode = int16(a.Refusal.Code)
		p.ErrorMessage = nullable(a.Refusal.Message)
		for _, r := range a.Refusal.Records {
			p.ErrorRecords = append(p.ErrorRecords,
				kmsg.ProduceResponseTopicPartitionErrorRecord{RelativeOffset: r.Index, ErrorMessage: nullable(r.Message)})
		}
	}
	return pc.resp
}
