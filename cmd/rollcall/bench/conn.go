package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// dialMax bounds the wait for a connection.
	dialMax = 5 * time.Second
	// answerMax bounds the wait for an answer. A JoinGroup may be held that long.
	answerMax = 60 * time.Second
	// answerBytesMax bounds an answer: who sends more speaks something else.
	answerBytesMax = 64 << 20
	// correlationAt is where the correlation id is in a request with its length.
	correlationAt = 8
)

// conn is a connection; one goroutine uses it.
type conn struct {
	net.Conn
	server *server
	r      *bufio.Reader
	buf    []byte
	next   uint32 // correlation id
	forget func() bool
}

// dial connects to an address of the server. The connection is closed when ctx ends.
func (s *server) dial(ctx context.Context, addr string) (*conn, error) {
	d := net.Dialer{Timeout: dialMax}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if by, ok := ctx.Deadline(); ok && err != nil && !time.Now().Before(by) {
		<-ctx.Done() // the dialler looks at the deadline by itself, and may be the first to see it pass
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", addr, cause(err))
	}
	return &conn{Conn: nc, server: s, r: bufio.NewReaderSize(nc, 32<<10), forget: context.AfterFunc(ctx, func() { nc.Close() })}, nil
}

// cause leaves out of an error of the network what the message says already.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// close ends the connection.
func (c *conn) close() {
	c.forget()
	c.Conn.Close()
}

// encode returns the frame of a request, without a correlation id.
func encode(req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("rollcall-bench")).AppendRequest(nil, req, 0)
}

// numbered gives a frame the next correlation id.
func (c *conn) numbered(frame []byte) {
	c.next++
	binary.BigEndian.PutUint32(frame[correlationAt:], c.next)
}

// answer reads the next answer, which must have the given correlation id, and returns
// what follows that. It is valid until the next one is read.
func (c *conn) answer(id uint32) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return nil, lost(err)
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < 4 || size > answerBytesMax {
		return nil, fmt.Errorf("the server announces an answer of %d bytes", size)
	}
	if got := binary.BigEndian.Uint32(head[4:]); got != id {
		return nil, fmt.Errorf("an answer has the correlation id %d instead of %d", got, id)
	}
	n := int(size) - 4
	if n > cap(c.buf) {
		c.buf = make([]byte, n)
	}
	_, err := io.ReadFull(c.r, c.buf[:n])
	return c.buf[:n], lost(err)
}

// lost says in words what ended a connection.
func lost(err error) error {
	var timeout net.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errors.New("the server closed the connection")
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("the server does not answer in time")
	}
	return cause(err)
}

// do sends one request, at the version agreed on, and returns its answer.
func (c *conn) do(req kmsg.Request) (kmsg.Response, error) {
	if err := c.server.version(req); err != nil {
		return nil, err
	}
	frame := encode(req)
	b, err := c.exchange(frame)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kmsg.NameForKey(req.Key()), err)
	}
	return decode(req, b)
}

// exchange sends one frame and returns its answer as it came.
func (c *conn) exchange(frame []byte) ([]byte, error) {
	c.SetDeadline(time.Now().Add(answerMax))
	c.numbered(frame)
	if _, err := c.Write(frame); err != nil {
		return nil, lost(err)
	}
	return c.answer(c.next)
}

// decode returns the response in an answer to the request.
func decode(req kmsg.Request, b []byte) (kmsg.Response, error) {
	resp := req.ResponseKind()
	// The header of a flexible response ends with its tags; that of ApiVersions never has any.
	if resp.IsFlexible() && req.Key() != apiVersionsKey && len(b) > 0 {
		b = b[1:]
	}
	if err := resp.ReadFrom(b); err != nil {
		return nil, fmt.Errorf("%s: the answer cannot be read: %w", kmsg.NameForKey(req.Key()), err)
	}
	return resp, nil
}
