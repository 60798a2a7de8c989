package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// conn is a connection that speaks kmsg; one goroutine uses it.
type conn struct {
	net.Conn
	r  *bufio.Reader
	id int32
}

func dial(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, r: bufio.NewReaderSize(c, 1<<16)}, nil
}

func encode(req kmsg.Request, id int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, id)
}

// skip reads one answer and gives its bytes after the correlation id to check.
func (c *conn) skip(buf []byte) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.r, size[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	if n > len(buf) {
		buf = make([]byte, n)
	}
	_, err := io.ReadFull(c.r, buf[:n])
	return buf[4:n], err
}

// do sends one request and decodes its answer.
func (c *conn) do(req kmsg.Request) (kmsg.Response, error) {
	if err := c.send(req); err != nil {
		return nil, err
	}
	return c.receive(req)
}

func (c *conn) send(req kmsg.Request) error {
	c.id++
	_, err := c.Write(encode(req, c.id))
	return err
}

func (c *conn) receive(req kmsg.Request) (kmsg.Response, error) {
	b, err := c.skip(nil)
	if err != nil {
		return nil, err
	}
	resp := req.ResponseKind()
	if resp.IsFlexible() && req.Key() != 18 {
		b = b[1:]
	}
	return resp, resp.ReadFrom(b)
}

// closedLoop keeps depth requests under way on each connection for a time. check looks
// at each answer, so that a fast refusal does not count as speed.
func closedLoop(t target, frames [][]byte, conns []*conn, depth int, d time.Duration, check func([]byte) error) (result, error) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	latencies := make([][]time.Duration, len(conns))
	errs := make([]error, len(conns))
	before, began := cpuTime(t.pid), time.Now()
	for i, c := range conns {
		wg.Go(func() { latencies[i], errs[i] = loop(c, frames[i], depth, &stop, check) })
	}
	time.Sleep(d)
	stop.Store(true)
	wg.Wait()
	took, used := time.Since(began), cpuTime(t.pid)-before
	if err := errors.Join(errs...); err != nil {
		return result{}, err
	}
	all := slices.Concat(latencies...)
	slices.Sort(all)
	if len(all) == 0 {
		return result{}, errors.New("no request was answered")
	}
	return result{
		perSecond: float64(len(all)) / took.Seconds(), p50: all[len(all)/2], p99: all[len(all)*99/100],
		cpu: used / time.Duration(len(all)),
	}, nil
}

func loop(c *conn, frame []byte, depth int, stop *atomic.Bool, check func([]byte) error) ([]time.Duration, error) {
	buf := make([]byte, 1<<16)
	sent := make([]time.Time, depth)
	var latencies []time.Duration
	now := time.Now()
	for i := range sent {
		sent[i] = now
	}
	if _, err := c.Write(slices.Repeat(frame, depth)); err != nil {
		return nil, err
	}
	for n := 0; ; {
		// Answer for answer as they come; those that came together are followed up together.
		got := 0
		for got == 0 || (got < depth && c.r.Buffered() > 4) {
			b, err := c.skip(buf)
			if err == nil {
				err = check(b)
			}
			if err != nil {
				return nil, err
			}
			now = time.Now()
			latencies = append(latencies, now.Sub(sent[(n+got)%depth]))
			got++
		}
		if stop.Load() {
			for range depth - got {
				if _, err := c.skip(buf); err != nil {
					return nil, err
				}
			}
			return latencies, nil
		}
		for i := range got {
			sent[(n+i)%depth] = now
		}
		n += got
		if _, err := c.Write(slices.Repeat(frame, got)); err != nil {
			return nil, err
		}
	}
}

const benchTopic = "bench"

// topic makes sure that the topic of the commits exists.
func topic(addr string) error {
	c, err := dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 5, 10_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = benchTopic, 10, 1
	req.Topics = []kmsg.CreateTopicsRequestTopic{rt}
	resp, err := c.do(req)
	if err != nil {
		return err
	}
	// This makes a new Kafka create its offsets topic.
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.Version, find.CoordinatorKey = 3, "commit-0"
	if _, err := c.do(find); err != nil {
		return err
	}
	const topicAlreadyExists = 36
	if code := resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode; code != 0 && code != topicAlreadyExists {
		return fmt.Errorf("create topic: code %d", code)
	}
	return nil
}

// commits of ten partitions, one group a connection.
func commits(t target, n, depth int, d time.Duration) (result, error) {
	if err := topic(t.addr); err != nil {
		return result{}, err
	}
	conns, closeAll, err := dialMany(t.addr, n)
	if err != nil {
		return result{}, err
	}
	defer closeAll()
	frames := make([][]byte, n)
	for i := range frames {
		frames[i] = encode(commitRequest(fmt.Sprintf("commit-%d", i)), 1)
	}
	if err := warmUp(conns[0], commitRequest("commit-0"), func(r kmsg.Response) int16 {
		return r.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[9].ErrorCode
	}); err != nil {
		return result{}, err
	}
	return closedLoop(t, frames, conns, depth, d, func(b []byte) error {
		// What ends the answer: the code of the last partition and the tags of partition, topic and body.
		if code := binary.BigEndian.Uint16(b[len(b)-5:]); code != 0 {
			return fmt.Errorf("commit: code %d", code)
		}
		return nil
	})
}

func commitRequest(group string) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, group, -1
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic = benchTopic
	for p := range int32(10) {
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset = p, 123_456
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = []kmsg.OffsetCommitRequestTopic{rt}
	return req
}

// warmUp repeats a request until it succeeds; a new Kafka has no coordinator at first.
func warmUp(c *conn, req kmsg.Request, code func(kmsg.Response) int16) error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		resp, err := c.do(req)
		if err != nil {
			return err
		}
		if got := code(resp); got == 0 {
			return nil
		} else if time.Now().After(deadline) {
			return fmt.Errorf("%s: code %d", kmsg.NameForKey(req.Key()), got)
		}
	}
}

func dialMany(addr string, n int) ([]*conn, func(), error) {
	var conns []*conn
	closeAll := func() {
		for _, c := range conns {
			c.Close()
		}
	}
	for range n {
		c, err := dial(addr)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		conns = append(conns, c)
	}
	return conns, closeAll, nil
}

// fetches of ten offsets.
func fetches(t target, n int, d time.Duration) (result, error) {
	if _, err := commits(t, n, 1, 100*time.Millisecond); err != nil {
		return result{}, err
	}
	conns, closeAll, err := dialMany(t.addr, n)
	if err != nil {
		return result{}, err
	}
	defer closeAll()
	frames := make([][]byte, n)
	for i := range frames {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version, req.Group, req.RequireStable = 7, fmt.Sprintf("commit-%d", i), true
		req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: benchTopic, Partitions: []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}}
		frames[i] = encode(req, 1)
	}
	return closedLoop(t, frames, conns, 1, d, func(b []byte) error {
		if code := binary.BigEndian.Uint16(b[len(b)-3:]); code != 0 {
			return fmt.Errorf("fetch: code %d", code)
		}
		return nil
	})
}
