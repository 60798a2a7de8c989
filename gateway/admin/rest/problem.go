package rest

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kerr"
)

// statuses has the HTTP status of Kafka's errors; what is not here is the server's
// fault.
var statuses = map[*kerr.Error]int{
	kerr.GroupIDNotFound:            http.StatusNotFound,
	kerr.UnknownTopicOrPartition:    http.StatusNotFound,
	kerr.UnknownTopicID:             http.StatusNotFound,
	kerr.NonEmptyGroup:              http.StatusConflict,
	kerr.GroupSubscribedToTopic:     http.StatusConflict,
	kerr.UnknownMemberID:            http.StatusConflict,
	kerr.RebalanceInProgress:        http.StatusConflict,
	kerr.TopicAlreadyExists:         http.StatusConflict,
	kerr.InvalidGroupID:             http.StatusUnprocessableEntity,
	kerr.InvalidTopicException:      http.StatusUnprocessableEntity,
	kerr.InvalidPartitions:          http.StatusUnprocessableEntity,
	kerr.InvalidReplicationFactor:   http.StatusUnprocessableEntity,
	kerr.InvalidReplicaAssignment:   http.StatusUnprocessableEntity,
	kerr.InvalidConfig:              http.StatusUnprocessableEntity,
	kerr.InvalidRequest:             http.StatusUnprocessableEntity,
	kerr.OffsetMetadataTooLarge:     http.StatusUnprocessableEntity,
	kerr.PolicyViolation:            http.StatusUnprocessableEntity,
	kerr.GroupAuthorizationFailed:   http.StatusForbidden,
	kerr.TopicAuthorizationFailed:   http.StatusForbidden,
	kerr.ClusterAuthorizationFailed: http.StatusForbidden,
	kerr.CoordinatorLoadInProgress:  http.StatusServiceUnavailable,
	kerr.CoordinatorNotAvailable:    http.StatusServiceUnavailable,
	kerr.NotCoordinator:             http.StatusServiceUnavailable,
	kerr.KafkaStorageError:          http.StatusServiceUnavailable,
	kerr.RequestTimedOut:            http.StatusServiceUnavailable,
	kerr.UnstableOffsetCommit:       http.StatusServiceUnavailable,
}

// kafkaError is nil for code 0, and else the problem that stands for it: what was
// asked for, Kafka's name of the error, and its words or the given message.
func kafkaError(what string, code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err == nil {
		return nil
	}
	status, words := http.StatusInternalServerError, err.Error()
	var e *kerr.Error
	if errors.As(err, &e) {
		words = e.Message + ": " + e.Description
		if s, ok := statuses[e]; ok {
			status = s
		}
		if message != nil && *message != "" {
			words = e.Message + ": " + *message
		}
	}
	return huma.NewError(status, what+": "+words)
}

// problem answers with a problem where no operation does.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(huma.NewError(status, detail)) // the client may be gone
}
