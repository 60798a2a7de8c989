package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeProducers, key 61, version 0 (KIP-664). Nothing is left out.
//
// Differs from Kafka: [producers-sorted].

func (h *TxnHandlers) describeProducers(c *Call) {
	req := c.Msg.(*kmsg.DescribeProducersRequest)
	resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
	for _, rt := range req.Topics {
		t := kmsg.DescribeProducersResponseTopic{Topic: rt.Topic}
		topic := h.Log.Topic(rt.Topic)
		allowed := h.allowed(c, OpRead, ResourceTopic, rt.Topic)
		for _, index := range rt.Partitions {
			p := kmsg.DescribeProducersResponseTopicPartition{Partition: index}
			switch {
			case !allowed:
				p.ErrorCode = kerr.TopicAuthorizationFailed.Code
			case topic == nil || topic.Partition(index) == nil:
				p.ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				for _, s := range h.Log.Producers(topic.Partition(index)) {
					p.ActiveProducers = append(p.ActiveProducers, kmsg.DescribeProducersResponseTopicPartitionActiveProducer{
						ProducerID: s.ID, ProducerEpoch: int32(s.Epoch), LastSequence: s.LastSequence, LastTimestamp: s.LastMs,
						CoordinatorEpoch: s.CoordinatorEpoch, CurrentTxnStartOffset: s.TxnFirst,
					})
				}
			}
			if p.ErrorCode != 0 {
				p.ErrorMessage = nullable(errorText(p.ErrorCode))
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	c.Respond(resp)
}
