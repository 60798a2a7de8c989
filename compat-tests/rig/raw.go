package rig

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Conn is a connection that sends requests as they are, at the version they name, and
// does nothing by itself.
type Conn struct {
	// ClientID goes into each request header.
	ClientID string

	t    testing.TB
	c    net.Conn
	r    *bufio.Reader
	next int32
	sent map[int32]kmsg.Request
}

// Dial opens a connection that ends with the test.
func Dial(t testing.TB, addr string) *Conn {
	t.Helper()
	c, err := dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.t = t
	return c
}

// dial is Dial for those who see to its end and to errors themselves.
func dial(addr string) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &Conn{ClientID: "raw", c: c, r: bufio.NewReader(c), sent: map[int32]kmsg.Request{}}, nil
}

// Close drops the connection without a word.
func (c *Conn) Close() { c.c.Close() }

// Send writes a request and returns its correlation id.
func (c *Conn) Send(req kmsg.Request) int32 {
	c.t.Helper()
	if err := c.send(req); err != nil {
		c.t.Fatalf("write: %v", err)
	}
	return c.next
}

func (c *Conn) send(req kmsg.Request) error {
	c.next++
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(c.ClientID))
	c.sent[c.next] = req
	_, err := c.c.Write(f.AppendRequest(nil, req, c.next))
	return err
}

// Bytes writes bytes as they are.
func (c *Conn) Bytes(b []byte) {
	c.t.Helper()
	if _, err := c.c.Write(b); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// ErrQuiet says that no answer came in the time given.
var ErrQuiet = errors.New("no answer yet")

// ReadFrame reads the next answer, without its length.
func (c *Conn) ReadFrame(wait time.Duration) ([]byte, error) {
	_ = c.c.SetReadDeadline(time.Now().Add(wait))
	if _, err := c.r.Peek(4); err != nil {
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			return nil, ErrQuiet
		}
		return nil, err
	}
	_ = c.c.SetReadDeadline(time.Now().Add(10 * time.Second))
	var size [4]byte
	if _, err := io.ReadFull(c.r, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.r, b)
	return b, err
}

// Receive reads the next answer, which must fit its request to the last byte.
func (c *Conn) Receive(wait time.Duration) (kmsg.Response, error) {
	b, err := c.ReadFrame(wait)
	if err != nil {
		return nil, err
	}
	id := int32(binary.BigEndian.Uint32(b))
	req, ok := c.sent[id]
	if !ok {
		return nil, fmt.Errorf("an answer to %d, which was not asked", id)
	}
	for older := range c.sent {
		if older < id {
			return nil, fmt.Errorf("%d is answered before %d", id, older)
		}
	}
	delete(c.sent, id)
	b = b[4:]
	resp := req.ResponseKind()
	if resp.IsFlexible() && req.Key() != 18 {
		b = b[1:] // the header's tags, none of which exist
	}
	if err := resp.ReadFrom(b); err != nil {
		return nil, fmt.Errorf("answer to %s v%d: %w", kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	if again := resp.AppendTo(nil); len(again) != len(b) {
		return nil, fmt.Errorf("answer to %s v%d: %d bytes, of which %d make sense", kmsg.NameForKey(req.Key()), req.GetVersion(), len(b), len(again))
	}
	return resp, nil
}

// Do sends a request and waits for its answer.
func Do[R kmsg.Response](c *Conn, req kmsg.Request) R {
	c.t.Helper()
	c.Send(req)
	return Answer[R](c)
}

// Answer waits for the next answer.
func Answer[R kmsg.Response](c *Conn) R {
	c.t.Helper()
	resp, err := c.Receive(20 * time.Second)
	if err != nil {
		c.t.Fatalf("waiting for an answer: %v", err)
	}
	r, ok := resp.(R)
	if !ok {
		c.t.Fatalf("got %T", resp)
	}
	return r
}

// Quiet fails the test if an answer comes within d.
func (c *Conn) Quiet(d time.Duration) {
	c.t.Helper()
	if resp, err := c.Receive(d); err != ErrQuiet {
		c.t.Fatalf("expected nothing for %v, got %+v, %v", d, resp, err)
	}
}

// Closed fails the test unless the server closes the connection without an answer.
func (c *Conn) Closed(within time.Duration) {
	c.t.Helper()
	if b, err := c.ReadFrame(within); err == nil || err == ErrQuiet {
		c.t.Fatalf("expected the connection to be closed, got %x, %v", b, err)
	}
}
