package gateway

import "time"

// Observer is told what happens on connections, for metrics. Its methods are called
// on the goroutines of connections and must not block.
type Observer interface {
	ConnectionOpened(listener string)
	ConnectionClosed(listener string, reason CloseReason)
	// RequestDone is called when a response is about to be written.
	RequestDone(RequestInfo)
}

// RequestInfo describes a request that was answered.
type RequestInfo struct {
	Listener     string
	Key, Version int16
	// Code is the error code of the response, or the first that is found in its
	// parts; 0 if there is none.
	Code int16
	// In and Out are the bytes of both frames, lengths included. Out is 0 if the
	// request wanted no response.
	In, Out int
	// Took is the time from the decoding of the request.
	Took time.Duration
}

// CloseReason tells why a connection was closed. Its text labels logs and metrics.
type CloseReason uint8

// The reasons; their number is fixed, so that they can be labels.
const (
	// The client's doing, and nothing wrong with it.
	ReasonClientClosed CloseReason = iota + 1
	ReasonNetwork
	ReasonIdle
	ReasonShutdown
	// The client cannot keep up.
	ReasonSlowRequest
	ReasonSlowReader
	// What came was not what Kafka clients send.
	ReasonTLS
	ReasonHTTP
	ReasonFrameLength
	ReasonUnsupported
	ReasonMalformed
	ReasonInflated
	// Too much of it came.
	ReasonMemory
	// A handler refused to answer.
	ReasonRefused
	reasonCount
)

var reasonTexts = [reasonCount]string{
	ReasonClientClosed: "client_closed",
	ReasonNetwork:      "network",
	ReasonIdle:         "idle",
	ReasonShutdown:     "shutdown",
	ReasonSlowRequest:  "slow_request",
	ReasonSlowReader:   "slow_reader",
	ReasonTLS:          "tls_on_plain_listener",
	ReasonHTTP:         "http_request",
	ReasonFrameLength:  "frame_length",
	ReasonUnsupported:  "unsupported_request",
	ReasonMalformed:    "malformed_request",
	ReasonInflated:     "inflated_request",
	ReasonMemory:       "memory",
	ReasonRefused:      "refused",
}

// String is the reason as a label.
func (r CloseReason) String() string {
	if r == 0 || r >= reasonCount {
		return "unknown"
	}
	return reasonTexts[r]
}

// CloseReasons lists all reasons, so that each can have a series from the start.
func CloseReasons() []CloseReason {
	reasons := make([]CloseReason, 0, reasonCount-1)
	for r := CloseReason(1); r < reasonCount; r++ {
		reasons = append(reasons, r)
	}
	return reasons
}

// ordinary reasons are not worth a warning.
func (r CloseReason) ordinary() bool { return r <= ReasonShutdown }

// nobody is the Observer of a server without one.
type nobody struct{}

func (nobody) ConnectionOpened(string)              {}
func (nobody) ConnectionClosed(string, CloseReason) {}
func (nobody) RequestDone(RequestInfo)              {}
