package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/rollcall-mq/rollcall/compat-tests/sim/actor"
	"github.com/rollcall-mq/rollcall/compat-tests/sim/history"
	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// inFlightMax is how many requests of a connection may be under way.
const inFlightMax = 16

// conn is a connection as the gateway treats it: what arrives is started in order,
// up to a limit, and answered in order; a JoinGroup or SyncGroup that is held stops
// what comes behind it. Either side may be gone without the other one knowing.
type conn struct {
	w      *world
	client *coroutine
	life   int
	// gone: the client has given it up, or it has broken down.
	gone bool
	// arrival and delivery are the latest so far: bytes do not overtake each other.
	arrival, delivery time.Duration
	queue             []*call // arrived, not started
	slots             []*call // started, not written
	holding           bool
	pumping           bool
}

// call is one request.
type call struct {
	conn  *conn // nil for a copy that the network has made
	w     *world
	id    int
	life  int
	group string
	ev    group.Event
	op    *history.Op

	submitted, answered, delivered bool
	reply                          group.Reply
	// waiting is the actor that waits for the answer.
	waiting *coroutine
}

// newCall makes a request known.
func (w *world) newCall(c *conn, id string, ev group.Event, op *history.Op) *call {
	x := &call{conn: c, w: w, id: len(w.calls) + 1, life: w.server.life, group: id, ev: ev, op: op}
	w.calls = append(w.calls, x)
	return x
}

// Send implements [actor.Conn].
func (c *conn) Send(id string, ev group.Event, op *history.Op) actor.Call {
	w := c.w
	x := w.newCall(c, id, ev, op)
	w.logf("send %d: %s", x.id, describe(id, ev))
	if c.gone {
		return x
	}
	if w.fault("drop") { // The connection breaks, and the client does not know.
		w.logf("broken with %d", x.id)
		c.gone = true
		return x
	}
	at := w.now + c.latency()
	if w.fault("reorder") { // It comes by another way, later than what follows it.
		at += w.some(8000)
	} else {
		c.arrival = max(c.arrival, at)
		at = c.arrival
	}
	w.at(at, func() { c.arrive(x) })
	if (op == nil || op.Kind != history.Forget) && w.fault("duplicate") {
		y := w.newCall(nil, id, clone(ev), nil)
		if op != nil {
			y.op = w.h.Again(op)
		}
		w.logf("copy %d of %d", y.id, x.id)
		w.at(at+w.some(5000), func() { w.server.submit(y) })
	}
	return x
}

// clone copies an event. What it points to is never changed.
func clone(ev group.Event) group.Event {
	v := reflect.New(reflect.TypeOf(ev).Elem())
	v.Elem().Set(reflect.ValueOf(ev).Elem())
	return v.Interface().(group.Event)
}

// latency is how long bytes are under way.
func (c *conn) latency() time.Duration {
	if c.w.fault("delay") {
		return c.w.some(9000)
	}
	return c.w.some(2)
}

// Close implements [actor.Conn]. The other side notices some time later.
func (c *conn) Close() { c.gone = true }

// arrive has a request at the gateway.
func (c *conn) arrive(x *call) {
	if c.life != c.w.server.life {
		return
	}
	c.queue = append(c.queue, x)
	c.pump()
}

// pump starts what may be started.
func (c *conn) pump() {
	for len(c.queue) > 0 && !c.holding && len(c.slots) < inFlightMax && c.life == c.w.server.life {
		x := c.queue[0]
		c.queue = c.queue[1:]
		c.slots = append(c.slots, x)
		switch x.ev.(type) {
		case *group.Join, *group.Sync:
			c.holding = true
		}
		c.w.server.submit(x)
	}
}

// Reply implements [shard.Sink].
func (x *call) Reply(r group.Reply) {
	body, err := json.Marshal(r.Body)
	if err != nil {
		body = fmt.Append(nil, err)
	}
	x.w.logf("reply %d: %d %s", x.id, r.Code, body)
	if x.answered {
		x.w.h.Problem("request %d (%s) was answered twice", x.id, describe(x.group, x.ev))
		return
	}
	x.answered, x.reply = true, r
	actor.Settle(x.w.h, x.op, r) // whether or not the client ever learns of it
	x.leave()
	if x.conn != nil {
		x.conn.answered(x)
	}
}

// leave notes that nothing more will be done about the request.
func (x *call) leave() {
	switch {
	case x.op == nil || !x.op.Open():
	case x.submitted:
		x.w.h.Leave(x.op)
	default:
		x.w.h.Refuse(x.op)
	}
}

// answered lets go what is ready at the head of the connection. The coordinator must
// not be called back, so what comes next is started a moment later.
func (c *conn) answered(x *call) {
	switch x.ev.(type) {
	case *group.Join, *group.Sync:
		c.holding = false
	}
	for len(c.slots) > 0 && c.slots[0].answered {
		ready := c.slots[0]
		c.slots = c.slots[1:]
		c.delivery = max(c.delivery, c.w.now+c.latency())
		c.w.at(c.delivery, func() { c.deliver(ready) })
	}
	if !c.pumping {
		c.pumping = true
		c.w.after(0, func() { c.pumping = false; c.pump() })
	}
}

// deliver has an answer at the client. What was written before a crash may still come.
func (c *conn) deliver(x *call) {
	if c.gone || c.life != c.w.server.life && c.w.rnd.IntN(2) == 0 {
		return
	}
	x.delivered = true
	if x.waiting != nil {
		a := x.waiting
		x.waiting = nil
		a.resume()
	}
}

// Wait implements [actor.Call].
func (x *call) Wait(atMost time.Duration) (group.Reply, bool) {
	a := x.conn.client
	if !x.delivered && !x.w.over {
		x.waiting = a
		a.wakeAfter(atMost)
		if !a.park() {
			x.w.over = true
		}
		x.waiting = nil
	}
	return x.reply, x.delivered
}
