package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// stream sends one request over one connection again and again.
type stream struct {
	c     *conn
	req   kmsg.Request
	check func(kmsg.Response) error
	// out has depth copies of the request's frame, each size bytes.
	out         []byte
	size, depth int
	// want is an answer that was seen to be right.
	want    []byte
	latency histogram
}

// closedLoop keeps depth requests under way on each connection for a time, each
// connection with its own request. check looks at the responses, so that a fast
// refusal does not count as speed.
func closedLoop(ctx context.Context, s *server, conns []*conn, reqs []kmsg.Request, depth int, d time.Duration, check func(kmsg.Response) error) (sample, error) {
	streams := make([]*stream, len(conns))
	for i, c := range conns {
		streams[i] = &stream{c: c, req: reqs[i], check: check, depth: depth}
		if err := retry(ctx, streams[i].prepare); err != nil {
			return sample{}, err
		}
	}
	var stop atomic.Bool
	before, began := s.meter(), time.Now()
	finish := inParallel(len(streams), func(i int) error {
		streams[i].c.SetDeadline(began.Add(d + answerMax))
		return streams[i].run(&stop)
	})
	paused := pause(ctx, d)
	stop.Store(true)
	err := finish()
	took := time.Since(began)
	if paused != nil {
		return sample{}, paused
	}
	if err != nil {
		return sample{}, err
	}
	all := &histogram{}
	for _, st := range streams {
		all.merge(&st.latency)
	}
	n := float64(all.count)
	return sample{perSecond: n / took.Seconds(), latency: all, cpu: before.used(n)}, nil
}

// inParallel starts f for each of n and returns what waits for all of them and
// returns the error of the first in order that failed.
func inParallel(n int, f func(i int) error) func() error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	return func() error {
		wg.Wait()
		if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
			return errs[i]
		}
		return nil
	}
}

// prepare sends the request once and remembers its answer.
func (st *stream) prepare() error {
	if err := st.c.server.version(st.req); err != nil {
		return err
	}
	frame := encode(st.req)
	st.out, st.size = slices.Repeat(frame, st.depth), len(frame)
	answer, err := st.c.exchange(frame)
	if err != nil {
		return fmt.Errorf("%s: %w", kmsg.NameForKey(st.req.Key()), err)
	}
	if err := st.examine(answer); err != nil {
		return err
	}
	st.want = bytes.Clone(answer)
	return nil
}

// examine decodes an answer and tells what is wrong with it.
func (st *stream) examine(answer []byte) error {
	resp, err := decode(st.req, answer)
	if err == nil {
		err = st.check(resp)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", kmsg.NameForKey(st.req.Key()), err)
	}
	return nil
}

// send puts n more requests under way.
func (st *stream) send(n int) error {
	for i := range n {
		st.c.numbered(st.out[i*st.size:])
	}
	_, err := st.c.Write(st.out[:n*st.size])
	return lost(err)
}

// run is the loop; it ends with nothing under way.
func (st *stream) run(stop *atomic.Bool) error {
	sent := make([]time.Time, st.depth) // a ring: the oldest is at n % depth
	now := time.Now()
	for i := range sent {
		sent[i] = now
	}
	if err := st.send(st.depth); err != nil {
		return err
	}
	for n := 0; ; {
		// Answers that came together are followed up together.
		got := 0
		for got == 0 || got < st.depth && st.arrived() {
			if err := st.receive(st.depth - got); err != nil {
				return err
			}
			now = time.Now()
			st.latency.add(now.Sub(sent[(n+got)%st.depth]))
			got++
		}
		if stop.Load() {
			for ; got < st.depth; got++ {
				if err := st.receive(st.depth - got); err != nil {
					return err
				}
			}
			return nil
		}
		for i := range got {
			sent[(n+i)%st.depth] = now
		}
		n += got
		if err := st.send(got); err != nil {
			return err
		}
	}
}

// arrived tells whether a whole answer is in the buffer.
func (st *stream) arrived() bool {
	if st.c.r.Buffered() < 4 {
		return false
	}
	head, _ := st.c.r.Peek(4) // they are there
	return st.c.r.Buffered() >= 4+int(binary.BigEndian.Uint32(head))
}

// receive takes the oldest answer of those under way.
func (st *stream) receive(underWay int) error {
	answer, err := st.c.answer(st.c.next - uint32(underWay) + 1)
	if err != nil || bytes.Equal(answer, st.want) {
		return err
	}
	return st.examine(answer)
}
