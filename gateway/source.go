package gateway

import (
	"net"

	"github.com/rollcall-mq/rollcall/protocol"
)

// source reads from a connection into its FrameBuffer.
type source interface {
	// read waits for some bytes and returns how many came. ahead: only as many as
	// there is room for already. The error may be [protocol.ErrBudget].
	read(ahead bool) (int, error)
}

// plainSource reads any net.Conn. While nothing is buffered it waits with a few bytes
// of its own.
type plainSource struct {
	nc    net.Conn
	in    *protocol.FrameBuffer
	stash [128]byte
}

func (p *plainSource) read(ahead bool) (int, error) {
	if p.in.Buffered() == 0 && !ahead {
		p.in.Rest()
		n, err := p.nc.Read(p.stash[:])
		if n == 0 {
			return 0, err
		}
		room, err := p.in.Room() // a block's worth, more than the stash
		if err != nil {
			return 0, err
		}
		p.in.Wrote(copy(room, p.stash[:n]))
		return n, nil
	}
	var room []byte
	var err error
	if ahead {
		room = p.in.ReadAhead()
	} else if room, err = p.in.Room(); err != nil {
		return 0, err
	}
	n, err := p.nc.Read(room)
	p.in.Wrote(n)
	if n > 0 {
		err = nil
	}
	return n, err
}
