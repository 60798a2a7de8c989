package api

import (
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FindCoordinator, key 10, versions 0 to 6: version 1 has a key type, a throttle
// time and an error message, 3 is flexible, 4 takes a list of keys (KIP-699), 5 is
// for an error that only transactions have (KIP-890), 6 has the key type of share
// groups (KIP-932). The coordinator of transactions is this node, too.
//
// Differs from Kafka: [find-share], since there are none; [find-other-node];
// [find-no-warm-up]; [find-error-texts].

// The key types of FindCoordinator.
const (
	keyTypeGroup       = 0
	keyTypeTransaction = 1
)

func (h *Handlers) findCoordinator(c *Call) {
	req := c.Msg.(*kmsg.FindCoordinatorRequest)
	cluster := h.Cluster.Get() // one view for all keys
	resp := &kmsg.FindCoordinatorResponse{Version: c.Version}
	if c.Version >= 4 {
		resp.Coordinators = make([]kmsg.FindCoordinatorResponseCoordinator, len(req.CoordinatorKeys))
		for i, key := range req.CoordinatorKeys {
			broker, code := h.coordinator(c, cluster, req.CoordinatorType, key)
			message := ""
			if code != 0 && !isCoordinatorType(req.CoordinatorType) {
				message = errorText(code)
			}
			resp.Coordinators[i] = kmsg.FindCoordinatorResponseCoordinator{
				Key: key, NodeID: broker.ID, Host: broker.Host, Port: broker.Port, ErrorCode: code, ErrorMessage: &message,
			}
		}
		c.Respond(resp)
		return
	}
	broker, code := h.coordinator(c, cluster, req.CoordinatorType, req.CoordinatorKey)
	message := errorText(code)
	resp.ErrorCode, resp.ErrorMessage = code, &message
	resp.NodeID, resp.Host, resp.Port = broker.ID, broker.Host, broker.Port
	c.Respond(resp)
}

// coordinator answers for one key. A group id may be anything, empty too. The
// address is that of the listener which the client came in on.
func (h *Handlers) coordinator(c *Call, cluster *Cluster, keyType int8, key string) (Broker, int16) {
	nobody := Broker{ID: -1, Port: -1}
	switch keyType {
	case keyTypeGroup:
		if !h.allowed(c, OpDescribe, ResourceGroup, key) {
			return nobody, kerr.GroupAuthorizationFailed.Code
		}
		if h.Groups.Coordinates(key) != group.None {
			// Also for a group of another node: who that is, is not known here.
			return nobody, kerr.CoordinatorNotAvailable.Code
		}
	case keyTypeTransaction:
		if !h.allowed(c, OpDescribe, ResourceTransactionalID, key) {
			return nobody, kerr.TransactionalIDAuthorizationFailed.Code
		}
	default:
		return nobody, kerr.InvalidRequest.Code
	}
	broker, ok := cluster.Broker(cluster.NodeID, c.Session.Listener)
	if !ok {
		return nobody, kerr.CoordinatorNotAvailable.Code
	}
	return broker, 0
}

// isCoordinatorType tells whether Kafka knows the key type: errors of keys then
// have no text in a list, those of the whole request have.
func isCoordinatorType(keyType int8) bool { return keyType >= keyTypeGroup && keyType <= 2 }

// errorText is what a code says in words; clients show it to people.
func errorText(code int16) string {
	if code == 0 {
		return "NONE"
	}
	return kerr.TypedErrorForCode(code).Description
}
