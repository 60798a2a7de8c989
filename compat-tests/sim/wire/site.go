package wire

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-mq/rollcall/compat-tests/sim/actor"
	"github.com/rollcall-mq/rollcall/compat-tests/sim/history"
	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// Site is where actors live who reach a server over a network, in virtual or in real
// time. The server is down at first.
type Site struct {
	// History is what they write down.
	History history.History
	// Pace is how many times slower than usual they live, 1 unless it is changed.
	Pace int

	over   atomic.Bool
	quit   chan struct{} // closed when it is over
	actors sync.WaitGroup
	names  uint64

	mu sync.Mutex
	// dial connects to the server, nil while it is down; conns are the connections
	// of its present life.
	dial  func(context.Context) (net.Conn, error)
	conns []*Conn
}

// NewSite returns a site without actors.
func NewSite() *Site { return &Site{Pace: 1, quit: make(chan struct{})} }

// Up says how the server that has started can be reached.
func (s *Site) Up(dial func(context.Context) (net.Conn, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dial, s.conns = dial, nil
}

// Down lets nobody connect any more, and returns the connections that there are.
func (s *Site) Down() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dial = nil
	return s.conns
}

// Cut ends all connections: when it returns, nothing more is seen of the server.
func (s *Site) Cut() []*Conn {
	conns := s.Down()
	for _, c := range conns {
		c.Close()
		c.Ended()
	}
	return conns
}

// Leave notes that nothing will come of what has no answer: the server is dead.
func (s *Site) Leave(conns []*Conn) {
	for _, c := range conns {
		for _, x := range c.Unanswered() {
			if x.Op != nil && x.Op.Open() {
				s.History.Leave(x.Op)
			}
		}
	}
}

// Break ends one of the connections.
func (s *Site) Break(rnd *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) > 0 {
		s.conns[rnd.IntN(len(s.conns))].Close()
	}
}

// Spawn starts an actor.
func (s *Site) Spawn(seed uint64, live func(actor.World)) {
	s.names++
	e := &env{s: s, rnd: rand.New(rand.NewPCG(seed, 1+s.names))}
	s.actors.Go(func() { live(e) })
}

// Audit lets somebody look at all offsets of the groups.
func (s *Site) Audit(seed uint64, why string, groups []string) {
	for _, g := range groups {
		s.Spawn(seed, func(e actor.World) { actor.Audit(e, "audit "+why, g) })
	}
}

// Over ends the actors. Their connections stay open.
func (s *Site) Over() {
	close(s.quit)
	s.over.Store(true)
	s.actors.Wait()
}

// Unanswered notes each request without an answer whose connection is open.
func (s *Site) Unanswered() {
	for _, c := range s.conns {
		for _, x := range c.Unanswered() {
			if !c.IsClosed() {
				s.History.Problem("%v was never answered", x)
			}
		}
	}
}

// Last lets somebody look at all offsets once more, and waits for that.
func (s *Site) Last(seed uint64, why string, groups []string) {
	s.over.Store(false)
	s.quit = make(chan struct{})
	s.Audit(seed, why, groups)
	s.actors.Wait()
	s.over.Store(true)
}

// env is the site as one actor sees it.
type env struct {
	s   *Site
	rnd *rand.Rand
}

var _ actor.World = (*env)(nil)

// Rand implements [actor.World].
func (e *env) Rand() *rand.Rand { return e.rnd }

// Pace implements [actor.World].
func (e *env) Pace() int { return e.s.Pace }

// Over implements [actor.World].
func (e *env) Over() bool { return e.s.over.Load() }

// History implements [actor.World].
func (e *env) History() *history.History { return &e.s.History }

// Sleep implements [actor.World].
func (e *env) Sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.s.quit:
	}
}

// Dial implements [actor.World].
func (e *env) Dial() actor.Conn {
	s := e.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dial == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	nc, err := s.dial(ctx)
	if err != nil {
		return nil
	}
	s.conns = slices.DeleteFunc(s.conns, (*Conn).Idle)
	c := &conn{New(nc, e.rnd, &s.History, s.quit), e}
	s.conns = append(s.conns, c.Conn)
	return c
}

// conn is a connection whose actor thinks for a moment before it sends, and that is
// left open when all is over, to see that everything is answered.
type conn struct {
	*Conn
	e *env
}

// Send implements [actor.Conn].
func (c *conn) Send(id string, ev group.Event, op *history.Op) actor.Call {
	c.e.Sleep(time.Duration(c.e.rnd.IntN(2000)) * time.Microsecond)
	return c.Conn.Send(id, ev, op)
}

// Close implements [actor.Conn].
func (c *conn) Close() {
	if !c.e.Over() {
		c.Conn.Close()
	}
}
