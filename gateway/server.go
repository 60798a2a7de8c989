package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/rollcall-mq/rollcall/protocol"
	"go.uber.org/zap"
)

// ErrServerClosed is what [Server.Serve] returns after a clean end.
var ErrServerClosed = errors.New("gateway: server closed")

// Server serves the Kafka protocol on any number of listeners.
type Server struct {
	cfg      Config
	table    *protocol.Table
	entries  []api.Entry // by key
	codes    []codeField // by key
	observer Observer
	log      *zap.Logger
	warnings logThrottle

	// ctx ends when connections are cut off.
	ctx    context.Context
	cutOff context.CancelFunc

	limits limits
	// places has one token for each connection that is open.
	places chan struct{}
	// running counts the goroutines of connections.
	running   sync.WaitGroup
	draining  atomic.Bool
	accepting context.Context // ends when Shutdown begins
	stop      context.CancelFunc
}

// New returns a server that is ready to serve. The error tells which limit or API
// cannot be.
func New(cfg Config, log *zap.Logger) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, observer: cfg.Observer, log: log, places: make(chan struct{}, cfg.ConnectionsMax)}
	ranges := make([]protocol.Range, len(cfg.Entries))
	for i, e := range cfg.Entries {
		ranges[i] = protocol.Range{Key: e.Key, Min: e.Min, Max: e.Max}
	}
	var err error
	if s.table, err = protocol.NewTable(ranges); err != nil {
		return nil, fmt.Errorf("table of APIs: %w", err)
	}
	for _, e := range cfg.Entries {
		for int(e.Key) >= len(s.entries) {
			s.entries = append(s.entries, api.Entry{})
			s.codes = append(s.codes, nil)
		}
		s.entries[e.Key] = e
		s.codes[e.Key] = findCode(e.Key)
	}
	s.limits = limits{connections: map[*conn]struct{}{}, max: cfg.QueuedBytesMax}
	s.ctx, s.cutOff = context.WithCancel(context.Background())
	s.accepting, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Serve accepts connections until ctx ends, [Server.Shutdown] is called or the
// listener fails, and closes the listener. name is that of the listener. After a
// clean end the error is [ErrServerClosed]; connections go on until Shutdown.
func (s *Server) Serve(ctx context.Context, name string, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.accepting, cancel)()
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	var backoff time.Duration
	for {
		if !s.takePlace(ctx, name) {
			return ErrServerClosed
		}
		nc, err := ln.Accept()
		if err != nil {
			<-s.places
			if ctx.Err() != nil || s.accepting.Err() != nil { // ctx may end a moment after accepting
				return ErrServerClosed
			}
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("accept on listener %s: %w", name, err)
			}
			// Out of file descriptors, most likely: it may pass.
			backoff = min(max(2*backoff, 5*time.Millisecond), time.Second)
			s.warn("accept failed", zap.String("listener", name), zap.Error(err), zap.Duration("again_in", backoff))
			if !sleep(ctx, backoff) {
				return ErrServerClosed
			}
			continue
		}
		backoff = 0
		s.open(name, nc)
	}
}

// takePlace waits until there may be one more connection; false if ctx ends first.
func (s *Server) takePlace(ctx context.Context, listener string) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case s.places <- struct{}{}:
		return true
	default:
	}
	s.warn("max.connections reached: new connections wait", zap.String("listener", listener), zap.Int("max", s.cfg.ConnectionsMax))
	select {
	case s.places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Server) open(listener string, nc net.Conn) {
	c := newConn(s, listener, nc)
	if !s.limits.add(c) {
		c.cancel()
		nc.Close()
		<-s.places
		return
	}
	go c.serve()
}

// closed is called by a connection as its last act.
func (s *Server) closed(c *conn, reason CloseReason, err error) {
	s.limits.remove(c)
	<-s.places
	defer s.running.Done()
	if !reason.ordinary() {
		s.warn("connection closed", c.logFields(reason, err)...)
	} else if entry := s.log.Check(zap.DebugLevel, "connection closed"); entry != nil {
		entry.Write(c.logFields(reason, err)...)
	}
	s.observer.ConnectionClosed(c.session.Listener, reason)
}

// Connections is how many connections are open.
func (s *Server) Connections() int {
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	return len(s.limits.connections)
}

// QueuedBytes is how much of queued.max.request.bytes is used.
func (s *Server) QueuedBytes() int64 {
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	return s.limits.used
}

// Shutdown ends the server: no connection and no request is accepted any more, idle
// connections are closed, what is held is released (Config.Release), and each
// connection is closed when its replies are written. When ctx ends first the rest is
// cut off, and the error says how much that was.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	s.draining.Store(true)
	s.limits.mu.Lock()
	s.limits.draining = true
	s.limits.mu.Unlock()
	s.limits.each((*conn).wake)
	if s.cfg.Release != nil {
		s.cfg.Release(ctx)
	}
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	defer s.cutOff()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	rest := s.Connections()
	s.cutOff()
	s.limits.each(func(c *conn) { c.kill(ReasonShutdown) })
	select {
	case <-ended:
	case <-time.After(time.Second):
	}
	return fmt.Errorf("cut off %d connections with requests under way: %w", rest, ctx.Err())
}
