package gateway

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestRequestsAreAnsweredInOrder(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	c.send(heartbeat(1, 0), commit(2, 10), heartbeat(3, 0), commit(4, 10))
	first, second := s.desk.next(t), s.desk.next(t)
	c.expect(1)
	second.Done()
	c.expectSilence()
	first.Done()
	c.expect(2, 3, 4)
}

// Correlation ids are the client's own business.
func TestEqualCorrelationIDs(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	c.send(heartbeat(7, 1), commit(7, 10), heartbeat(7, 2), heartbeat(-1, 3))
	s.desk.next(t).Done()
	for _, code := range []int16{1, -1, 2, 3} {
		frame := c.receive()
		if code >= 0 && int16(binary.BigEndian.Uint16(frame[len(frame)-3:])) != code {
			t.Errorf("response %x, want one with code %d", frame, code)
		}
	}
}

func TestHeldRequestStopsTheConnection(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	c.send(joinGroup(1), commit(2, 10))
	join := s.desk.next(t)
	c.expectSilence()
	c.send(heartbeat(3, 0))
	c.expectSilence()
	select {
	case <-s.desk.arrived:
		t.Fatal("a request was started behind one that is held")
	default:
	}
	join.Done()
	c.expect(1)
	s.desk.next(t).Done()
	c.expect(2, 3)
}

// A request that may be held waits for those before it to be answered, not the other
// way round: answering them does not let go what comes after it.
func TestHeldRequestBehindOthers(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	c.send(commit(1, 10), joinGroup(2), commit(3, 10))
	first, join := s.desk.next(t), s.desk.next(t)
	first.Done()
	c.expect(1)
	c.expectSilence()
	select {
	case <-s.desk.arrived:
		t.Fatal("a request was started behind one that is held")
	default:
	}
	join.Done()
	c.expect(2)
	s.desk.next(t).Done()
	c.expect(3)
}

func TestClientThatGoesAwayIsNoticed(t *testing.T) {
	for name, leave := range map[string]func(c *client){
		"close": func(c *client) { c.nc.Close() },
		"reset": func(c *client) {
			c.nc.(interface{ SetLinger(int) error }).SetLinger(0)
			c.nc.Close()
		},
		"close with frames in between": func(c *client) {
			c.send(heartbeat(5, 0), heartbeat(6, 0))
			c.nc.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := loopback(t, nil)
			c := s.dial(t)
			c.send(joinGroup(4))
			join := s.desk.next(t)
			c.expectSilence()
			leave(c)
			if gone := <-s.desk.gone; gone != join {
				t.Error("another call was abandoned")
			}
			if reason := s.closings.next(t); reason != ReasonClientClosed && reason != ReasonNetwork {
				t.Errorf("closed because of %v", reason)
			}
			if join.Context().Err() == nil {
				t.Error("its context goes on")
			}
			join.Done() // comes late, and finds nobody
		})
	}
}

// While a request is held only what there is room for is read; it is not lost.
func TestReadAheadOfAHeldRequestIsBounded(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	c.send(joinGroup(0))
	join := s.desk.next(t)
	var frames [][]byte
	var ids []int32
	for i := range int32(300) { // about 15 KB
		frames, ids = append(frames, heartbeat(1+i, 0)), append(ids, 1+i)
	}
	c.send(frames...)
	c.expectSilence()
	join.Done()
	c.expect(append([]int32{0}, ids...)...)
}

func TestNoMoreThanSoManyInFlight(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	var frames [][]byte
	for i := range int32(2 * inFlightMax) {
		frames = append(frames, commit(i, 10))
	}
	c.send(frames...)
	var calls []*api.Call
	for range inFlightMax {
		calls = append(calls, s.desk.next(t))
	}
	c.expectSilence()
	select {
	case <-s.desk.arrived:
		t.Fatalf("more than %d requests are under way", inFlightMax)
	default:
	}
	for _, call := range calls {
		call.Done()
	}
	for i := range int32(2 * inFlightMax) {
		if i >= inFlightMax {
			s.desk.next(t).Done()
		}
		c.expect(i)
	}
}

func TestNoMoreThanSoManyBytesInFlight(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	const bytes = inFlightBytesMax / 4
	go c.send(commit(0, bytes), commit(1, bytes), commit(2, bytes))
	// Their decoded form counts as well, so the third is too much.
	first, second := s.desk.next(t), s.desk.next(t)
	c.expectSilence()
	select {
	case <-s.desk.arrived:
		t.Fatal("too many bytes are under way")
	default:
	}
	first.Done()
	second.Done()
	s.desk.next(t).Done()
	c.expect(0, 1, 2)
}

// Replies that are ready together leave in one segment.
func TestOneWriteForAllThatIsReady(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	var frames [][]byte
	for i := range int32(20) {
		frames = append(frames, heartbeat(i, 0))
	}
	c.send(frames...)
	buf := make([]byte, 4096)
	n, err := c.nc.Read(buf)
	if one := 4 + 4 + 1 + 4 + 2 + 1; err != nil || n != 20*one {
		t.Errorf("the first read brought %d bytes, want %d (%v)", n, 20*one, err)
	}
}

func TestRequestWithoutResponse(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	produce := kmsg.NewPtrProduceRequest()
	produce.Version = 9
	c.send(heartbeat(1, 0), request(2, produce), heartbeat(3, 0))
	c.expect(1, 3)
	for _, want := range []RequestInfo{{Key: 12, Version: 4, Out: 16}, {Key: 0, Version: 9, Out: 0}, {Key: 12, Version: 4, Out: 16}} {
		got := <-s.closings.requests
		if got.Key != want.Key || got.Version != want.Version || got.Out != want.Out || got.In < 20 || got.Listener != "PLAINTEXT" {
			t.Errorf("told of %+v, want %+v", got, want)
		}
	}
}

func TestHandlerMayRefuse(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	list := kmsg.NewPtrListGroupsRequest()
	c.send(heartbeat(1, 0), request(2, list), heartbeat(3, 0))
	c.expect(1)
	c.expectClosed()
	if reason := s.closings.next(t); reason != ReasonRefused {
		t.Errorf("closed because of %v", reason)
	}
}

// Whatever cannot be read closes its connection, after the replies to what came
// before it; the next connection does not notice.
func TestHostileBytes(t *testing.T) {
	s := loopback(t, nil)
	good := heartbeat(1, 0)
	frame := func(body string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
	}
	for _, tc := range []struct {
		name, bytes string
		reason      CloseReason
		log         string
	}{
		{"negative length", "\xff\xff\xff\xff", ReasonFrameLength, "negative length -1"},
		{"length 0", "\x00\x00\x00\x00", ReasonFrameLength, "shorter than"},
		{"length 7", "\x00\x00\x00\x07", ReasonFrameLength, "shorter than"},
		{"length 104857601", "\x06\x40\x00\x01", ReasonFrameLength, "over the limit of 104857600"},
		{"length 2^31-1", "\x7f\xff\xff\xff", ReasonFrameLength, "2147483647"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ReasonTLS, "TLS on a plain listener"},
		{"HTTP", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", ReasonHTTP, `"GET "`},
		{"unknown key", frame("\x03\xe7\x00\x00\x00\x00\x00\x01\xff\xff"), ReasonUnsupported, "unknown API key 999"},
		{"known to Kafka, not served", frame("\x00\x03\x00\x09\x00\x00\x00\x01\xff\xff\x00\x00\x01\x00\x00\x00"), ReasonUnsupported, "unknown API key 3"},
		{"JoinGroup v99", frame("\x00\x0b\x00\x63\x00\x00\x00\x01\xff\xff\x00"), ReasonUnsupported, "version 99"},
		{"Produce v2", frame("\x00\x00\x00\x02\x00\x00\x00\x01\xff\xff\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"), ReasonUnsupported, "version 2"},
		{"client id past the end", frame("\x00\x0c\x00\x00\x00\x00\x00\x01\x00\x09x"), ReasonMalformed, "ClientId"},
		{"truncated body", frame("\x00\x0c\x00\x00\x00\x00\x00\x01\xff\xff\x00\x05gro"), ReasonMalformed, "GroupId"},
		{"null group", frame("\x00\x0c\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff\x00\x00\x00\x01\x00\x00"), ReasonMalformed, "GroupId"},
		{"2^31-1 protocols", frame("\x00\x0b\x00\x00\x00\x00\x00\x01\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x7f\xff\xff\xff"), ReasonMalformed, "Protocols"},
		{"protocols that need a longer frame", frame("\x00\x0b\x00\x06\x00\x00\x00\x01\xff\xff\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\x01\xff\xff\x07"), ReasonMalformed, "Protocols"},
		{"inflation", frame("\x00\x0c\x00\x04\x00\x00\x00\x01\xff\xff\x00\x02g\x00\x00\x00\x00\x02m\x00" + "\xff\x7f" + strings.Repeat("\x07\x00", 1<<14-1)), ReasonInflated, "memory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.logs.TakeAll()
			s.warnings.lines.Store(0)
			c := s.dial(t)
			c.send(good, []byte(tc.bytes))
			c.expect(1)
			c.expectClosed()
			if reason := s.closings.next(t); reason != tc.reason {
				t.Errorf("closed because of %v, want %v", reason, tc.reason)
			}
			lines := s.logs.TakeAll()
			if len(lines) != 1 || !strings.Contains(lines[0].ContextMap()["error"].(string), tc.log) {
				t.Errorf("logged %v, want one line with %q", lines, tc.log)
			}
			other := s.dial(t)
			other.send(good)
			other.expect(1)
			other.nc.Close()
			s.closings.next(t)
		})
	}
}

// Client ids may be anything; a long one is not kept while the connection is silent.
func TestClientIDs(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	long := strings.Repeat("x", 32767)
	for i, id := range []string{"a", "a", "", long, "\xff\n", "b", long, "b"} {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Version = 2
		c.send(kmsg.NewRequestFormatter(kmsg.FormatterClientID(id)).AppendRequest(nil, req, int32(i)))
		call := s.desk.next(t)
		if call.ClientID != id {
			t.Errorf("client id %.20q, want %.20q", call.ClientID, id)
		}
		call.Done()
		c.expect(int32(i))
	}
	c.send([]byte("\xff\xff\xff\xff"))
	s.expectReason(t, ReasonFrameLength)
	if line := s.logs.TakeAll()[0].ContextMap(); line["client"] != "b" {
		t.Errorf("logged %v", line)
	}
}

// A reply that is still awaited when the hostile frame comes is not lost.
func TestHostileFrameBehindAnAwaitedReply(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	c.send(commit(1, 10), []byte("\xff\xff\xff\xff"))
	call := s.desk.next(t)
	c.expectSilence()
	call.Done()
	c.expect(1)
	c.expectClosed()
}

func TestTrailingBytesAreIgnored(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	frame := append(heartbeat(1, 0), "trailing"...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	c.send(frame, heartbeat(2, 0))
	c.expect(1, 2)
}

func TestApiVersionsTooNewKeepsTheConnection(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	c.send([]byte("\x00\x00\x00\x17\x00\x12\x00\x63\x00\x00\x00\x05\x00\x02me\x00unreadable"))
	if got, want := c.receive(), []byte("\x00\x00\x00\x05\x00\x23\x00\x00\x00\x01\x00\x12\x00\x00\x00\x04"); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	again := kmsg.NewPtrApiVersionsRequest()
	again.Version = 4
	c.send(request(6, again))
	c.expect(6)
}

// Requests of every size arrive in pieces of every size.
func TestLargeRequestsInPieces(t *testing.T) {
	s := loopback(t, nil)
	c := s.dial(t)
	const requests = 60
	r := rand.New(rand.NewPCG(1, 2))
	var stream []byte
	sizes := make([]int, requests)
	for i := range sizes {
		sizes[i] = r.IntN(1 << (2 * (i % 11)))
		stream = append(stream, commit(int32(i), sizes[i])...)
	}
	go func() {
		for len(stream) > 0 {
			n := min(len(stream), 1+r.IntN(1<<r.IntN(20)))
			if _, err := c.nc.Write(stream[:n]); err != nil {
				t.Error(err)
				return
			}
			stream = stream[n:]
		}
	}()
	for i := range int32(requests) {
		call := s.desk.next(t)
		got := 0
		for _, p := range call.Msg.(*kmsg.OffsetCommitRequest).Topics[0].Partitions {
			got += len(*p.Metadata)
		}
		if got != sizes[i] {
			t.Fatalf("request %d has %d bytes of metadata, want %d", i, got, sizes[i])
		}
		call.Done()
		c.expect(i)
	}
	if used := s.QueuedBytes(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
}

// Answers of many connections come from other goroutines at all moments: before the
// connection waits, while it waits on a channel, and around the time at which it
// begins to wait in a read. Some clients leave. Run it with -race.
func TestStress(t *testing.T) {
	s := loopback(t, func(cfg *Config) {
		later := func(resp func() kmsg.Response) func(c *api.Call) {
			return func(c *api.Call) {
				c.Await(2, resp)
				delay := time.Duration(rand.Int64N(int64(3 * headPatience)))
				switch rand.IntN(4) {
				case 0:
					c.Done()
					c.Done()
				case 1:
					go c.Done()
					go c.Done()
				default:
					time.AfterFunc(delay, c.Done)
					time.AfterFunc(delay, c.Done)
				}
			}
		}
		for i := range cfg.Entries {
			switch e := &cfg.Entries[i]; e.Key {
			case 11:
				e.Handle = later(func() kmsg.Response { return kmsg.NewPtrJoinGroupResponse() })
			case 8:
				e.Handle = later(func() kmsg.Response { return kmsg.NewPtrOffsetCommitResponse() })
			}
		}
	})
	var clients sync.WaitGroup
	for n := range 16 {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 7))
			for range 3 {
				talk(t, s.dial(t), r)
			}
		})
	}
	clients.Wait()
}

// talk sends requests in bursts, reads the replies, and at the end stays or leaves
// in the middle.
func talk(t *testing.T, c *client, r *rand.Rand) {
	defer c.nc.Close()
	const requests = 200
	leaves := r.IntN(3) == 0
	window := make(chan struct{}, 1+r.IntN(100)) // how far the client goes ahead
	var frames [][]byte
	for i := range int32(requests) {
		switch r.IntN(8) {
		case 0:
			frames = append(frames, joinGroup(i))
		case 1, 2, 3:
			frames = append(frames, commit(i, 1+int(i)%3000))
		default:
			frames = append(frames, heartbeat(i, 0))
		}
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for _, frame := range frames {
			select {
			case window <- struct{}{}:
			case <-done:
				return
			}
			if _, err := c.nc.Write(frame); err != nil {
				return
			}
		}
	}()
	for i := range int32(requests) {
		if leaves && i == requests/2 {
			return
		}
		var length [4]byte
		if _, err := io.ReadFull(c.r, length[:]); err != nil {
			t.Error(err)
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(c.r, frame); err != nil {
			t.Error(err)
			return
		}
		if got := int32(binary.BigEndian.Uint32(frame)); got != i {
			t.Errorf("response to %d, want %d", got, i)
			return
		}
		<-window
	}
}
