package gateway

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/rollcall-mq/rollcall/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// start starts the requests that have come in whole, in order, as far as they may be
// under way together. What cannot be read ends the connection, as in Kafka, after
// the replies to what came before it.
func (c *conn) start() {
	for !c.holding && c.ending == 0 && !c.starved && !c.queue.full() && !c.server.draining.Load() {
		frame, whole, err := c.in.Peek()
		if err != nil {
			c.end(frameReason(err), err)
			return
		}
		if !whole {
			return
		}
		c.stalling, c.brought = time.Time{}, 0
		if err := c.startOne(frame); err != nil {
			c.end(requestReason(err), err)
			return
		}
	}
}

// startOne hands a request to its handler. If the budget has nothing for it, it
// stays in the buffer.
func (c *conn) startOne(frame []byte) error {
	s := c.server
	h, body, err := s.table.ReadHeader(frame)
	if err != nil {
		return err
	}
	if h.TooNew {
		slot := c.take(&h, nil, 0)
		slot.call.Version = 0
		slot.call.Respond(s.table.ApiVersionsTooNew())
		return nil
	}
	memory, err := s.table.Check(&h, body)
	if err != nil {
		return err
	}
	reserve := max(0, memory-protocol.FreeFrameBytes)
	if reserve > 0 && !c.account.Reserve(reserve) {
		c.starved = true
		return nil
	}
	msg, err := s.table.Decode(&h, body)
	if err != nil {
		c.account.Release(reserve)
		return err
	}
	slot := c.take(&h, msg, memory)
	slot.reserved = reserve
	entry := s.entries[h.Key]
	entry.Handle(&slot.call)
	if entry.Holds && !slot.call.Ready() {
		c.holding = true
		c.giveBack(slot) // it may be held for minutes
	}
	return nil
}

// giveBack gives back what a request took: its frame, its decoded form and their
// share of the budget. The handler must not need them any more.
func (c *conn) giveBack(slot *slot) {
	if slot.frame.Bytes != nil {
		c.in.Release(slot.frame)
		slot.frame, slot.call.Msg = protocol.Frame{}, nil
	}
	if slot.reserved > 0 {
		c.account.Release(slot.reserved)
		slot.reserved = 0
	}
}

// take takes the frame out of the buffer into a slot at the end of the queue.
func (c *conn) take(h *protocol.Header, msg kmsg.Request, memory int) *slot {
	slot := newSlot()
	slot.call.Reset(&c.session, h.Key, h.Version, c.clientName(h.ClientID), msg, c.wakeFn)
	slot.correlationID = h.CorrelationID
	slot.frame = c.in.Take()
	slot.in = len(slot.frame.Bytes) + 4
	slot.bytes = len(slot.frame.Bytes) + memory
	slot.started = c.now
	c.queue.push(slot)
	return slot
}

// clientName is the client id as a string. Most connections have one for life; it is
// kept for the next request unless it is so long that silent connections would cost
// much.
func (c *conn) clientName(id []byte) string {
	if c.clientID != string(id) {
		if len(id) > clientIDKept {
			return string(id)
		}
		c.clientID = string(id)
	}
	return c.clientID
}

func frameReason(err error) CloseReason {
	var frame *protocol.FrameError
	if errors.As(err, &frame) {
		switch frame.Problem {
		case protocol.FrameTLS:
			return ReasonTLS
		case protocol.FrameHTTP:
			return ReasonHTTP
		}
	}
	return ReasonFrameLength
}

func requestReason(err error) CloseReason {
	var request *protocol.RequestError
	if errors.As(err, &request) {
		switch request.Problem {
		case protocol.UnknownAPI, protocol.UnsupportedVersion:
			return ReasonUnsupported
		case protocol.Inflated:
			return ReasonInflated
		}
	}
	return ReasonMalformed
}

// writeBuffers are used between two writes of any connection.
var writeBuffers = sync.Pool{New: func() any { return new([]byte) }}

// flush writes the replies that are ready, up to the first that is not, in as few
// writes as is sensible.
func (c *conn) flush() (CloseReason, error) {
	c.now = time.Now()
	buf := writeBuffers.Get().(*[]byte)
	out := (*buf)[:0]
	var reason CloseReason
	var err error
	for c.queue.ready() && reason == 0 {
		slot := c.queue.head
		resp, closing := slot.call.Response()
		if closing != "" {
			// The requests after it are not answered: they are abandoned.
			reason, err = ReasonRefused, errors.New(closing)
			break
		}
		c.queue.pop()
		before := len(out)
		if resp != nil {
			out = c.encode(out, slot, resp)
		}
		sent := slot.call.Sent()
		c.done(slot, resp, len(out)-before)
		if len(out) >= writeBytesMax || sent != nil {
			if r, e := c.write(out); r != 0 {
				reason, err = r, e
			}
			out = out[:0]
			if sent != nil {
				sent()
			}
		}
	}
	if r, e := c.write(out); r != 0 {
		reason, err = r, e
	}
	if cap(out) <= 4*writeBytesMax {
		*buf = out[:0]
		writeBuffers.Put(buf)
	}
	return reason, err
}

// encode appends the frame of a response. It is the one place where a throttle time
// is filled in; there are no quotas, so it is 0.
func (c *conn) encode(out []byte, slot *slot, resp kmsg.Response) []byte {
	const throttleMillis = 0
	if t, ok := resp.(kmsg.SetThrottleResponse); ok {
		t.SetThrottle(throttleMillis)
	}
	resp.SetVersion(slot.call.Version)
	return c.server.table.AppendResponse(out, slot.correlationID, resp)
}

// done gives back what an answered request had.
func (c *conn) done(slot *slot, resp kmsg.Response, out int) {
	c.holding = c.holding && c.queue.len > 0 // a request that is held is the last one
	c.server.observer.RequestDone(RequestInfo{
		Listener: c.session.Listener,
		Key:      slot.call.Key,
		Version:  slot.call.Version,
		Code:     c.server.codeOf(resp),
		In:       slot.in,
		Out:      out,
		Took:     c.now.Sub(slot.started),
	})
	c.giveBack(slot)
	slot.free()
}

// write writes all of it. A client that takes its time is waited for as long as it
// takes another piece within WriteStallMax.
func (c *conn) write(out []byte) (CloseReason, error) {
	for len(out) > 0 {
		piece := out[:min(len(out), writeBytesMax)]
		// Not every write sets a deadline: one that is far enough away will do.
		if stall := c.server.cfg.WriteStallMax; c.writeBy.Sub(c.now) < stall {
			c.writeBy = c.now.Add(2 * stall)
			c.nc.SetWriteDeadline(c.writeBy) // fails only if it is closed, and so will the write
		}
		if killed := CloseReason(c.killed.Load()); killed != 0 {
			return killed, nil // its deadline may just have been replaced
		}
		_, err := c.nc.Write(piece)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return ReasonSlowReader, nil
		}
		if err != nil {
			return ReasonNetwork, err
		}
		if out = out[len(piece):]; len(out) > 0 {
			c.now = time.Now()
		}
	}
	c.active = c.now
	return 0, nil
}
