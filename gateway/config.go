package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/rollcall-mq/rollcall/protocol"
)

// Config is what a [Server] is made of. The zero value of a limit stands for its
// default.
type Config struct {
	// Entries are the APIs that are served.
	Entries []api.Entry
	// Observer is told what happens; nil for nobody.
	Observer Observer
	// Release is called by [Server.Shutdown] when no new request can come any more.
	// It makes everything that is still held be answered: the coordinator gives up
	// its shards. It may be nil.
	Release func(ctx context.Context)

	// FrameBytesMax is socket.request.max.bytes: the longest request.
	FrameBytesMax int
	// QueuedBytesMax is queued.max.request.bytes: what all requests in flight take
	// together, beyond the first 16 KiB of each.
	QueuedBytesMax int64
	// ConnectionsMax is max.connections. As in Kafka, further ones wait to be
	// accepted until another is closed.
	ConnectionsMax int
	// IdleMax is connections.max.idle.ms: how long a connection may be silent while
	// no request of it is held.
	IdleMax time.Duration
	// RequestStallMax is how long a request that has begun may go without 1 KiB more
	// of it, or its end.
	RequestStallMax time.Duration
	// WriteStallMax is how long a client may leave a piece of a response unread.
	WriteStallMax time.Duration
}

// The defaults of the limits.
const (
	defaultFrameBytesMax   = protocol.MaxFrameBytes
	defaultQueuedBytesMax  = 256 << 20
	defaultConnectionsMax  = 50_000
	defaultIdleMax         = 10 * time.Minute
	defaultRequestStallMax = 30 * time.Second
	defaultWriteStallMax   = 30 * time.Second
)

// The limits of one connection.
const (
	// inFlightMax is how many requests may be under way.
	inFlightMax = 64
	// inFlightBytesMax is what they may take, decoded, before no further one is
	// started. One may be larger.
	inFlightBytesMax = 1 << 20
	// headPatience is how long the reply at the head is waited for before the
	// connection watches the socket as well, to notice a client that goes away.
	headPatience = 10 * time.Millisecond
	// clientIDKept is the length up to which a client id is kept between requests.
	clientIDKept = 255
	// stallBytes is what a request must bring within RequestStallMax.
	stallBytes = 1 << 10
	// writeBytesMax is how much of a response is written with one deadline, and how
	// much of several responses is gathered before a write.
	writeBytesMax = 256 << 10
)

func (c Config) withDefaults() Config {
	orInt := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	orTime := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	if c.QueuedBytesMax == 0 {
		c.QueuedBytesMax = defaultQueuedBytesMax
	}
	orInt(&c.FrameBytesMax, defaultFrameBytesMax)
	orInt(&c.ConnectionsMax, defaultConnectionsMax)
	orTime(&c.IdleMax, defaultIdleMax)
	orTime(&c.RequestStallMax, defaultRequestStallMax)
	orTime(&c.WriteStallMax, defaultWriteStallMax)
	return c
}

// Validate tells what is wrong with the limits, naming Kafka's keys.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.FrameBytesMax < 1<<10 || c.FrameBytesMax > 1<<30:
		return fmt.Errorf("socket.request.max.bytes is %d: must be from 1024 to 1073741824", c.FrameBytesMax)
	case c.QueuedBytesMax < int64(c.FrameBytesMax):
		return fmt.Errorf("queued.max.request.bytes is %d: must be at least socket.request.max.bytes (%d)", c.QueuedBytesMax, c.FrameBytesMax)
	case c.ConnectionsMax < 1:
		return fmt.Errorf("max.connections is %d: must be at least 1", c.ConnectionsMax)
	case c.IdleMax < 0:
		return fmt.Errorf("connections.max.idle.ms is %d: must not be negative", c.IdleMax.Milliseconds())
	case c.RequestStallMax < 0 || c.WriteStallMax < 0:
		return fmt.Errorf("a time for requests or responses to make progress is negative")
	}
	return nil
}
