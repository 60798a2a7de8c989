// Package wire lets the actors of a simulation speak the Kafka protocol: their events
// become requests of any version, over any connection, and the answers become replies.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/compat-tests/sim/actor"
	"github.com/rollcall-mq/rollcall/compat-tests/sim/history"
	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// writeTimeout is how long a server may leave a request unread.
const writeTimeout = 40 * time.Second

// Conn is a connection of an actor.
type Conn struct {
	nc  net.Conn
	rnd *rand.Rand
	h   *history.History
	// quit is closed when nobody waits for answers any more.
	quit <-chan struct{}

	mu sync.Mutex
	// sent are the requests without an answer, in order.
	sent []*Call
	next int32
	// ended is closed when nothing more will be read.
	ended chan struct{}
}

// Call is a request on its way.
type Call struct {
	// Op is what the history has of it, nil if it has nothing.
	Op    *history.Op
	id    int32
	req   kmsg.Request
	reply group.Reply
	done  chan struct{}
	conn  *Conn
}

var _ actor.Conn = (*Conn)(nil)

// New returns a connection whose requests have versions that rnd chooses. When quit is
// closed nobody waits for answers any more.
func New(nc net.Conn, rnd *rand.Rand, h *history.History, quit <-chan struct{}) *Conn {
	c := &Conn{nc: nc, rnd: rnd, h: h, quit: quit, ended: make(chan struct{})}
	go c.read()
	return c
}

// Send implements [actor.Conn].
func (c *Conn) Send(id string, ev group.Event, op *history.Op) actor.Call {
	x := &Call{Op: op, req: request(c.rnd, id, ev), done: make(chan struct{}), conn: c}
	c.mu.Lock()
	x.id = c.next
	c.next++
	c.sent = append(c.sent, x)
	c.mu.Unlock()
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("sim")).AppendRequest(nil, x.req, x.id)
	c.nc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := c.nc.Write(frame); err != nil {
		c.nc.Close()
	}
	return x
}

// Close implements [actor.Conn].
func (c *Conn) Close() { c.nc.Close() }

// Ended waits until no more answers can come.
func (c *Conn) Ended() { <-c.ended }

// IsClosed tells whether the connection has ended.
func (c *Conn) IsClosed() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Idle tells whether the connection has ended with nothing left to answer.
func (c *Conn) Idle() bool { return c.IsClosed() && len(c.Unanswered()) == 0 }

// Unanswered returns the requests without an answer.
func (c *Conn) Unanswered() []*Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Call(nil), c.sent...)
}

// String names the request.
func (x *Call) String() string {
	return fmt.Sprintf("%s v%d, %+v", kmsg.NameForKey(x.req.Key()), x.req.GetVersion(), x.req)
}

// read gives answers to who waits for them until the connection ends.
func (c *Conn) read() {
	defer close(c.ended)
	defer c.nc.Close()
	for {
		if err := c.answer(); err != nil {
			if !errors.Is(err, errEnd) {
				c.h.Problem("%v", err)
			}
			return
		}
	}
}

// errEnd is what answer fails with when the connection ends.
var errEnd = errors.New("the connection has ended")

// answer reads one answer; each must be that to the oldest request.
func (c *Conn) answer() error {
	var head [8]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return errEnd
	}
	size, id := int(binary.BigEndian.Uint32(head[:])), int32(binary.BigEndian.Uint32(head[4:]))
	if size < 4 || size > 64<<20 {
		return fmt.Errorf("an answer of %d bytes", size)
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(c.nc, body); err != nil {
		return errEnd
	}
	c.mu.Lock()
	if len(c.sent) == 0 || c.sent[0].id != id {
		c.mu.Unlock()
		return fmt.Errorf("an answer with correlation id %d, to no request or out of order: %x", id, body)
	}
	x := c.sent[0]
	c.sent = c.sent[1:]
	c.mu.Unlock()
	resp := x.req.ResponseKind()
	resp.SetVersion(x.req.GetVersion())
	if resp.IsFlexible() {
		if !bytes.HasPrefix(body, []byte{0}) {
			return fmt.Errorf("the answer to %v has tags in its header: %x", x, body)
		}
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		return fmt.Errorf("the answer to %v cannot be read: %w", x, err)
	}
	x.reply = reply(resp)
	close(x.done)
	return nil
}

// Wait implements [actor.Call].
func (x *Call) Wait(atMost time.Duration) (group.Reply, bool) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-x.done:
		return x.reply, true
	case <-x.conn.ended:
	case <-x.conn.quit:
	case <-timer.C:
	}
	select {
	case <-x.done: // it came at the same moment
		return x.reply, true
	default:
		return x.reply, false
	}
}
