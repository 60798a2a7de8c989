package oracle

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// conn is one connection of a member. Frames are written and read by goroutines of
// its own: a broker that holds a request does not read on.
type conn struct {
	name string
	nc   net.Conn
	out  chan []byte
	// sent are the requests that are not answered, in order.
	sent []sent
	// closed is set when the broker or the scenario has closed it.
	closed bool
	once   sync.Once
}

// sent is a request on its way.
type sent struct {
	id     int32
	member *member
	req    kmsg.Request // nil for raw bytes
	api    string
	// all: the request asked for everything, so that the order is the broker's.
	all bool
}

// arrival is an answer, or the end of a connection.
type arrival struct {
	conn  *conn
	frame []byte // nil: closed
}

// open starts the goroutines of a connection; arrivals go into a channel until done.
func open(name string, nc net.Conn, arrivals chan<- arrival, done <-chan struct{}) *conn {
	c := &conn{name: name, nc: nc, out: make(chan []byte, 256)}
	go func() {
		for frame := range c.out {
			if _, err := nc.Write(frame); err != nil {
				nc.Close() // the reader tells
			}
		}
	}()
	go func() {
		r := bufio.NewReader(nc)
		for {
			frame, err := readFrame(r)
			select {
			case arrivals <- arrival{c, frame}:
			case <-done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

// readFrame reads an answer without its length; nil with an error.
func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	return frame, nil
}

// close ends the connection and its goroutines.
func (c *conn) close() {
	c.once.Do(func() {
		c.closed = true
		close(c.out)
		c.nc.Close()
	})
}
