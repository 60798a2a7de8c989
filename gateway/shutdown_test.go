package gateway

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/rollcall-mq/rollcall/gateway/memnet"
	"go.uber.org/goleak"
)

// Fifty held requests are answered by whoever holds them, idle connections are closed
// at once, and nothing is left.
func TestShutdownWithHeldRequests(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	const clients = 50
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var held []*api.Call
	s := newSite(t, ln, func(cfg *Config) {
		cfg.Release = func(context.Context) {
			mu.Lock()
			defer mu.Unlock()
			for _, call := range held {
				call.Done()
			}
		}
	})
	var joining, idle []*client
	for range clients {
		c := s.dial(t)
		c.send(joinGroup(1), heartbeat(2, 0))
		call := s.desk.next(t)
		mu.Lock()
		held = append(held, call)
		mu.Unlock()
		joining, idle = append(joining, c), append(idle, s.dial(t))
	}
	idle[0].send(heartbeat(1, 0)[:7]) // not a request yet
	start := time.Now()
	s.stop(t)
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("shutdown took %v", took)
	}
	for i := range clients {
		joining[i].expect(1)
		joining[i].expectClosed() // what came after it was never started
		idle[i].expectClosed()
		joining[i].nc.Close()
		idle[i].nc.Close()
	}
	if s.Connections() != 0 {
		t.Errorf("%d connections are left", s.Connections())
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("the listener is still open")
	}
}

// What nobody answers is cut off when the time is over.
func TestShutdownCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, memnet.Listen(), nil)
		held, unread := s.dialPipe(t), s.dialPipe(t)
		held.send(joinGroup(1))
		call := s.desk.next(t)
		unread.send(heartbeat(1, 0))
		s.dialPipe(t)
		synctest.Wait() // until all three are accepted
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		elapses(t, 5*time.Second, 5*time.Second, func() {
			if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "cut off 2 connections with requests under way: context deadline exceeded" {
				t.Errorf("Shutdown returned %v", err)
			}
		})
		if err := <-s.served; !errors.Is(err, ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
		if gone := <-s.desk.gone; gone != call {
			t.Error("another call was abandoned")
		}
		for range 3 {
			s.expectReason(t, ReasonShutdown)
		}
	})
}

// When its context ends, Serve stops accepting, and the connections go on.
func TestServeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, memnet.Listen(), nil)
		other := memnet.Listen()
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error)
		go func() { served <- s.Serve(ctx, "OTHER", other) }()
		near, err := other.Dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		synctest.Wait()
		cancel()
		if err := <-served; !errors.Is(err, ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
		if s.Connections() != 1 {
			t.Error("its connection is gone")
		}
		s.stop(t)
	})
}

// A listener that fails for good ends Serve with its error.
func TestServeEndsWithItsListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, memnet.Listen(), nil)
		s.ln.Close()
		if err := <-s.served; errors.Is(err, ErrServerClosed) || !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve returned %v", err)
		}
		s.served <- ErrServerClosed
		s.stop(t)
	})
}
