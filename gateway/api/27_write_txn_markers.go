package api

import (
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// WriteTxnMarkers, key 27, versions 1 to 2: version 1 is flexible, 2 says by which
// version of transactions the marker is made (KIP-1228). It is for administrators
// only, who end a hanging transaction in a partition; the gateway's own transactions
// need no requests. Left out: markers for __consumer_offsets.
//
// Differs from Kafka: [no-offsets-markers]; [markers-in-order].

func (h *TxnHandlers) writeTxnMarkers(c *Call) {
	req := c.Msg.(*kmsg.WriteTxnMarkersRequest)
	resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	allowed := h.allowed(c, OpAlter, ResourceCluster, ClusterResource) || h.allowed(c, OpClusterAction, ResourceCluster, ClusterResource)
	var markers []topics.Marker
	var slots []*int16
	for i := range req.Markers {
		m := &req.Markers[i]
		rm := kmsg.WriteTxnMarkersResponseMarker{ProducerID: m.ProducerID}
		for _, rt := range m.Topics {
			t := kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: rt.Topic, Partitions: make([]kmsg.WriteTxnMarkersResponseMarkerTopicPartition, len(rt.Partitions))}
			topic := h.Log.Topic(rt.Topic)
			for j, index := range rt.Partitions {
				p := &t.Partitions[j]
				p.Partition = index
				switch {
				case !allowed:
					p.ErrorCode = kerr.ClusterAuthorizationFailed.Code
				case topic == nil || topic.Partition(index) == nil:
					p.ErrorCode = kerr.UnknownTopicOrPartition.Code
				case m.ProducerID < 0 || m.ProducerEpoch < 0:
					p.ErrorCode = kerr.UnknownServerError.Code // as Kafka, where it is an exception
				default:
					markers = append(markers, topics.Marker{
						Partition: topic.Partition(index), ProducerID: m.ProducerID, Epoch: m.ProducerEpoch,
						CoordinatorEpoch: m.CoordinatorEpoch, Commit: m.Committed, Newer: m.TransactionVersion >= 2,
					})
					slots = append(slots, &p.ErrorCode)
				}
			}
			rm.Topics = append(rm.Topics, t)
		}
		resp.Markers = append(resp.Markers, rm)
	}
	c.Await(1, func() kmsg.Response { return resp })
	h.Log.WriteMarkers(markers, func(err error) {
		for i := range markers {
			switch {
			case markers[i].Refusal != nil:
				*slots[i] = int16(markers[i].Refusal.Code)
			case err != nil:
				*slots[i] = kerr.KafkaStorageError.Code
			}
		}
		c.Done()
	})
}
