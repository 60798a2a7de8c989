// Package coordinator maps group ids to shards.
package coordinator

import (
	"context"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
)

// Groups is what handlers ask of the coordinator; *Router implements it.
type Groups interface {
	// Submit gives an event to the shard of group id; its reply goes to sink. It
	// blocks while the shard's inbox is full. If ctx ends first, or the shard is
	// not here, the reply still comes, with the code for that. The event belongs
	// to the coordinator from then on, with everything it points to.
	Submit(ctx context.Context, id string, ev group.Event, sink shard.Sink)

	// Each steps one event of each existing group of every shard here, made by
	// mk, and gives the replies to done shard by shard, when the records that
	// they depend on are durable. code is none, or why the shard's groups cannot
	// be seen. done is called once a shard, from any goroutine.
	Each(ctx context.Context, mk func() group.Event, done func(shard uint32, code group.Code, replies []group.Reply))

	// Shards is offsets.topic.num.partitions of the store.
	Shards() uint32

	// Coordinates tells whether this process coordinates the group: none,
	// COORDINATOR_NOT_AVAILABLE or (for a later cluster mode) NOT_COORDINATOR.
	Coordinates(id string) group.Code
}
