package gateway

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// desk has handlers that a test plays by hand: Heartbeats are answered at once, with
// the generation as error code; JoinGroups and OffsetCommits wait until
// the test answers them.
type desk struct {
	arrived chan *api.Call // every call that waits
	gone    chan *api.Call // every call that was abandoned
}

func newDesk() *desk {
	return &desk{arrived: make(chan *api.Call, 1000), gone: make(chan *api.Call, 1000)}
}

func (d *desk) entries() []api.Entry {
	return []api.Entry{
		{Key: 12, Min: 0, Max: 4, Handle: func(c *api.Call) {
			resp := kmsg.NewPtrHeartbeatResponse()
			resp.ErrorCode = int16(c.Msg.(*kmsg.HeartbeatRequest).Generation)
			c.Respond(resp)
		}},
		{Key: 11, Min: 0, Max: 9, Holds: true, Handle: d.wait(func() kmsg.Response { return kmsg.NewPtrJoinGroupResponse() })},
		{Key: 8, Min: 2, Max: 9, Handle: d.wait(func() kmsg.Response { return kmsg.NewPtrOffsetCommitResponse() })},
		{Key: 0, Min: 0, Max: 12, Handle: func(c *api.Call) { c.NoResponse() }},
		{Key: 16, Min: 0, Max: 4, Handle: func(c *api.Call) { c.Close("the test says so") }},
		{Key: 18, Min: 0, Max: 4, Handle: func(c *api.Call) { c.Respond(kmsg.NewPtrApiVersionsResponse()) }},
	}
}

func (d *desk) wait(resp func() kmsg.Response) func(c *api.Call) {
	return func(c *api.Call) {
		c.Await(1, resp)
		c.OnAbandon(func() { d.gone <- c })
		d.arrived <- c
	}
}

// next is the next call that waits.
func (d *desk) next(t testing.TB) *api.Call {
	t.Helper()
	select {
	case c := <-d.arrived:
		return c
	case <-time.After(5 * time.Second):
		t.Fatal("no request came")
		return nil
	}
}

// closings is an Observer that hands on why connections were closed.
type closings struct {
	nobody
	closed   chan CloseReason
	requests chan RequestInfo
}

func newClosings() *closings {
	return &closings{closed: make(chan CloseReason, 10000), requests: make(chan RequestInfo, 10000)}
}

func (c *closings) ConnectionClosed(_ string, reason CloseReason) { c.closed <- reason }

func (c *closings) RequestDone(r RequestInfo) {
	select {
	case c.requests <- r:
	default:
	}
}

func (c *closings) next(t testing.TB) CloseReason {
	t.Helper()
	select {
	case reason := <-c.closed:
		return reason
	case <-time.After(time.Hour): // of virtual time; go test's own limit ends it elsewhere
		t.Fatal("no connection was closed")
		return 0
	}
}

// site is a server with everything that a test looks at.
type site struct {
	*Server
	desk     *desk
	closings *closings
	logs     *observer.ObservedLogs
	ln       net.Listener
	served   chan error
}

// newSite starts a server on ln.
func newSite(t testing.TB, ln net.Listener, change func(*Config)) *site {
	t.Helper()
	d, o := newDesk(), newClosings()
	core, logs := observer.New(zapcore.WarnLevel)
	cfg := Config{Entries: d.entries(), Observer: o}
	if change != nil {
		change(&cfg)
	}
	server, err := New(cfg, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Server: server, desk: d, closings: o, logs: logs, ln: ln, served: make(chan error, 1)}
	go func() { s.served <- server.Serve(context.Background(), "PLAINTEXT", ln) }()
	return s
}

// stop shuts the server down and sees that it ended well.
func (s *site) stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := <-s.served; !errors.Is(err, ErrServerClosed) {
		t.Errorf("Serve returned %v", err)
	}
}

// loopback starts a server on a real socket that is stopped at the end of the test.
func loopback(t testing.TB, change func(*Config)) *site {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, ln, change)
	t.Cleanup(func() { s.stop(t) })
	return s
}

// client is the other end of a connection.
type client struct {
	t  testing.TB
	nc net.Conn
	r  *bufio.Reader
}

func (s *site) dial(t testing.TB) *client {
	t.Helper()
	nc, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return &client{t, nc, bufio.NewReader(nc)}
}

// request is the frame of a request.
func request(correlationID int32, req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("tester")).AppendRequest(nil, req, correlationID)
}

// heartbeat is a request that comes back with its error code.
func heartbeat(correlationID int32, code int16) []byte {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 4, "group", "member", int32(code)
	return request(correlationID, req)
}

func joinGroup(correlationID int32) []byte {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group = 9, "group"
	return request(correlationID, req)
}

// commit is an OffsetCommit whose metadata makes it about so long.
func commit(correlationID int32, bytes int) []byte {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group = 9, "group"
	topic := kmsg.NewOffsetCommitRequestTopic()
	for ; bytes > 0; bytes -= 30000 {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Metadata = kmsg.StringPtr(string(make([]byte, min(bytes, 30000))))
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	return request(correlationID, req)
}

func (c *client) send(frames ...[]byte) {
	c.t.Helper()
	var all []byte
	for _, f := range frames {
		all = append(all, f...)
	}
	if _, err := c.nc.Write(all); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// receive reads one response frame, without its length.
func (c *client) receive() []byte {
	c.t.Helper()
	var length [4]byte
	if _, err := io.ReadFull(c.r, length[:]); err != nil {
		c.t.Fatalf("read: %v", err)
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(c.r, frame); err != nil {
		c.t.Fatalf("read: %v", err)
	}
	return frame
}

// expect reads responses and compares their correlation ids.
func (c *client) expect(correlationIDs ...int32) {
	c.t.Helper()
	for _, want := range correlationIDs {
		if got := int32(binary.BigEndian.Uint32(c.receive())); got != want {
			c.t.Fatalf("response to %d, want %d", got, want)
		}
	}
}

// expectClosed sees that nothing more comes and the connection is closed.
func (c *client) expectClosed() {
	c.t.Helper()
	if b, err := c.r.ReadByte(); err == nil {
		c.t.Fatalf("there is a byte %#x", b)
	} else if errors.Is(err, context.DeadlineExceeded) {
		c.t.Fatal(err)
	}
}

// expectSilence sees that nothing comes and the connection stays, for a moment.
func (c *client) expectSilence() {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if b, err := c.r.Peek(1); err == nil {
		c.t.Fatalf("there is a byte %#x", b)
	} else if !isTimeout(err) {
		c.t.Fatal(err)
	}
	c.nc.SetReadDeadline(time.Time{})
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
