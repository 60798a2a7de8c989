package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// InitProducerId, key 22, versions 0 to 5: version 2 is flexible, 3 has the id and
// epoch that the producer had (KIP-360; looked at for transactions only, as in
// Kafka: without one, every call gives a new id), 4 may answer PRODUCER_FENCED, 5
// goes with transactions of version 2. Left out: transactional ids, refused with
// UNSUPPORTED_VERSION, on which producers stop at once.

func (h *TopicHandlers) initProducerID(c *Call) {
	req := c.Msg.(*kmsg.InitProducerIDRequest)
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	switch {
	case req.TransactionalID != nil && *req.TransactionalID == "":
		resp.ErrorCode = kerr.InvalidRequest.Code
	case req.TransactionalID != nil:
		resp.ErrorCode = kerr.UnsupportedVersion.Code
	case !h.allowed(c, OpIdempotentWrite, ResourceCluster, ClusterResource):
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
	default:
		c.Await(1, func() kmsg.Response { return resp })
		h.Log.NewProducerID(func(id int64, err error) {
			if resp.ErrorCode = codeFor(err); err == nil {
				resp.ProducerID, resp.ProducerEpoch = id, 0
			}
			c.Done()
		})
		return
	}
	c.Respond(resp)
}
