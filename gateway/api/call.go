// Package api turns Kafka requests into events of the coordinator and operations
// on topics, and their results into responses: one file per API key.
package api

import (
	"context"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Session is what is known of the connection that a request came in on.
type Session struct {
	// Ctx ends with the connection; nil stands for [context.Background]. It is
	// kept here, as in http.Request, because a call lives as long as its handling.
	Ctx context.Context
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
	builder   Builder
	resp      kmsg.Response
	onAbandon func()
	onSent    func()
	closing   string
}

// Builder makes the response of a call whose parts have all arrived. Build runs
// once, on the connection's goroutine.
type Builder interface{ Build() kmsg.Response }

// buildFunc lets a function be a Builder without an allocation.
type buildFunc func() kmsg.Response

func (f buildFunc) Build() kmsg.Response { return f() }

// Reset makes c a new call, so that a connection can use its calls again. It is
// allowed once the response of c was taken, when no part can be on its way any
// more; never for an abandoned call.
func (c *Call) Reset(s *Session, key, version int16, clientID string, msg kmsg.Request, wake func()) {
	c.Session, c.Key, c.Version, c.ClientID, c.Msg = s, key, version, clientID, msg
	c.wake, c.builder, c.resp, c.onAbandon, c.onSent, c.closing = wake, nil, nil, nil, nil, ""
	c.missing.Store(1)
}

// Context ends when the connection does.
func (c *Call) Context() context.Context {
	if c.Session.Ctx == nil {
		return context.Background()
	}
	return c.Session.Ctx
}

// Respond answers at once.
func (c *Call) Respond(resp kmsg.Response) {
	c.resp = resp
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
	c.AwaitBuilder(parts, buildFunc(build))
}

// AwaitBuilder is [Call.Await] for handlers whose state is one struct.
func (c *Call) AwaitBuilder(parts int, b Builder) {
	c.builder = b
	c.missing.Store(int32(parts))
}

// OnAbandon sets what to do if the client goes away while the call is awaited
// (take a parked Fetch out of its waiting list). A part may still arrive.
func (c *Call) OnAbandon(f func()) { c.onAbandon = f }

// OnSent sets what to do when the response has been written or cannot be any more:
// give back the memory that it took. It may be set by a Builder; without a response
// it is not called.
func (c *Call) OnSent(f func()) { c.onSent = f }

// Sent returns what to call when the response that was taken has been written, nil
// if nothing.
func (c *Call) Sent() func() { return c.onSent }

// Done reports one of the awaited parts. What its caller stored before is seen
// by the Builder.
func (c *Call) Done() {
	wake := c.wake // the call may be used again as soon as nothing is missing
	if c.missing.Add(-1) == 0 {
		wake()
	}
}

// Ready tells whether the answer can be taken.
func (c *Call) Ready() bool { return c.missing.Load() <= 0 }

// Response returns the answer of a ready call: a response, nil for none, or the
// reason to close the connection.
func (c *Call) Response() (resp kmsg.Response, closing string) {
	if c.closing != "" {
		return nil, c.closing
	}
	if c.builder != nil {
		return c.builder.Build(), ""
	}
	return c.resp, ""
}

// Abandon tells the handler that nobody waits for the answer any more.
func (c *Call) Abandon() {
	if c.onAbandon != nil {
		c.onAbandon()
	}
}
