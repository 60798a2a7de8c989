// Package gateway is Rollcall's side of the sockets: listeners, connections, the
// order of replies, limits and shutdown. What is in a request is the business of the
// handlers in gateway/api.
//
// Each connection has one goroutine. It reads what has come, starts the requests in
// it one after the other, and when no complete frame is left it waits for the reply at
// the head of its queue and writes all that are ready at once. So requests are
// started and answered in order, several of them can be under way (and commits of one
// connection share a sync), and a full inbox, in which a handler waits, stops the
// reading. A connection that waits for its client has no buffer.
//
// What may run on another goroutine is [api.Call.Done], which wakes the connection,
// and what ends one from outside: shutdown, and the budget (limits.go).
package gateway
