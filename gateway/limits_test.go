package gateway

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/protocol"
)

// A hundred clients that announce 90 MiB and send nothing more cost next to nothing.
func TestAnnouncedBytesCostNothing(t *testing.T) {
	s := loopback(t, nil)
	const clients = 100
	before := memoryInUse()
	for range clients {
		c := s.dial(t)
		c.send(heartbeat(1, 0))
		c.expect(1)
		c.send([]byte("\x05\xa0\x00\x00"))
	}
	other := s.dial(t)
	other.send(heartbeat(1, 0))
	other.expect(1)
	if used := s.QueuedBytes(); used != 0 {
		t.Errorf("%d bytes are reserved", used)
	}
	if grown := memoryInUse() - before; grown > clients*32<<10 {
		t.Errorf("%d bytes for %d clients", grown, clients)
	}
}

// Connections whose requests declare arrays that their frames cannot hold are closed
// before memory is spent on them.
func TestDeclaredArraysCostNothing(t *testing.T) {
	s := loopback(t, nil)
	frame := []byte("\x00\x00\x00\x1f\x00\x0b\x00\x00\x00\x00\x00\x01\xff\xff\x00\x01g\x00\x00\x00\x00\x00\x00\x00\x01c\x03\x3b\xfc\x00\x00\x00\x00\x00\x00")
	const clients = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range clients {
		c := s.dial(t)
		c.send(frame)
		s.expectReason(t, ReasonMalformed)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / clients; each > 64<<10 {
		t.Errorf("%d bytes were allocated for each", each)
	}
}

// unfinished sends a request but for its last byte, which it returns.
func (c *client) unfinished(frame []byte) (rest []byte) {
	c.t.Helper()
	c.send(frame[:len(frame)-1])
	return frame[len(frame)-1:]
}

// until waits for a condition that nothing reports.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it does not happen", what)
		}
	}
}

// Unfinished requests that use up the budget end the connection that holds most;
// small requests get through meanwhile, and the others are served in the end.
func TestGreedyConnectionIsClosed(t *testing.T) {
	s := loopback(t, func(cfg *Config) {
		cfg.FrameBytesMax, cfg.QueuedBytesMax = 1<<20, 1<<20
	})
	greedy, modest, late := s.dial(t), s.dial(t), s.dial(t)
	greedy.unfinished(commit(1, 400_000)) // 640 KiB or less, as 256 is not enough
	until(t, "the greedy one holds its share", func() bool { return s.QueuedBytes() > 350_000 })
	rest := modest.unfinished(commit(2, 200_000))
	until(t, "the modest one holds its share", func() bool { return s.QueuedBytes() > 600_000 })

	small := s.dial(t)
	small.send(heartbeat(3, 0))
	small.expect(3)

	go late.send(commit(4, 300_000))
	s.expectReason(t, ReasonMemory)
	greedy.expectClosed()
	modest.send(rest)
	for range 2 {
		s.desk.next(t).Done()
	}
	modest.expect(2)
	late.expect(4)
	until(t, "all is given back", func() bool { return s.QueuedBytes() == 0 })
}

// Finished requests that use up the budget make others wait, and nobody is closed.
func TestReadingWaitsForFinishedRequests(t *testing.T) {
	s := loopback(t, func(cfg *Config) {
		cfg.FrameBytesMax, cfg.QueuedBytesMax = 1<<20, 1<<20
	})
	first, second := s.dial(t), s.dial(t)
	first.send(commit(1, 300_000))
	call := s.desk.next(t)
	go second.send(commit(2, 400_000))
	until(t, "the second stands in line", func() bool {
		s.limits.mu.Lock()
		defer s.limits.mu.Unlock()
		return len(s.limits.line) == 1
	})
	call.Done()
	first.expect(1)
	s.desk.next(t).Done()
	second.expect(2)
	select {
	case reason := <-s.closings.closed:
		t.Errorf("a connection was closed because of %v", reason)
	default:
	}
}

// A request that is held takes nothing from the others meanwhile.
func TestHeldRequestGivesItsMemoryBack(t *testing.T) {
	s := loopback(t, func(cfg *Config) {
		cfg.FrameBytesMax, cfg.QueuedBytesMax = 1<<20, 1<<20
	})
	first, second := s.dial(t), s.dial(t)
	first.send(largeJoinGroup(1, 400_000))
	held := s.desk.next(t)
	second.send(commit(2, 300_000))
	s.desk.next(t).Done()
	second.expect(2)
	held.Done()
	first.expect(1)
}

// One connection whose requests need more than there is together answers them one
// after the other.
func TestOneConnectionDoesNotWaitForItself(t *testing.T) {
	s := loopback(t, func(cfg *Config) {
		cfg.FrameBytesMax, cfg.QueuedBytesMax = 1<<20, 1<<20
	})
	c := s.dial(t)
	go c.send(commit(1, 300_000), commit(2, 300_000), commit(3, 300_000))
	for i := range int32(3) {
		s.desk.next(t).Done()
		c.expect(1 + i)
	}
}

// A request whose decoded form is more than the whole budget can never be served.
func TestRequestLargerThanTheBudget(t *testing.T) {
	s := loopback(t, func(cfg *Config) {
		cfg.FrameBytesMax, cfg.QueuedBytesMax = 1<<20, 1<<20
	})
	c := s.dial(t)
	go c.nc.Write(commit(1, 600_000))
	s.expectReason(t, ReasonMemory)
	c.expectClosed()
}

// Many connections with large requests at the same time, far more than the budget:
// whoever is not closed is served, and the books are even.
func TestCrowdWithLargeRequests(t *testing.T) {
	s := loopback(t, func(cfg *Config) {
		cfg.FrameBytesMax, cfg.QueuedBytesMax = 1<<20, 2<<20
	})
	go func() {
		for call := range s.desk.arrived {
			go call.Done()
		}
	}()
	const clients = 20
	results := make(chan bool, clients)
	for n := range clients {
		c := s.dial(t)
		go func() {
			frame := commit(int32(n), 600_000)
			for range 10 {
				var length [4]byte
				if _, err := c.nc.Write(frame); err != nil {
					results <- false
					return
				}
				if _, err := c.r.Read(length[:]); err != nil {
					results <- false
					return
				}
				c.r.Discard(c.r.Buffered())
			}
			results <- true
		}()
	}
	served := 0
	for range clients {
		if <-results {
			served++
		}
	}
	t.Logf("%d of %d clients were served", served, clients)
	if served == 0 {
		t.Error("nobody was served")
	}
	until(t, "all is given back", func() bool { return s.QueuedBytes() == 0 })
	s.limits.mu.Lock()
	if s.limits.stuck != 0 || len(s.limits.line) != 0 {
		t.Errorf("at the end: %d stuck, %d in line", s.limits.stuck, len(s.limits.line))
	}
	s.limits.mu.Unlock()
	close(s.desk.arrived)
}

// The line moves in order, and the one that is closed is the one that holds most.
func TestLine(t *testing.T) {
	s, err := New(Config{FrameBytesMax: 1 << 10, QueuedBytesMax: 1 << 10, Entries: newDesk().entries()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var conns []*conn
	for range 4 {
		_, far := net.Pipe()
		c := newConn(s, "", far)
		s.limits.add(c)
		conns = append(conns, c)
	}
	a, b, c, d := &conns[0].account, &conns[1].account, &conns[2].account, &conns[3].account
	must := func(ok bool, what string) {
		t.Helper()
		if !ok {
			t.Fatal(what)
		}
	}
	var _ protocol.Budget = a
	must(a.Reserve(600), "a gets 600 of 1024")
	must(b.Reserve(300), "b gets 300 of 424")
	a.Unfinished(600)
	must(!c.Reserve(200), "c does not get 200 of 124")
	c.enqueue()
	must(c.inLine() && conns[0].killed.Load() == 0, "c waits for b, which is finished")
	must(!d.Reserve(130), "d does not get 130 of 124")
	d.enqueue()
	b.Release(100)
	must(!c.inLine() && d.inLine(), "c is first in line")
	must(c.Reserve(200), "c gets 200 of 224")
	must(d.inLine(), "d waits for 130 of 24")
	b.Release(200)
	must(!d.inLine(), "d goes when there is enough")
	must(d.Reserve(130), "d gets 130 of 224")
	d.Unfinished(130)
	c.Unfinished(200)
	must(!b.Reserve(100), "b does not get 100 of 94")
	b.enqueue()
	must(b.inLine() && CloseReason(conns[0].killed.Load()) == ReasonMemory, "a holds most, unfinished, and is closed")
	must(conns[2].killed.Load() == 0 && conns[3].killed.Load() == 0, "only a is closed")
	a.forget()
	must(!b.inLine(), "and b goes")
	must(s.QueuedBytes() == 330, "330 are reserved")
}
