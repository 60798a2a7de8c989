package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
)

// codeFor is the one place where an operating failure becomes a Kafka error code:
// a *kerr.Error anywhere in the chain is itself, a deadline is REQUEST_TIMED_OUT,
// the end of the process or the connection is COORDINATOR_NOT_AVAILABLE, which
// makes clients look for the gateway again, and anything else UNKNOWN_SERVER_ERROR.
func codeFor(err error) int16 {
	var ke *kerr.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ke):
		return ke.Code
	case errors.Is(err, context.DeadlineExceeded):
		return kerr.RequestTimedOut.Code
	case errors.Is(err, context.Canceled):
		return kerr.CoordinatorNotAvailable.Code
	default:
		return kerr.UnknownServerError.Code
	}
}
