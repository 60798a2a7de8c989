//go:build !unix

package gateway

import (
	"net"

	"github.com/rollcall-mq/rollcall/protocol"
)

// newSource returns a source for the connection.
func newSource(nc net.Conn, in *protocol.FrameBuffer) source {
	return &plainSource{nc: nc, in: in}
}
