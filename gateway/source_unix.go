//go:build unix

package gateway

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/rollcall-mq/rollcall/protocol"
)

// rawSource reads a socket without holding memory while nothing comes: it asks for
// room only when it is about to read, and gives it back before it waits. That costs
// no more system calls than net.Conn.Read.
type rawSource struct {
	raw     syscall.RawConn
	in      *protocol.FrameBuffer
	attempt func(fd uintptr) bool // r.try, made once

	// The arguments and results of one attempt.
	ahead bool
	n     int
	err   error
}

// newSource returns a source for the connection.
func newSource(nc net.Conn, in *protocol.FrameBuffer) source {
	if tcp, ok := nc.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			r := &rawSource{raw: raw, in: in}
			r.attempt = r.try
			return r
		}
	}
	return &plainSource{nc: nc, in: in}
}

func (r *rawSource) read(ahead bool) (int, error) {
	r.ahead, r.n, r.err = ahead, 0, nil
	if err := r.raw.Read(r.attempt); err != nil {
		return 0, err
	}
	return r.n, r.err
}

// try reads once; false means to wait until there is something.
func (r *rawSource) try(fd uintptr) bool {
	var room []byte
	if r.ahead {
		room = r.in.ReadAhead()
	} else if room, r.err = r.in.Room(); r.err != nil {
		return true
	}
	for {
		n, err := syscall.Read(int(fd), room)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			r.in.Rest()
			return false
		case err != nil:
			r.err = os.NewSyscallError("read", err)
		case n == 0:
			r.err = io.EOF
		default:
			r.n = n
			r.in.Wrote(n)
		}
		return true
	}
}
