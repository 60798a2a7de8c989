package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/rollcall-mq/rollcall/protocol"
	"go.uber.org/zap"
)

// What the goroutine of a connection is doing, for whoever wants to wake it.
const (
	stateRunning int32 = iota
	stateParked        // waits for conn.wakes
	stateReading       // waits for the socket, up to its read deadline
)

// conn is one connection. Unless it says otherwise, a field belongs to the
// connection's goroutine.
type conn struct {
	server  *Server
	nc      net.Conn
	source  source
	session api.Session
	cancel  context.CancelFunc // of session.Ctx
	in      protocol.FrameBuffer
	queue   replyQueue
	account account // under limits.mu

	// state and wakes are how wake reaches the goroutine. The goroutine first says
	// what it is about to wait in and then looks whether there is still reason to
	// wait; whoever has a reason first makes it visible and then looks at the state.
	// So one of them sees the other. A wake-up may come late, when nobody waits or
	// when something else is waited for; every wait copes with that.
	state  atomic.Int32
	wakes  chan struct{}
	wakeFn func() // c.wake, made once
	killed atomic.Uint32
	// timer calls tick; armed: it will. A timer that is left alone costs less than one
	// that is set and stopped for every request.
	timer *time.Timer
	armed atomic.Bool

	// holding: the last request of the queue may be held for long.
	holding bool
	// starved: the budget has nothing for the next request's decoded form.
	starved bool
	// ending is why the connection is closed when what is under way is answered.
	ending    CloseReason
	endingErr error

	clientID string // the last that was not too long
	// now was read when the last wait was over.
	now time.Time
	// active is when the client was last heard or answered.
	active time.Time
	// stalling is when the unfinished frame last had made progress, brought what has
	// come of it since; zero if there is none.
	stalling time.Time
	brought  int
	// The deadlines that are set on nc; zero for none.
	readBy, writeBy time.Time
}

func newConn(s *Server, listener string, nc net.Conn) *conn {
	ctx, cancel := context.WithCancel(s.ctx)
	c := &conn{
		server:  s,
		nc:      nc,
		cancel:  cancel,
		wakes:   make(chan struct{}, 1),
		session: api.Session{Ctx: ctx, Principal: "User:ANONYMOUS", Host: javaHost(nc.RemoteAddr()), Listener: listener},
	}
	c.account = account{limits: &s.limits, conn: c}
	c.in = protocol.FrameBuffer{Max: int32(s.cfg.FrameBytesMax), Budget: &c.account}
	c.source = newSource(nc, &c.in)
	c.wakeFn = c.wake
	return c
}

// wake makes the goroutine look again for what it waits. It may be called from any
// goroutine and does not block.
func (c *conn) wake() {
	switch c.state.Load() {
	case stateParked:
		select {
		case c.wakes <- struct{}{}:
		default:
		}
	case stateReading:
		c.nc.SetReadDeadline(longAgo) // fails if it is closed: then there is nobody to wake
	}
}

// kill ends the connection from outside. It does not close the socket itself: that
// would wait for a read that is about to ask limits for memory, and whoever calls
// kill may hold their lock.
func (c *conn) kill(reason CloseReason) {
	if c.killed.CompareAndSwap(0, uint32(reason)) {
		c.cancel()
		c.nc.SetDeadline(longAgo)
		c.wake()
	}
}

// longAgo is a deadline that ends what goes on.
var longAgo = time.Unix(1, 0)

// serve runs the connection until it ends, and closes it.
func (c *conn) serve() {
	c.server.observer.ConnectionOpened(c.session.Listener)
	c.now = time.Now()
	c.active = c.now
	reason, err := c.run()
	if killed := CloseReason(c.killed.Load()); killed != 0 {
		reason, err = killed, nil
	}
	c.close(reason, err)
}

func (c *conn) run() (CloseReason, error) {
	for {
		c.start()
		var reason CloseReason
		var err error
		switch {
		case c.killed.Load() != 0:
			return 0, nil // serve knows the reason
		case c.queue.ready():
			reason, err = c.flush() // and then perhaps more can be started
		case c.queue.len > 0:
			reason, err = c.awaitHead()
		case c.ending != 0:
			return c.ending, c.endingErr
		case c.server.draining.Load():
			return ReasonShutdown, nil
		case c.starved:
			c.awaitBudget()
		default:
			reason, err = c.read()
		}
		if reason != 0 {
			return reason, err
		}
	}
}

// read waits for bytes from the client, with nothing under way.
func (c *conn) read() (CloseReason, error) {
	reason, by := ReasonIdle, c.active.Add(c.server.cfg.IdleMax)
	if c.in.Buffered() > 0 {
		if c.stalling.IsZero() {
			c.stalling, c.brought = c.now, 0
		}
		reason, by = ReasonSlowRequest, c.stalling.Add(c.server.cfg.RequestStallMax)
	}
	c.readUntil(by)
	c.state.Store(stateReading)
	if c.server.draining.Load() || c.killed.Load() != 0 {
		c.state.Store(stateRunning)
		return 0, nil
	}
	n, err := c.source.read(false)
	c.state.Store(stateRunning)
	c.now = time.Now()
	c.heard(n)
	switch {
	case err == nil:
		return 0, nil
	case errors.Is(err, protocol.ErrBudget):
		c.awaitBudget()
		return 0, nil
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return readFailure(err), err
	case !c.now.Before(by):
		return reason, nil
	}
	// A wake-up, or the deadline of an earlier wait: see readUntil.
	c.readBy = c.now
	return 0, nil
}

// heard notes that n bytes have come.
func (c *conn) heard(n int) {
	if n == 0 {
		return
	}
	c.active = c.now
	if c.brought += n; c.brought >= stallBytes {
		c.stalling, c.brought = time.Time{}, 0
	}
}

// readUntil sees to it that a read ends by the given time, or earlier: as setting a
// deadline costs more than most requests, one that is already set is left alone if
// it ends first. The zero time means never.
func (c *conn) readUntil(by time.Time) {
	passed := !c.readBy.IsZero() && !c.now.Before(c.readBy)
	if !passed && (by.IsZero() || !c.readBy.IsZero() && !by.Before(c.readBy)) {
		return
	}
	c.readBy = by
	c.nc.SetReadDeadline(by) // fails only if it is closed, and so will the read
}

func readFailure(err error) CloseReason {
	if errors.Is(err, io.EOF) {
		return ReasonClientClosed
	}
	return ReasonNetwork
}

// awaitHead waits until the reply at the head is ready. If that takes long it waits
// inside a read, so that it notices when the client goes away; what comes is started
// if it may be, and else kept as far as there is room. A client that has closed only
// its sending side cannot be told from one that is gone.
func (c *conn) awaitHead() (CloseReason, error) {
	blocked := c.holding || c.queue.full()
	watch := c.ending == 0 && !c.server.draining.Load() && !c.starved && !(blocked && c.in.Full())
	if !c.park(watch) || !watch {
		return 0, nil
	}
	c.readUntil(time.Time{})
	c.state.Store(stateReading)
	if c.queue.ready() || c.server.draining.Load() || c.killed.Load() != 0 {
		c.state.Store(stateRunning)
		return 0, nil
	}
	n, err := c.source.read(blocked)
	c.state.Store(stateRunning)
	c.now = time.Now()
	c.heard(n)
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.readBy = c.now
	case errors.Is(err, protocol.ErrBudget):
		c.starved = true
	default:
		return readFailure(err), err
	}
	return 0, nil
}

// park waits for a wake-up. With patience it gives up after headPatience and returns
// true if the reply is not ready even then.
func (c *conn) park(patience bool) (expired bool) {
	began := c.now
	for {
		c.state.Store(stateParked)
		// A connection in line for the budget has an empty queue, and looks for itself.
		if c.queue.ready() || c.killed.Load() != 0 {
			break
		}
		if patience && !c.armed.Load() {
			c.arm(began.Add(headPatience).Sub(c.now))
		}
		<-c.wakes
		c.now = time.Now()
		if !patience || c.queue.ready() || c.server.draining.Load() || c.killed.Load() != 0 {
			break
		}
		if expired = c.now.Sub(began) >= headPatience; expired {
			break
		} // else the timer was set by an earlier wait
	}
	c.state.Store(stateRunning)
	return expired
}

// arm sets the timer.
func (c *conn) arm(d time.Duration) {
	c.armed.Store(true)
	if c.timer == nil {
		c.timer = time.AfterFunc(d, c.tick)
	} else {
		c.timer.Reset(d)
	}
}

// tick wakes a goroutine that is parked. If it is about to park it finds that the
// timer is not armed: it says that it parks before it looks.
func (c *conn) tick() {
	c.armed.Store(false)
	if c.state.Load() == stateParked {
		c.wake()
	}
}

// awaitBudget waits in line until the budget has what was last refused, with nothing
// under way. The client is not to blame for the time this takes.
func (c *conn) awaitBudget() {
	c.starved = false
	if c.queue.len > 0 {
		return // first answer what is under way
	}
	c.account.enqueue()
	for c.account.inLine() && c.killed.Load() == 0 && !c.server.draining.Load() {
		c.parkInLine()
	}
	c.account.leaveLine()
	c.active, c.stalling = c.now, time.Time{}
}

func (c *conn) parkInLine() {
	c.state.Store(stateParked)
	if c.account.inLine() && c.killed.Load() == 0 && !c.server.draining.Load() {
		<-c.wakes
	}
	c.state.Store(stateRunning)
	c.now = time.Now()
}

// close ends the connection and everything that is under way on it.
func (c *conn) close(reason CloseReason, err error) {
	c.cancel()
	if c.timer != nil {
		c.timer.Stop()
	}
	c.nc.Close() // whatever it says, the connection is over
	for c.queue.len > 0 {
		// Its slot and its frame are left to the garbage collector: a part of the
		// answer may still come.
		c.queue.pop().call.Abandon()
	}
	c.in.Drop()
	c.account.forget()
	c.server.closed(c, reason, err)
}

// end makes the connection close when everything before is answered.
func (c *conn) end(reason CloseReason, err error) {
	c.ending, c.endingErr = reason, err
}

func (c *conn) logFields(reason CloseReason, err error) []zap.Field {
	fields := []zap.Field{
		zap.Stringer("reason", reason),
		zap.Stringer("conn", c.nc.RemoteAddr()),
		zap.String("listener", c.session.Listener),
		zap.String("client", c.clientID),
	}
	if err != nil {
		fields = append(fields, zap.Error(err))
	}
	return fields
}
