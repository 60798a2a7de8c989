package gateway

import (
	"testing"
)

func TestRequestsAreAnsweredInOrder(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	c.send(heartbeat(1, 0), commit(2, 10), heartbeat(3, 0), commit(4, 10))
	first, second := s.desk.next(t), s.desk.next(t)
	c.expect(1)
	second.Done()
	c.expectSilence()
	first.Done()
	c.expect(2, 3, 4)
}

func TestHeldRequest(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	c.send(joinGroup(1), commit(2, 10))
	join := s.desk.next(t)
	c.expectSilence()
	c.send(heartbeat(3, 0))
	join.Done()
	c.expect(1)
	s.desk.next(t).Done()
	c.expect(2, 3)
	c.send(joinGroup(4))
	join = s.desk.next(t)
	c.expectSilence()
	c.nc.Close()
	if gone := <-s.desk.gone; gone != join {
		t.Error("another call was abandoned")
	}
	if reason := s.closings.next(t); reason != ReasonClientClosed {
		t.Errorf("closed because of %v", reason)
	}
}
