package shard

import "github.com/rollcall-mq/rollcall/coordinator/group"

// Sink takes the reply to one request. Reply is called exactly once, by whichever
// goroutine lets the reply go, and must not block. The one exception is a failed
// write: then replies that waited are dropped, and the process ends.
//
// Where the runtime answers instead of a machine (COORDINATOR_LOAD_IN_PROGRESS,
// COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR), the reply has no Body.
type Sink interface {
	Reply(group.Reply)
}
