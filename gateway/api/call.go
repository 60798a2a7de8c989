// Package api turns Kafka requests into events of the coordinator and operations
// on topics, and their results into responses: one file per API key.
package api

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Session is what is known of the connection that a request came in on.
type Session struct {
	// Principal is "User:ANONYMOUS" until security is built.
	Principal string
	// Host is the peer's address as Java renders it, with a leading slash.
	Host string
	// Listener is the name of the listener that accepted the connection.
	Listener string
	// Tenant prefixes every key in the store; empty for now.
	Tenant string
	// Values of one connection that handlers keep between requests, such as the
	// name and version of its client (ApiVersions).
	SoftwareName, SoftwareVersion string
}

// Call is one request from its decoding to its answer. A handler either answers
// at once ([Call.Respond], [Call.NoResponse], [Call.Close]) or says with
// [Call.Await] how many parts are still missing; whoever has a part calls
// [Call.Done]. The response is then built by the connection's goroutine.
type Call struct {
	Session  *Session
	Key      int16
	Version  int16
	ClientID string
	Msg      kmsg.Request

	missing   atomic.Int32
	wake      func()
	build     func() kmsg.Response
	onAbandon func()
	closing   string
}

// NewCall returns a call that is not answered yet. wake is called, from any
// goroutine and without blocking, when the answer of an awaited call is ready.
func NewCall(s *Session, key, version int16, clientID string, msg kmsg.Request, wake func()) *Call {
	c := &Call{Session: s, Key: key, Version: version, ClientID: clientID, Msg: msg, wake: wake}
	c.missing.Store(1)
	return c
}

// Respond answers at once.
func (c *Call) Respond(resp kmsg.Response) {
	c.build = func() kmsg.Response { return resp }
	c.missing.Store(0)
}

// NoResponse ends a request that wants no answer (Produce with acks 0).
func (c *Call) NoResponse() { c.missing.Store(0) }

// Close ends the connection instead of answering; reason goes into the log.
func (c *Call) Close(reason string) {
	c.closing = reason
	c.missing.Store(0)
}

// Await says that parts results are missing, before any of them can arrive;
// build makes the response of all of them.
func (c *Call) Await(parts int, build func() kmsg.Response) {
	c.build = build
	c.missing.Store(int32(parts))
}

// OnAbandon sets what to do if the client goes away while the call is awaited
// (take a parked Fetch out of its waiting list). A part may still arrive.
func (c *Call) OnAbandon(f func()) { c.onAbandon = f }

// Done reports one of the awaited parts.
func (c *Call) Done() {
	if c.missing.Add(-1) == 0 {
		c.wake()
	}
}

// Ready tells whether the answer can be taken.
func (c *Call) Ready() bool { return c.missing.Load() <= 0 }

// Response returns the answer of a ready call: a response, nil for none, or the
// reason to close the connection.
func (c *Call) Response() (resp kmsg.Response, closing string) {
	if c.closing != "" || c.build == nil {
		return nil, c.closing
	}
	return c.build(), ""
}

// Abandon tells the handler that nobody waits for the answer any more.
func (c *Call) Abandon() {
	if c.onAbandon != nil {
		c.onAbandon()
	}
}

// Entry is one API key in the table from which ApiVersions is derived.
type Entry struct {
	Key, Min, Max int16
	// Holds: the request may be held for long (JoinGroup, SyncGroup, Fetch), so
	// no further frame of its connection is started before it is answered.
	Holds  bool
	Handle func(c *Call)
}
