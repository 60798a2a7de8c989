package api

import (
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListOffsets, key 2, versions 1 to 11: version 1 answers one offset with its
// timestamp, 2 has an isolation level, 4 leader epochs, 6 is flexible, 7 knows the
// timestamp -3 for the record with the largest one (KIP-734), 8 -4 for the first
// offset that is local (KIP-405), 9 -5 for the last that is tiered (KIP-1005), 10 a
// timeout for tiered storage, 11 -6 for the first that is not tiered yet (KIP-1023).
// Nothing is ever tiered here.

// Timestamps with a meaning of their own.
const (
	timestampLatest        = -1
	timestampEarliest      = -2
	timestampMax           = -3
	timestampEarliestLocal = -4
	timestampLatestTiered  = -5
	timestampPendingUpload = -6
)

func (h *TopicHandlers) listOffsets(c *Call) {
	req := c.Msg.(*kmsg.ListOffsetsRequest)
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	resp.Topics = make([]kmsg.ListOffsetsResponseTopic, len(req.Topics))
	for i := range req.Topics {
		h.listTopic(c, &req.Topics[i], req.IsolationLevel == 1, &resp.Topics[i])
	}
	c.Respond(resp)
}

func (h *TopicHandlers) listTopic(c *Call, rt *kmsg.ListOffsetsRequestTopic, committed bool, t *kmsg.ListOffsetsResponseTopic) {
	t.Topic = rt.Topic
	var topic *topics.Topic
	code := kerr.TopicAuthorizationFailed.Code
	if h.allowed(c, OpDescribe, ResourceTopic, rt.Topic) {
		code = kerr.UnknownTopicOrPartition.Code
		topic = h.Log.Topic(rt.Topic)
	}
	t.Partitions = make([]kmsg.ListOffsetsResponseTopicPartition, 0, len(rt.Partitions))
	answered := make(map[int32]int, len(rt.Partitions))
	for j := range rt.Partitions {
		rp := &rt.Partitions[j]
		p := kmsg.NewListOffsetsResponseTopicPartition()
		p.Partition = rp.Partition
		p.ErrorCode = code
		if at, twice := answered[rp.Partition]; twice {
			p.ErrorCode = kerr.InvalidRequest.Code
			t.Partitions[at] = p
			continue
		}
		answered[rp.Partition] = len(t.Partitions)
		if topic != nil {
			if part := topic.Partition(rp.Partition); part != nil {
				listOffset(part, rp, c.Version, committed, &p)
			}
		}
		t.Partitions = append(t.Partitions, p)
	}
}

func listOffset(part *topics.Partition, rp *kmsg.ListOffsetsRequestTopicPartition, version int16, committed bool, p *kmsg.ListOffsetsResponseTopicPartition) {
	p.Offset, p.Timestamp = -1, -1
	if p.ErrorCode = timestampFault(rp.Timestamp, version); p.ErrorCode != 0 {
		return
	}
	if p.ErrorCode = leaderEpochFault(part, rp.CurrentLeaderEpoch); p.ErrorCode != 0 {
		return
	}
	var err error
	switch rp.Timestamp {
	case timestampLatest:
		p.Offset = part.Limit(committed)
	case timestampEarliest, timestampEarliestLocal:
		p.Offset = part.Start()
	case timestampLatestTiered, timestampPendingUpload:
	case timestampMax:
		p.Offset, p.Timestamp, err = part.FindMaxTime()
	default:
		p.Offset, p.Timestamp, err = part.FindTime(rp.Timestamp)
	}
	if err != nil {
		p.ErrorCode = kerr.KafkaStorageError.Code
		return
	}
	if byTime := rp.Timestamp >= 0 || rp.Timestamp == timestampMax; byTime && p.Offset >= part.Limit(committed) {
		p.Offset, p.Timestamp = -1, -1 // not for this reader yet
	}
	if p.Offset >= 0 && version >= 4 {
		p.LeaderEpoch = part.LeaderEpoch()
	}
}

// timestampFault refuses a timestamp that the version does not know.
func timestampFault(ts int64, version int16) int16 {
	switch {
	case ts >= timestampEarliest,
		ts == timestampMax && version >= 7,
		ts == timestampEarliestLocal && version >= 8,
		ts == timestampLatestTiered && version >= 9,
		ts == timestampPendingUpload && version >= 11:
		return 0
	default:
		return kerr.UnsupportedVersion.Code
	}
}
