package oracle

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Hold is how long the driver waits for an answer before it takes the request to be
// held; Quiet is how long it listens on after the last answer; Patience is how long it
// waits for answers that another broker gave.
const (
	Hold     = 300 * time.Millisecond
	Quiet    = 60 * time.Millisecond
	Patience = 3 * time.Second
)

// Broker is where a scenario runs.
type Broker interface {
	// Dial opens a connection.
	Dial(ctx context.Context) (net.Conn, error)
	// Restart carries out one of the steps stop, kill and start.
	Restart(ctx context.Context, step string) error
}

// Result is what a run brought to light.
type Result struct {
	// Answers has those of each line of the scenario.
	Answers [][]string
	// Sorted has the ids of the differences in order that were met.
	Sorted map[string]bool
}

// run is a scenario that runs.
type run struct {
	Result
	broker Broker
	tag    string

	members map[string]*member
	conns   map[string]*conn
	// names has the name of each member id, known the word for some bytes.
	names, known map[string]string
	// topics has the ids of those that were made, shared those that are not the run's.
	topics map[string][16]byte
	shared map[string]bool
	// groups are those that were named, as on the wire.
	groups []string

	arrivals chan arrival
	done     chan struct{}
	next     int32
	marked   time.Time
	// said is what arrived in the step, expected how much another broker had to say.
	said     []said
	expected int
}

// said is an answer that is written down at the end of its step, when the ids in it
// have names.
type said struct {
	conn string
	text func() string
}

// Run runs a scenario. The tag goes in front of every group and topic, and makes
// them the run's own. With the answers of another broker it knows how much to wait
// for on a busy machine; what is answered does not depend on it.
func Run(ctx context.Context, s *Scenario, b Broker, tag string, other [][]string) (*Result, error) {
	r := &run{
		Result: Result{Sorted: map[string]bool{}}, broker: b, tag: tag,
		members: map[string]*member{}, conns: map[string]*conn{},
		names: map[string]string{}, known: map[string]string{}, topics: map[string][16]byte{}, shared: map[string]bool{},
		groups: []string{tag + "g"}, arrivals: make(chan arrival, 64), done: make(chan struct{}),
	}
	defer func() {
		close(r.done)
		for _, c := range r.conns {
			c.close()
		}
	}()
	if err := r.ready(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	r.marked = time.Now()
	for i := range s.Lines {
		r.said, r.expected = nil, 0
		if other != nil {
			r.expected = len(other[i])
		}
		if l := &s.Lines[i]; !l.Prose() {
			if err := r.step(ctx, l.Text); err != nil {
				return nil, fmt.Errorf("%s, at %q: %w", s.Name, l.Text, err)
			}
		}
		r.Answers = append(r.Answers, r.answers(strings.HasPrefix(s.Lines[i].Text, "every")))
	}
	return &r.Result, nil
}

// answers writes down what was said in a step, by connection. Without repeats,
// answers are left out that are like the one before.
func (r *run) answers(norepeats bool) []string {
	slices.SortStableFunc(r.said, func(a, b said) int { return strings.Compare(a.conn, b.conn) })
	var all []string
	for _, s := range r.said {
		text := s.conn + " " + s.text()
		if !norepeats || len(all) == 0 || all[len(all)-1] != text {
			all = append(all, text)
		}
	}
	return all
}

// step carries out one step.
func (r *run) step(ctx context.Context, line string) error {
	w := words(line)
	switch {
	case w[0] == "broker":
		return nil
	case (w[0] == ">" || w[0] == ">>") && len(w) > 2:
		return r.request(ctx, w)
	case w[0] == "every" && len(w) > 5 && w[2] == "for":
		return r.every(ctx, w)
	case w[0] == "member" && len(w) > 1:
		return r.declare(w[1], w[2:])
	case w[0] == "topic" && (len(w) == 3 || len(w) == 4 && w[3] == "shared"):
		return r.createTopic(ctx, w[1], w[2], len(w) == 4)
	case w[0] == "delete-topic" && len(w) == 2:
		return r.deleteTopic(ctx, w[1])
	case w[0] == "close" && len(w) == 2:
		for _, name := range list(w[1]) {
			r.drop(name)
		}
		r.settle(nil, Quiet)
		return nil
	case len(w) == 1 && w[0] == "mark":
		r.marked = time.Now()
		return nil
	case w[0] == "wait" && len(w) == 2 || w[0] == "at" && len(w) == 2:
		return r.wait(w[0], w[1])
	case len(w) == 1 && (w[0] == "stop" || w[0] == "kill" || w[0] == "start"):
		return r.restart(ctx, w[0])
	}
	return errors.New("no such step")
}

// wait lets time pass and takes what arrives.
func (r *run) wait(how, word string) error {
	d, err := time.ParseDuration(word)
	if err != nil {
		return err
	}
	until := time.Now().Add(d)
	if how == "at" {
		until = r.marked.Add(d)
		if late := time.Since(until); late > 0 {
			return fmt.Errorf("%w by %v", ErrLate, late)
		}
	}
	r.listen(until)
	return nil
}

// ErrLate says that a step came too late for what the scenario is about: the machine
// was busy, or the steps before take too long.
var ErrLate = errors.New("too late")

// listen takes what arrives until a time.
func (r *run) listen(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		select {
		case a := <-r.arrivals:
			r.arrived(a)
		case <-timer.C:
			return
		}
	}
}

// settle takes what arrives until the connections have no open request and it was
// quiet, or until they count as held.
func (r *run) settle(for_ []*conn, hold time.Duration) {
	start := time.Now()
	for {
		until := start.Add(hold)
		if len(r.said) < r.expected {
			until = start.Add(Patience)
		} else if !slices.ContainsFunc(for_, func(c *conn) bool { return len(c.sent) > 0 && !c.closed }) {
			until = time.Now().Add(Quiet)
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case a := <-r.arrivals:
			timer.Stop()
			r.arrived(a)
		case <-timer.C:
			return
		}
	}
}

// conn returns the connection of that name, a new one if there is none.
func (r *run) conn(ctx context.Context, name string) (*conn, error) {
	if c := r.conns[name]; c != nil && !c.closed {
		return c, nil
	}
	nc, err := r.broker.Dial(ctx)
	if err != nil {
		return nil, err
	}
	c := open(name, nc, r.arrivals, r.done)
	r.conns[name] = c
	return c, nil
}

// drop closes a connection without a word.
func (r *run) drop(name string) {
	if c := r.conns[name]; c != nil {
		c.close()
		delete(r.conns, name)
	}
}

// member returns the member of a connection's name.
func (r *run) member(connection string) *member {
	name, _, _ := strings.Cut(connection, "/")
	m := r.members[name]
	if m == nil {
		m = &member{
			name: name, client: "client", group: "g", kind: "consumer", protocols: "range:" + name,
			session: 30 * time.Second, rebalance: time.Minute, generation: -1,
		}
		r.members[name] = m
	}
	return m
}

// declare sets what a member is like.
func (r *run) declare(name string, all []string) error {
	m := r.member(name)
	a, err := parseArgs(all)
	if err != nil {
		return err
	}
	v := &values{run: r}
	m.group = a.take("group", m.group)
	if word := a.take("client", ""); word != "" {
		m.client = v.plain(word)
	}
	m.kind, m.protocols = a.take("type", m.kind), a.take("protocols", m.protocols)
	if word := a.take("instance", ""); word != "" {
		m.instance = v.text(word)
	}
	m.session = time.Duration(v.millis(a.take("session", m.session.String()))) * time.Millisecond
	m.rebalance = time.Duration(v.millis(a.take("rebalance", m.rebalance.String()))) * time.Millisecond
	if len(a) > 0 {
		v.fail("no such words: %v", a)
	}
	return v.err
}

// request sends one request for each of the members.
func (r *run) request(ctx context.Context, w []string) error {
	var conns []*conn
	for _, name := range list(w[1]) {
		if c := r.conns[name]; w[0] == ">>" && c != nil && len(c.sent) > 0 {
			r.drop(name)
		}
		c, err := r.conn(ctx, name)
		if err != nil {
			return err
		}
		if err := r.send(c, r.member(name), w[2:]); err != nil {
			return err
		}
		conns = append(conns, c)
		if w[1] != name { // there are more: the first ones first
			expected := r.expected
			r.expected = 0
			r.settle(conns[len(conns)-1:], Hold)
			r.expected = expected
		}
	}
	r.settle(conns, Hold)
	return nil
}

// every sends a request again and again.
func (r *run) every(ctx context.Context, w []string) error {
	pace, err := time.ParseDuration(w[1])
	total, err2 := time.ParseDuration(w[3])
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	end := time.Now().Add(total)
	for next := time.Now(); next.Before(end); {
		for _, name := range list(w[5]) {
			c, err := r.conn(ctx, name)
			if err != nil {
				return err
			}
			if len(c.sent) == 0 {
				if err := r.send(c, r.member(name), w[6:]); err != nil {
					return err
				}
			}
		}
		if next = next.Add(pace); next.After(end) {
			next = end
		}
		r.listen(next)
	}
	return nil
}

// send writes a request: API vN words, or raw words.
func (r *run) send(c *conn, m *member, w []string) error {
	if len(w) < 2 || !strings.HasPrefix(w[1], "v") {
		return errors.New("want a request and its version")
	}
	version, err := strconv.ParseInt(w[1][1:], 10, 16)
	if err != nil {
		return err
	}
	a, err := parseArgs(w[2:])
	if err != nil {
		return err
	}
	b := &builder{values: values{run: r}, args: a, m: m, version: int16(version)}
	r.next++
	s := sent{id: r.next, member: m, api: w[0]}
	cut, extra := b.int(b.take("cut", "0"), 32), b.take("extra", "")
	var frame []byte
	if w[0] == "raw" {
		frame = b.raw(r.next)
	} else {
		build := apis[w[0]]
		if build == nil {
			return fmt.Errorf("no request %s", w[0])
		}
		s.req = build(b)
		s.req.SetVersion(b.version)
		s.all = b.all
		frame = kmsg.NewRequestFormatter(kmsg.FormatterClientID(m.client)).AppendRequest(nil, s.req, r.next)
	}
	frame = frame[:len(frame)-int(cut)]
	more, err := hex.DecodeString(extra)
	frame = append(frame, more...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	if len(a) > 0 {
		b.fail("no such words: %v", a)
	}
	if err := errors.Join(b.err, err); err != nil {
		return err
	}
	c.sent = append(c.sent, s)
	c.out <- frame
	return nil
}

// raw is a frame made by hand: key, body=HEX, flexible.
func (b *builder) raw(correlation int32) []byte {
	frame := make([]byte, 4)
	frame = binary.BigEndian.AppendUint16(frame, uint16(b.int(b.take("key", "0"), 16)))
	frame = binary.BigEndian.AppendUint16(frame, uint16(b.version))
	frame = binary.BigEndian.AppendUint32(frame, uint32(correlation))
	frame = binary.BigEndian.AppendUint16(frame, uint16(len(b.m.client)))
	frame = append(frame, b.m.client...)
	if b.has("flexible") {
		frame = append(frame, 0)
	}
	body, err := hex.DecodeString(b.take("body", ""))
	if err != nil {
		b.fail("body: %w", err)
	}
	return append(frame, body...)
}

// arrived writes an answer down and lets the member learn from it.
func (r *run) arrived(a arrival) {
	c := a.conn
	if c.closed {
		return // by the scenario
	}
	say := func(text string) { r.said = append(r.said, said{c.name, func() string { return text }}) }
	if a.frame == nil {
		c.close()
		say("closed")
		return
	}
	if len(c.sent) == 0 || len(a.frame) < 4 || int32(binary.BigEndian.Uint32(a.frame)) != c.sent[0].id {
		say(fmt.Sprintf("an answer that nobody waits for: %x", a.frame))
		return
	}
	s := c.sent[0]
	c.sent = c.sent[1:]
	if s.req == nil {
		say("raw " + hex.EncodeToString(a.frame[4:]))
		return
	}
	resp, err := decode(&s, a.frame)
	if err != nil {
		say(s.api + " malformed: " + err.Error())
		return
	}
	if j, ok := resp.(*kmsg.JoinGroupResponse); ok {
		r.learn(s.member, s.req.(*kmsg.JoinGroupRequest), j)
	}
	if v, ok := resp.(*kmsg.ApiVersionsResponse); ok {
		for _, text := range beside(v) {
			say(text)
		}
	}
	r.said = append(r.said, said{c.name, func() string { return r.show(&s, resp) }})
}

// learn is what a client takes from the answer to its JoinGroup.
func (r *run) learn(m *member, req *kmsg.JoinGroupRequest, resp *kmsg.JoinGroupResponse) {
	if _, known := r.names[resp.MemberID]; resp.MemberID != "" && !known && resp.MemberID != req.MemberID {
		m.ids = append(m.ids, resp.MemberID)
		r.names[resp.MemberID] = fmt.Sprintf("%s.%d", m.name, len(m.ids))
	}
	if resp.ErrorCode != 0 {
		return
	}
	m.generation, m.protocol, m.protocolType = resp.Generation, resp.Protocol, resp.ProtocolType
	if m.protocolType == nil { // before version 7
		m.protocolType = &req.ProtocolType
	}
	m.leads, m.roster = resp.LeaderID == resp.MemberID, nil
	for _, rm := range resp.Members {
		m.roster = append(m.roster, rm.MemberID)
	}
}
