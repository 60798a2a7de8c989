package protocol

import (
	"fmt"
)

// FrameProblem tells why the length of a frame was refused.
type FrameProblem uint8

// The ways in which a length can be wrong.
const (
	FrameNegative FrameProblem = iota + 1
	FrameTooShort              // shorter than the shortest header
	FrameTooLarge
	FrameTLS  // too large, and it is the beginning of a TLS handshake
	FrameHTTP // too large, and it is the beginning of an HTTP request
)

// FrameError refuses a frame for its length, before any memory is spent on it.
type FrameError struct {
	Problem FrameProblem
	Length  int32
	Max     int32
}

func (e *FrameError) Error() string {
	switch e.Problem {
	case FrameNegative:
		return fmt.Sprintf("frame of negative length %d", e.Length)
	case FrameTooShort:
		return fmt.Sprintf("frame of %d bytes is shorter than a request header", e.Length)
	case FrameTLS:
		return fmt.Sprintf("frame length %#x is the beginning of a TLS handshake: the client uses TLS on a plain listener", e.Length)
	case FrameHTTP:
		return fmt.Sprintf("frame length %#x is %q, the beginning of an HTTP request", e.Length, lengthText(e.Length))
	default:
		return fmt.Sprintf("frame of %d bytes is over the limit of %d", e.Length, e.Max)
	}
}

// RequestProblem tells why a request was refused.
type RequestProblem uint8

// The ways in which a request can be wrong.
const (
	UnknownAPI RequestProblem = iota + 1
	UnsupportedVersion
	MalformedHeader
	MalformedBody
	// Inflated: decoding would take far more memory than the frame has bytes.
	Inflated
)

// RequestError refuses a request whose frame was fine. As in Kafka it can only be
// answered by closing the connection: the layout of an answer is not known, or the
// client's idea of the protocol cannot be trusted.
type RequestError struct {
	Problem RequestProblem
	Key     int16
	Version int16
	// Detail names the field, if there is one to name.
	Detail string
}

func (e *RequestError) Error() string {
	what := ""
	switch e.Problem {
	case UnknownAPI:
		return fmt.Sprintf("unknown API key %d (version %d)", e.Key, e.Version)
	case UnsupportedVersion:
		return fmt.Sprintf("API key %d: version %d is not supported", e.Key, e.Version)
	case MalformedHeader:
		what = "malformed header"
	case MalformedBody:
		what = "malformed body"
	case Inflated:
		what = "body would take far more memory than it has bytes"
	}
	if e.Detail != "" {
		what += ": " + e.Detail
	}
	return fmt.Sprintf("API key %d version %d: %s", e.Key, e.Version, what)
}
