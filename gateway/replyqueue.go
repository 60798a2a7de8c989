package gateway

import (
	"sync"
	"time"

	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/rollcall-mq/rollcall/protocol"
)

// slot is the place of one request in the order of replies.
type slot struct {
	call          api.Call
	correlationID int32
	frame         protocol.Frame
	// reserved is what was asked of the budget for its decoded form.
	reserved int
	// in is the size of the request with its length.
	in int
	// bytes is what it counts for within inFlightBytesMax.
	bytes   int
	started time.Time
	next    *slot
}

// slots are used again by whichever connection needs one, except those whose client
// went away: something may still be on its way to them.
var slots = sync.Pool{New: func() any { return new(slot) }}

func newSlot() *slot { return slots.Get().(*slot) }

// free gives a slot back whose response was taken.
func (s *slot) free() {
	s.call.Reset(nil, 0, 0, "", nil, nil)
	s.frame, s.next = protocol.Frame{}, nil
	s.reserved, s.in, s.bytes = 0, 0, 0
	slots.Put(s)
}

// replyQueue is the requests of a connection that are under way, in the order in
// which they came, which is that of their replies.
type replyQueue struct {
	head, tail *slot
	len        int
	bytes      int
}

func (q *replyQueue) push(s *slot) {
	if q.tail == nil {
		q.head = s
	} else {
		q.tail.next = s
	}
	q.tail = s
	q.len++
	q.bytes += s.bytes
}

// pop takes the head out.
func (q *replyQueue) pop() *slot {
	s := q.head
	q.head = s.next
	if q.head == nil {
		q.tail = nil
	}
	q.len--
	q.bytes -= s.bytes
	return s
}

// full tells whether no further request is to be started.
func (q *replyQueue) full() bool { return q.len >= inFlightMax || q.bytes >= inFlightBytesMax }

// ready tells whether the reply at the head can be written.
func (q *replyQueue) ready() bool { return q.head != nil && q.head.call.Ready() }
