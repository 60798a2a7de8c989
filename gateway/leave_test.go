package gateway

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// largeJoinGroup is a JoinGroup with so many bytes of metadata.
func largeJoinGroup(correlationID int32, bytes int) []byte {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group = 9, "group"
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", make([]byte, bytes)
	req.Protocols = append(req.Protocols, p)
	return request(correlationID, req)
}

// What a request that waits for its answer has of the budget is free again when its
// client goes away, although nobody answers it: whoever waits in line for it is served.
func TestMemoryOfARequestWhoseClientLeaves(t *testing.T) {
	s := loopback(t, func(cfg *Config) {
		cfg.FrameBytesMax, cfg.QueuedBytesMax = 1<<20, 1<<20
	})
	c, other := s.dial(t), s.dial(t)
	go c.send(commit(1, 400_000))
	first := s.desk.next(t)
	if used := s.QueuedBytes(); used < 380_000 {
		t.Errorf("%d bytes are reserved for a request of 400000", used)
	}
	go other.send(commit(2, 400_000))
	until(t, "the other stands in line", func() bool {
		s.limits.mu.Lock()
		defer s.limits.mu.Unlock()
		return len(s.limits.line) == 1
	})
	c.nc.Close()
	select {
	case gone := <-s.desk.gone:
		if gone != first {
			t.Error("another call was abandoned")
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the call was not abandoned")
	}
	s.desk.next(t).Done()
	other.expect(2)
	until(t, "all is given back", func() bool { return s.QueuedBytes() == 0 })
	first.Done() // comes late, and gives nothing back twice
	if used := s.QueuedBytes(); used != 0 {
		t.Errorf("%d bytes are reserved after the late answer", used)
	}
}

// Who speaks TLS or HTTP to the port finds in the log which listener that was and
// from where it came.
func TestWrongProtocolIsNamedInTheLog(t *testing.T) {
	for _, tc := range []struct{ name, bytes, reason string }{
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ReasonTLS.String()},
		{"HTTP", "GET / HTTP/1.1\r\n\r\n", ReasonHTTP.String()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := loopback(t, nil)
			c := s.dial(t)
			c.send([]byte(tc.bytes))
			c.expectClosed()
			s.closings.next(t)
			lines := s.logs.TakeAll()
			if len(lines) != 1 {
				t.Fatalf("logged %v, want one line", lines)
			}
			want := map[string]string{"reason": tc.reason, "listener": "PLAINTEXT", "conn": c.nc.LocalAddr().String()}
			for field, value := range want {
				if got := lines[0].ContextMap()[field]; got != value {
					t.Errorf("%s is %v in the log, want %s", field, got, value)
				}
			}
		})
	}
}
