package shard

import "github.com/rollcall-mq/rollcall/coordinator/group"

// Sink takes the reply to one request. Reply is called exactly once, by whichever
// goroutine lets the reply go, and must not block.
type Sink interface {
	Reply(group.Reply)
}
