package gateway

import (
	"bufio"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/rollcall-mq/rollcall/gateway/memnet"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// dialPipe connects to a server in memory.
func (s *site) dialPipe(t *testing.T) *client {
	near, err := s.ln.(*memnet.Listener).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	return &client{t, near, bufio.NewReader(near)}
}

// bubble runs a test with a server in memory in virtual time.
func bubble(t *testing.T, change func(*Config), f func(t *testing.T, s *site)) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, memnet.Listen(), change)
		f(t, s)
		s.stop(t)
	})
}

// elapses checks how much time f takes.
func elapses(t *testing.T, least, most time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took < least || took > most {
		t.Errorf("it took %v, want %v to %v", took, least, most)
	}
}

func (s *site) expectReason(t *testing.T, want CloseReason) {
	t.Helper()
	if got := s.closings.next(t); got != want {
		t.Errorf("closed because of %v, want %v", got, want)
	}
}

func TestIdleConnectionIsClosed(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *site) {
		s.dialPipe(t)
		elapses(t, 10*time.Minute, 10*time.Minute, func() { s.expectReason(t, ReasonIdle) })
	})
}

// The time runs from the last request, although not every request sets a deadline.
// In a bubble.
func TestIdleTimeBeginsAnew(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *site) {
		c := s.dialPipe(t)
		for i := range int32(7) {
			time.Sleep(7 * time.Minute)
			c.send(heartbeat(i, 0))
			c.expect(i)
		}
		elapses(t, 10*time.Minute, 10*time.Minute, func() { s.expectReason(t, ReasonIdle) })
	})
}

// TestConnectionIsNotIdleWhileARequestIsHeld runs in a bubble.
func TestConnectionIsNotIdleWhileARequestIsHeld(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *site) {
		c := s.dialPipe(t)
		c.send(joinGroup(1))
		time.Sleep(50 * time.Minute)
		s.desk.next(t).Done()
		c.expect(1)
		elapses(t, 10*time.Minute, 10*time.Minute, func() { s.expectReason(t, ReasonIdle) })
	})
}

// TestStalledRequest runs in a bubble.
func TestStalledRequest(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *site) {
		c := s.dialPipe(t)
		frame := commit(1, 5000)
		c.send(frame[:3])
		elapses(t, 30*time.Second, 30*time.Second, func() { s.expectReason(t, ReasonSlowRequest) })

		// Drops are not enough.
		slow := s.dialPipe(t)
		go func() {
			for _, b := range frame {
				if _, err := slow.nc.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		elapses(t, 30*time.Second, 31*time.Second, func() { s.expectReason(t, ReasonSlowRequest) })

		// A kilobyte in 29 seconds is.
		c = s.dialPipe(t)
		for len(frame) > 0 {
			n := min(len(frame), stallBytes)
			c.send(frame[:n])
			frame = frame[n:]
			time.Sleep(29 * time.Second)
		}
		s.desk.next(t).Done()
		c.expect(1)
		c.nc.Close()
		s.expectReason(t, ReasonClientClosed)
	})
}

func TestSlowReader(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *site) {
		c := s.dialPipe(t)
		c.send(heartbeat(1, 0))
		elapses(t, 30*time.Second, 60*time.Second, func() { s.expectReason(t, ReasonSlowReader) })
	})
}

// A handler that waits (for an inbox that is full) stops the reading, and what it
// does later is as good as ever. In a bubble.
func TestBlockedHandlerStopsReading(t *testing.T) {
	release := make(chan struct{})
	bubble(t, func(cfg *Config) {
		release = make(chan struct{}) // of the bubble
		handle := cfg.Entries[0].Handle
		cfg.Entries[0].Handle = func(c *api.Call) { <-release; handle(c) }
	}, func(t *testing.T, s *site) {
		c := s.dialPipe(t)
		written := make(chan struct{})
		go func() {
			c.send(heartbeat(1, 0))
			c.send(heartbeat(2, 0))
			close(written)
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		select {
		case <-written:
			t.Error("a request was read while the handler was blocked")
		default:
		}
		close(release)
		c.expect(1, 2)
		<-written
	})
}

// A held reply that is ready leaves at once, whatever the connection waits in, and at
// the very moment at which it changes from one to the other.
func TestHeldReplyLeavesAtOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *site) {
		c := s.dialPipe(t)
		for i, held := range []time.Duration{0, headPatience / 2, headPatience, headPatience + 1, 3 * headPatience, time.Minute, time.Hour} {
			c.send(joinGroup(int32(i)))
			call := s.desk.next(t)
			time.AfterFunc(held, call.Done)
			elapses(t, held, held, func() { c.expect(int32(i)) })
		}
	})
}

func TestMaxConnections(t *testing.T) {
	bubble(t, func(cfg *Config) { cfg.ConnectionsMax = 2 }, func(t *testing.T, s *site) {
		first, second := s.dialPipe(t), s.dialPipe(t)
		third := make(chan *client)
		go func() { third <- s.dialPipe(t) }()
		synctest.Wait()
		select {
		case <-third:
			t.Fatal("a third connection was accepted")
		default:
		}
		if n := s.logs.FilterMessageSnippet("max.connections").Len(); n != 1 {
			t.Errorf("%d lines about it", n)
		}
		second.send(heartbeat(1, 0))
		second.expect(1)
		first.nc.Close()
		c := <-third
		c.send(heartbeat(2, 0))
		c.expect(2)
	})
}

// flaky fails to accept now and then.
type flaky struct {
	*memnet.Listener
	failures int
}

func (f *flaky) Accept() (net.Conn, error) {
	if f.failures--; f.failures >= 0 {
		return nil, &net.OpError{Op: "accept", Err: net.UnknownNetworkError("no file descriptors")}
	}
	return f.Listener.Accept()
}

func TestAcceptBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := memnet.Listen()
		s := newSite(t, &flaky{p, 10}, nil)
		elapses(t, 2*time.Second, 5*time.Second, func() { // 5+10+…+640 ms, then seconds
			near, err := p.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			near.Close()
		})
		if n := s.logs.FilterMessage("accept failed").Len(); n != 10 {
			t.Errorf("%d lines about it", n)
		}
		s.stop(t)
	})
}

// TestWarningsAreThrottled runs in a bubble.
func TestWarningsAreThrottled(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *site) {
		hostile := func() {
			c := s.dialPipe(t)
			c.send([]byte("\xff\xff\xff\xff"))
			s.expectReason(t, ReasonFrameLength)
		}
		for range warningsMax + 7 {
			hostile()
		}
		if n := len(s.logs.TakeAll()); n != warningsMax {
			t.Errorf("%d lines, want %d", n, warningsMax)
		}
		time.Sleep(warningPeriod)
		hostile()
		if lines := s.logs.TakeAll(); len(lines) != 1 || lines[0].ContextMap()["dropped"] != int64(7) {
			t.Errorf("logged %v, want one line with dropped=7", lines)
		}
	})
}

// dawdle takes a moment of real time, up to some microseconds.
func dawdle() {
	var n atomic.Int32
	for range rand.IntN(1000) {
		n.Add(1)
	}
}

// No wake-up is ever lost: in virtual time, one that is costs a visible moment, as
// nothing moves until the next deadline. Each of these meets the connection at another
// step on its way into a wait. All run in bubbles.
func TestNoWakeUpIsLost(t *testing.T) {
	const times = 3000
	t.Run("into the channel", func(t *testing.T) {
		bubble(t, func(cfg *Config) {
			cfg.Entries[0].Handle = func(c *api.Call) {
				c.Await(1, func() kmsg.Response { return kmsg.NewPtrHeartbeatResponse() })
				go func() { dawdle(); c.Done() }()
			}
		}, func(t *testing.T, s *site) {
			c := s.dialPipe(t)
			elapses(t, 0, 0, func() {
				for i := range int32(10 * times) {
					c.send(heartbeat(i, 0))
					c.expect(i)
				}
			})
		})
	})
	t.Run("from the channel into the read", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, s *site) {
			c := s.dialPipe(t)
			for i := range int32(times) {
				c.send(joinGroup(i))
				call := s.desk.next(t)
				time.AfterFunc(headPatience, call.Done)
				elapses(t, headPatience, headPatience, func() { c.expect(i) })
			}
		})
	})
	t.Run("in the read, again and again", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, s *site) {
			c := s.dialPipe(t)
			for i := int32(0); i < times; i += 2 {
				c.send(joinGroup(i))
				call := s.desk.next(t)
				time.Sleep(2 * headPatience)
				go call.Done() // while what the client sends interrupts the read as well
				go c.send(heartbeat(i+1, 0))
				elapses(t, 0, 0, func() { c.expect(i, i+1) })
			}
		})
	})
	t.Run("shutdown", func(t *testing.T) {
		for range times {
			bubble(t, nil, func(t *testing.T, s *site) {
				c := s.dialPipe(t)
				c.send(heartbeat(1, 0))
				c.expect(1)
				dawdle()
				elapses(t, 0, 0, func() { s.stop(t) })
				s.served <- ErrServerClosed // for bubble's own stop
			})
		}
	})
}

// TestHalfOpenConnections: clients whose machines are gone say nothing, not even that
// they have left. What they hold is given back in time, whether they were silent, in
// the middle of a request, waiting for an answer, or not reading it, and nobody else
// notices. In a bubble.
func TestHalfOpenConnections(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *site) {
		const each = 50
		for range each {
			s.dialPipe(t)
			s.dialPipe(t).send(commit(1, 100_000)[:50_000])
			s.dialPipe(t).send(joinGroup(1))
			s.dialPipe(t).send(heartbeat(1, 0))
		}
		alive := s.dialPipe(t)
		ask := func() {
			elapses(t, 0, 0, func() {
				alive.send(heartbeat(1, 0))
				alive.expect(1)
			})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n, bytes := s.Connections(), s.QueuedBytes(); n != 4*each+1 || bytes < each*30_000 {
			t.Errorf("%d connections hold %d bytes", n, bytes)
		}
		ask()
		time.Sleep(2 * time.Minute)
		for range each { // the group's timeout has come
			s.desk.next(t).Done()
		}
		ask()
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		ask()
		if n, bytes := s.Connections(), s.QueuedBytes(); n != 1 || bytes != 0 {
			t.Errorf("%d connections are left, which hold %d bytes", n, bytes)
		}
		reasons := map[CloseReason]int{}
		for range 4 * each {
			reasons[s.closings.next(t)]++
		}
		if reasons[ReasonIdle] != each || reasons[ReasonSlowRequest] != each || reasons[ReasonSlowReader] != 2*each {
			t.Errorf("closed because of %v", reasons)
		}
	})
}
