// Package actor has the clients of the simulations: consumers that join, own
// partitions, commit, pause, leave and come back, writers without a group
// membership, and an administrator. They are written as plain sequential code that
// sends requests and waits; the [World] decides what waiting is: a step of an exact
// simulation, virtual time, or real time. Everything that they send and are told
// goes into a [history.History].
package actor

import (
	"math/rand/v2"
	"time"

	"github.com/rollcall-mq/rollcall/compat-tests/sim/history"
	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// World is where one actor lives.
type World interface {
	// Rand is the actor's own source of chance.
	Rand() *rand.Rand
	// Sleep waits.
	Sleep(d time.Duration)
	// Pace is how many times slower than usual the actor lives.
	Pace() int
	// Over tells the actor to end. From then on nothing else waits long.
	Over() bool
	// Dial connects to the coordinator; nil if nobody listens.
	Dial() Conn
	// History is where the actor writes down what happens.
	History() *history.History
}

// Conn is a connection. Requests are started and answered in order.
type Conn interface {
	// Send sends a request about a group. op is what the history has of it, nil for
	// what is not about offsets. The event is not used again.
	Send(group string, ev group.Event, op *history.Op) Call
	// Close ends the connection; what is under way may still be carried out.
	Close()
}

// Call is a request on its way.
type Call interface {
	// Wait waits for the answer; ok is false if it does not come.
	Wait(atMost time.Duration) (r group.Reply, ok bool)
}

// Slots are the partitions that groups are about.
var Slots = []history.Slot{
	{Topic: "t", Partition: 0}, {Topic: "t", Partition: 1}, {Topic: "t", Partition: 2}, {Topic: "t", Partition: 3},
	{Topic: "u", Partition: 0}, {Topic: "u", Partition: 1},
}

// marker is the slot that keeps a group in existence.
var marker = history.Slot{Topic: "u", Partition: 2}

// client is what all actors have.
type client struct {
	World
	name, group string
	conn        Conn
}

// requestTimeout is how long an actor waits for an answer that nothing holds up.
const requestTimeout = 7 * time.Second

// send sends a request; nil if there is no connection and none to be had.
func (c *client) send(ev group.Event, op *history.Op) Call {
	if c.conn == nil {
		if c.conn = c.Dial(); c.conn == nil {
			c.nap(50, 1000)
			return nil
		}
	}
	return c.conn.Send(c.group, ev, op)
}

// wait waits for an answer; without one the connection is given up.
func (c *client) wait(call Call, atMost time.Duration) (r group.Reply, ok bool) {
	if call != nil {
		if r, ok = call.Wait(atMost); ok {
			return r, true
		}
	}
	c.hangUp()
	return r, false
}

// do sends a request and waits for its answer.
func (c *client) do(ev group.Event, op *history.Op, atMost time.Duration) (group.Reply, bool) {
	return c.wait(c.send(ev, op), atMost)
}

// hangUp gives the connection up.
func (c *client) hangUp() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// nap sleeps for some milliseconds.
func (c *client) nap(least, most int) {
	c.Sleep(time.Duration((least+c.Rand().IntN(most-least+1))*c.Pace()) * time.Millisecond)
}

// chance is true n times in a hundred.
func (c *client) chance(n int) bool { return c.Rand().IntN(100) < n }

// some returns a part of the slots, at least one if there are any.
func (c *client) some(slots []history.Slot) (part []history.Slot) {
	for i, s := range slots {
		if c.chance(40) || i == len(slots)-1 && len(part) == 0 {
			part = append(part, s)
		}
	}
	return part
}

// commit is a commit of the slots, as the member m if there is one.
func (c *client) commit(slots []history.Slot, m *member) (*group.Commit, *history.Op) {
	o := history.Op{Client: c.name, Group: c.group, Kind: history.Commit, Generation: -1}
	ev := &group.Commit{Generation: -1, Retention: -1}
	if m != nil {
		ev.MemberID, ev.InstanceID, ev.Generation = m.id, m.instance, m.generation
		o.Generation = m.generation
	}
	for _, s := range slots {
		o.Offsets = append(o.Offsets, history.Offset{Slot: s})
	}
	op := c.History().Begin(o)
	for _, x := range op.Offsets {
		t := len(ev.Topics) - 1
		if t < 0 || ev.Topics[t].Name != x.Topic {
			t++
			ev.Topics = append(ev.Topics, group.CommitTopic{Name: x.Topic})
		}
		ev.Topics[t].Partitions = append(ev.Topics[t].Partitions, group.CommitPartition{Partition: x.Partition, Offset: x.Offset, LeaderEpoch: -1})
	}
	return ev, op
}

// Settle writes the answer to an operation down, if nobody has yet. Without one, or
// after an error that leaves the outcome open, the operation stays without an end.
func Settle(h *history.History, op *history.Op, r group.Reply) {
	if op == nil || !op.Open() {
		return
	}
	switch r.Code {
	case group.None:
	case group.CoordinatorNotAvailable, group.NotCoordinator:
		return
	default:
		h.Refuse(op)
		return
	}
	switch body := r.Body.(type) {
	case *group.FetchReply:
		if read, ok := fetched(op, body); ok {
			h.Done(op, read)
		}
	case *group.CommitReply:
		settleParts(h, op, body.Codes)
	case *group.DeleteOffsetsReply:
		settleParts(h, op, body.Codes)
	default:
		h.Done(op, op.Offsets)
	}
}

// settleParts ends an operation that was done for some of its partitions, in the
// order in which it has them.
func settleParts(h *history.History, op *history.Op, codes [][]group.Code) {
	var done []history.Offset
	i := 0
	for _, topic := range codes {
		for _, code := range topic {
			if code == group.None {
				done = append(done, op.Offsets[i])
			}
			i++
		}
	}
	if len(done) == 0 {
		h.Refuse(op)
		return
	}
	h.Done(op, done)
}

// fetched returns what a fetch shows of the slots of its operation; what it leaves
// out has no offset.
func fetched(op *history.Op, body *group.FetchReply) (read []history.Offset, ok bool) {
	got := map[history.Slot]int64{}
	for _, t := range body.Topics {
		for _, p := range t.Partitions {
			if p.Code != group.None {
				return nil, false
			}
			got[history.Slot{Topic: t.Name, Partition: p.Partition}] = p.Offset
		}
	}
	for _, x := range op.Offsets {
		if offset, ok := got[x.Slot]; ok {
			read = append(read, history.Offset{Slot: x.Slot, Offset: offset})
		} else {
			read = append(read, history.Offset{Slot: x.Slot, Offset: history.None})
		}
	}
	return read, true
}

// fetch asks for the offsets of some slots.
func (c *client) fetch(slots []history.Slot) bool {
	o := history.Op{Client: c.name, Group: c.group, Kind: history.Fetch, Generation: -1}
	ev := &group.Fetch{All: c.chance(20), RequireStable: c.chance(20)}
	for _, s := range slots {
		o.Offsets = append(o.Offsets, history.Offset{Slot: s})
		t := len(ev.Topics) - 1
		if t < 0 || ev.Topics[t].Name != s.Topic {
			t++
			ev.Topics = append(ev.Topics, group.FetchTopic{Name: s.Topic})
		}
		ev.Topics[t].Partitions = append(ev.Topics[t].Partitions, s.Partition)
	}
	if ev.All {
		ev.Topics = nil
	}
	op := c.History().Begin(o)
	r, ok := c.do(ev, op, requestTimeout)
	if ok {
		Settle(c.History(), op, r)
	}
	return ok && r.Code == group.None
}

// all are the slots that a group may have offsets of.
func all() []history.Slot { return append(Slots[:len(Slots):len(Slots)], marker) }

// Audit asks for all offsets of a group until it is told.
func Audit(w World, name, groupID string) {
	c := &client{World: w, name: name, group: groupID}
	for !w.Over() && !c.fetch(all()) {
		c.nap(100, 500)
	}
	c.hangUp()
}

// Writer commits without being a member, several requests at a time, and looks.
func Writer(w World, name, groupID string) {
	c := &client{World: w, name: name, group: groupID}
	for !w.Over() {
		switch {
		case c.chance(30):
			c.fetch(all())
		default:
			c.burst(nil, Slots)
		}
		if c.chance(3) {
			c.hangUp()
		}
		c.nap(1, 800)
	}
	c.hangUp()
}

// Visitor commits a few times for a group that nobody else knows, and never comes back.
func Visitor(w World, name, groupID string) {
	c := &client{World: w, name: name, group: groupID}
	for range 3 {
		c.burst(nil, Slots)
		c.nap(100, 1000)
	}
	c.hangUp()
}

// burst sends some commits before it waits for their answers.
func (c *client) burst(m *member, slots []history.Slot) (last group.Code, ok bool) {
	type pending struct {
		call Call
		op   *history.Op
	}
	var sent []pending
	for range 1 + max(0, c.Rand().IntN(6)-2) {
		ev, op := c.commit(c.some(slots), m)
		sent = append(sent, pending{c.send(ev, op), op})
	}
	for _, p := range sent {
		r, came := c.wait(p.call, requestTimeout)
		if !came {
			return 0, false
		}
		Settle(c.History(), p.op, r)
		last = outcome(r)
	}
	return last, true
}

// outcome is the code of a reply, or of its first partition.
func outcome(r group.Reply) group.Code {
	if body, ok := r.Body.(*group.CommitReply); ok && len(body.Codes) > 0 && len(body.Codes[0]) > 0 {
		return body.Codes[0][0]
	}
	return r.Code
}

// Admin keeps a group in existence, looks at it, and deletes offsets and the group:
// so many of a hundred times.
func Admin(w World, name, groupID string, deletes int) {
	c := &client{World: w, name: name, group: groupID}
	c.exist(w.History().Reset(groupID))
	for !w.Over() {
		c.nap(500, 12_000/(1+deletes/10))
		switch p := c.Rand().IntN(100); {
		case p < deletes:
			c.deleteGroup()
		case p < 45:
			c.deleteOffsets()
		case p < 55:
			c.do(new(group.Describe), nil, requestTimeout)
		default:
			c.fetch(all())
		}
	}
	c.hangUp()
}

// exist commits until the group has an offset.
func (c *client) exist(since *history.Reset) {
	for !c.Over() {
		ev, op := c.commit([]history.Slot{marker}, nil)
		if r, ok := c.do(ev, op, requestTimeout); ok {
			Settle(c.History(), op, r)
			if outcome(r) == group.None {
				c.History().Settled(since)
				return
			}
		}
		c.nap(20, 500)
	}
}

// deleteOffsets removes the offset of a slot.
func (c *client) deleteOffsets() {
	s := Slots[c.Rand().IntN(len(Slots))]
	op := c.History().Begin(history.Op{
		Client: c.name, Group: c.group, Kind: history.Delete, Offsets: []history.Offset{{Slot: s, Offset: history.None}}, Generation: -1,
	})
	ev := &group.DeleteOffsets{Topics: []group.DeleteOffsetsTopic{{Name: s.Topic, Partitions: []int32{s.Partition}}}}
	if r, ok := c.do(ev, op, requestTimeout); ok {
		Settle(c.History(), op, r)
	}
}

// deleteGroup asks for the group to be deleted, which members prevent. If it may
// happen at any later time, generations cannot be compared any more.
func (c *client) deleteGroup() {
	reset := c.History().Reset(c.group)
	op := c.History().Begin(history.Op{Client: c.name, Group: c.group, Kind: history.Forget, Generation: -1})
	r, ok := c.do(new(group.DeleteGroup), op, requestTimeout)
	if ok {
		Settle(c.History(), op, r)
		c.fetch(all())
	}
	if !ok || op.Open() || op.Maybe {
		return
	}
	c.exist(reset)
}
