package gateway

import (
	"slices"
	"sync"

	"github.com/rollcall-mq/rollcall/protocol"
)

// limits keeps the books of what all connections have together: the connections
// themselves and queued.max.request.bytes.
//
// A connection that finds the budget used up first answers what it has under way,
// then waits in line. What is reserved is given back when requests are answered, so
// the line moves as long as any request is under way that holds some. If all of it
// is held by frames that have not come in whole, or that wait in line themselves, the
// line would stand for ever: then the connection that holds most is closed.
type limits struct {
	mu          sync.Mutex
	draining    bool
	connections map[*conn]struct{}
	max         int64
	used        int64
	// stuck is the part of used that no answer will give back: see account.stuck.
	stuck int64
	// line are the connections that wait, first come first.
	line []*conn
}

// account is what one connection has of the budget. All fields are under limits.mu.
type account struct {
	limits *limits
	conn   *conn
	// held is all that is reserved; unfinished is the part of it that holds a frame
	// that has not come in whole.
	held, unfinished int64
	// wants is what was last refused; the connection waits in line for it if waiting.
	wants   int64
	waiting bool
	// doomed: the connection was told to end, and will give everything back.
	doomed bool
}

var _ protocol.Budget = (*account)(nil)

// stuck is what will not be given back as things are: unfinished frames, and all of
// a connection in line, which has no request under way.
func (a *account) stuck() int64 {
	switch {
	case a.doomed:
		return 0
	case a.waiting:
		return a.held
	}
	return a.unfinished
}

// change applies f to the account and keeps the sums.
func (a *account) change(f func()) {
	l := a.limits
	l.used -= a.held
	l.stuck -= a.stuck()
	f()
	l.used += a.held
	l.stuck += a.stuck()
}

// Reserve implements [protocol.Budget].
func (a *account) Reserve(n int) bool {
	a.limits.mu.Lock()
	defer a.limits.mu.Unlock()
	if a.limits.used+int64(n) > a.limits.max {
		a.wants = int64(n)
		return false
	}
	a.change(func() { a.held += int64(n) })
	return true
}

// Unfinished implements [protocol.Budget].
func (a *account) Unfinished(n int) {
	a.limits.mu.Lock()
	defer a.limits.mu.Unlock()
	a.change(func() { a.unfinished = int64(n) })
	a.limits.advance()
}

// Release implements [protocol.Budget].
func (a *account) Release(n int) {
	a.limits.mu.Lock()
	defer a.limits.mu.Unlock()
	a.change(func() { a.held -= int64(n) })
	a.limits.advance()
}

// enqueue puts the connection in line for what it was last refused. It is woken when
// that can be had, or closed.
func (a *account) enqueue() {
	a.limits.mu.Lock()
	defer a.limits.mu.Unlock()
	a.change(func() { a.waiting = true })
	a.limits.line = append(a.limits.line, a.conn)
	a.limits.advance()
}

// inLine tells whether the connection still has to wait.
func (a *account) inLine() bool {
	a.limits.mu.Lock()
	defer a.limits.mu.Unlock()
	return a.waiting
}

// leaveLine takes the connection out of the line if it is still in it.
func (a *account) leaveLine() {
	a.limits.mu.Lock()
	defer a.limits.mu.Unlock()
	if a.waiting {
		a.limits.leave(a)
	}
}

// leave takes a waiting connection out of the line.
func (l *limits) leave(a *account) {
	a.change(func() { a.waiting = false })
	l.line = slices.DeleteFunc(l.line, func(c *conn) bool { return c == a.conn })
}

// forget gives back everything that a closed connection has.
func (a *account) forget() {
	a.limits.mu.Lock()
	defer a.limits.mu.Unlock()
	a.change(func() { a.held, a.unfinished = 0, 0 })
	if a.waiting {
		a.limits.leave(a)
	}
	a.limits.advance()
}

// advance lets those at the head of the line go for whom there is enough, and closes
// the connection that holds most if the line cannot move by itself.
func (l *limits) advance() {
	if len(l.line) == 0 {
		return
	}
	free := l.max - l.used
	for len(l.line) > 0 && l.line[0].account.wants <= free {
		c := l.line[0]
		l.line = l.line[1:]
		free -= c.account.wants
		c.account.change(func() { c.account.waiting = false })
		c.wake()
	}
	if len(l.line) == 0 || l.used-l.stuck > 0 || free < l.max-l.used {
		return
	}
	most := l.line[0]
	for c := range l.connections {
		if !c.account.doomed && c.account.held > most.account.held {
			most = c
		}
	}
	most.account.change(func() { most.account.doomed = true })
	most.kill(ReasonMemory)
}

// add takes in a connection; false if the server is shutting down.
func (l *limits) add(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return false
	}
	l.connections[c] = struct{}{}
	c.server.running.Add(1)
	return true
}

// remove lets a connection go.
func (l *limits) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.connections, c)
}

// each calls f for every connection.
func (l *limits) each(f func(*conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.connections {
		f(c)
	}
}
