package gateway

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestParseEndpoints(t *testing.T) {
	for _, tc := range []struct{ list, want string }{
		{"PLAINTEXT://127.0.0.1:9092", "[PLAINTEXT://127.0.0.1:9092]"},
		{"PLAINTEXT://:9092", "[PLAINTEXT://:9092]"},
		{"internal://localhost:0, External_2://[2001:db8::1]:9093", "[INTERNAL://localhost:0 EXTERNAL_2://[2001:db8::1]:9093]"},
		{"A://h:1,a://h:2", "used twice"},
		{"", "must look like"},
		{"127.0.0.1:9092", "must look like"},
		{"://127.0.0.1:9092", "must look like"},
		{"A B://h:1", "other characters"},
		{"SSL://h:1", "not supported"},
		{"sasl_plaintext://h:1", "not supported"},
		{"A://h", "missing port"},
		{"A://h:http", "not a port"},
		{"A://h:65536", "not a port"},
		{"A://h:-1", "not a port"},
	} {
		endpoints, err := ParseEndpoints(tc.list)
		got := fmt.Sprint(endpoints)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%q: %s, want %s", tc.list, got, tc.want)
		}
	}
}

func TestAdvertise(t *testing.T) {
	for _, tc := range []struct{ listeners, advertised, want string }{
		{"A://127.0.0.1:1", "", "[A://127.0.0.1:1]"},
		{"A://0.0.0.0:1", "A://kafka.example:2", "[A://kafka.example:2]"},
		{"A://0.0.0.0:1,B://localhost:2", "A://localhost:0", "[A://localhost:1 B://localhost:2]"},
		{"A://:1", "", "set advertised.listeners"},
		{"A://[::]:1", "", "set advertised.listeners"},
		{"A://0.0.0.0:1", "A://0.0.0.0:1", "wildcard"},
		{"A://h:1", "B://h:1", "no listener B"},
	} {
		listeners, err := ParseEndpoints(tc.listeners)
		if err != nil {
			t.Fatal(err)
		}
		var advertised []Endpoint
		if tc.advertised != "" {
			if advertised, err = ParseEndpoints(tc.advertised); err != nil {
				t.Fatal(err)
			}
		}
		result, err := Advertise(listeners, advertised)
		got := fmt.Sprint(result)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s advertised as %q: %s, want %s", tc.listeners, tc.advertised, got, tc.want)
		}
	}
}

// A port 0 becomes a real one, and a session knows its listener and its peer.
func TestListeners(t *testing.T) {
	sessions := make(chan *api.Session, 2)
	s := loopback(t, func(cfg *Config) {
		cfg.Entries[0].Handle = func(c *api.Call) {
			sessions <- c.Session
			c.Respond(kmsg.NewPtrHeartbeatResponse())
		}
	})
	endpoint := Endpoint{Name: "OTHER", Host: "127.0.0.1"}
	ln, err := Listen(context.Background(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	if endpoint = Bound(endpoint, ln); endpoint.Port == 0 {
		t.Fatal("the port is still 0")
	}
	if _, err := Listen(context.Background(), endpoint); err == nil || !strings.Contains(err.Error(), endpoint.String()) {
		t.Errorf("listening twice: %v", err)
	}
	served := make(chan error)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { served <- s.Serve(ctx, endpoint.Name, ln) }()
	for _, want := range []struct{ name, address string }{{"PLAINTEXT", s.ln.Addr().String()}, {"OTHER", endpoint.Address()}} {
		nc, err := net.DialTimeout("tcp", want.address, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := nc.Write(heartbeat(1, 0)); err != nil {
			t.Fatal(err)
		}
		if got := <-sessions; got.Listener != want.name || got.Host != "/127.0.0.1" || got.Principal != "User:ANONYMOUS" {
			t.Errorf("session %+v on listener %s", got, want.name)
		}
	}
	cancel()
	if err := <-served; err != ErrServerClosed {
		t.Errorf("Serve returned %v", err)
	}
}

func TestJavaHost(t *testing.T) {
	for _, tc := range []struct {
		addr net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}, "/10.0.0.1"},
		{&net.TCPAddr{IP: net.ParseIP("::ffff:10.0.0.1"), Port: 5}, "/10.0.0.1"},
		{&net.TCPAddr{IP: net.ParseIP("::1"), Port: 5}, "/0:0:0:0:0:0:0:1"},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::ff00:42"), Port: 5}, "/2001:db8:0:0:0:0:ff00:42"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 5, Zone: "eth0"}, "/fe80:0:0:0:0:0:0:1%eth0"},
		{&net.UnixAddr{Name: "pipe"}, "/pipe"},
		{nil, "/"},
	} {
		if got := javaHost(tc.addr); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.addr, got, tc.want)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, tc := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.FrameBytesMax = 1 << 29 }, "queued.max.request.bytes"},
		{func(c *Config) { c.FrameBytesMax = 100 }, "socket.request.max.bytes"},
		{func(c *Config) { c.FrameBytesMax = 2 << 30 }, "socket.request.max.bytes"},
		{func(c *Config) { c.ConnectionsMax = -1 }, "max.connections"},
		{func(c *Config) { c.IdleMax = -1 }, "connections.max.idle.ms"},
		{func(c *Config) { c.WriteStallMax = -1 }, "negative"},
		{func(c *Config) { c.Entries = []api.Entry{{Key: 12, Max: 99}} }, "API key 12"},
	} {
		cfg := Config{Entries: newDesk().entries()}
		tc.change(&cfg)
		_, err := New(cfg, nil)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
	}
}

func TestCloseReasonsHaveTexts(t *testing.T) {
	seen := map[string]bool{"unknown": true, "": true}
	for _, r := range CloseReasons() {
		if seen[r.String()] {
			t.Errorf("reason %d has the text %q", r, r)
		}
		seen[r.String()] = true
	}
}

// The code of a request for metrics: its own, or the first one in its parts.
func TestCodeOfResponses(t *testing.T) {
	entry := func(key int16) api.Entry { return api.Entry{Key: key, Min: 4, Max: 4} }
	s, err := New(Config{Entries: []api.Entry{entry(11), entry(8), entry(13), {Key: 15, Min: 0, Max: 5}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	partitions := func(codes ...int16) (all []kmsg.OffsetCommitResponseTopicPartition) {
		for _, code := range codes {
			all = append(all, kmsg.OffsetCommitResponseTopicPartition{ErrorCode: code})
		}
		return all
	}
	for _, tc := range []struct {
		resp kmsg.Response
		want int16
	}{
		{nil, 0},
		{&kmsg.JoinGroupResponse{}, 0},
		{&kmsg.JoinGroupResponse{ErrorCode: 25}, 25},
		{&kmsg.OffsetCommitResponse{}, 0},
		{&kmsg.OffsetCommitResponse{Topics: []kmsg.OffsetCommitResponseTopic{{Partitions: partitions(0, 0)}, {Partitions: partitions(0, 3, 4)}}}, 3},
		{&kmsg.LeaveGroupResponse{Members: []kmsg.LeaveGroupResponseMember{{}, {ErrorCode: 82}}}, 82},
		{&kmsg.LeaveGroupResponse{ErrorCode: 25, Members: []kmsg.LeaveGroupResponseMember{{ErrorCode: 82}}}, 25},
		{&kmsg.DescribeGroupsResponse{Groups: []kmsg.DescribeGroupsResponseGroup{{ErrorCode: 14}}}, 14},
	} {
		if got := s.codeOf(tc.resp); got != tc.want {
			t.Errorf("%T: code %d, want %d", tc.resp, got, tc.want)
		}
	}
}

func BenchmarkCodeOfOffsetCommit(b *testing.B) {
	s, err := New(Config{Entries: []api.Entry{{Key: 8, Min: 2, Max: 9}}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	resp := &kmsg.OffsetCommitResponse{Topics: []kmsg.OffsetCommitResponseTopic{{Partitions: make([]kmsg.OffsetCommitResponseTopicPartition, 10)}}}
	b.ReportAllocs()
	for b.Loop() {
		if s.codeOf(resp) != 0 {
			b.Fatal("a code")
		}
	}
}

// FuzzParseEndpoints reads anything as a list of listeners. What is read is written in
// a form that is read as the same.
func FuzzParseEndpoints(f *testing.F) {
	f.Add("PLAINTEXT://127.0.0.1:9092, other://[::1]:0")
	f.Add("A://:1,B://h:65536")
	f.Fuzz(func(t *testing.T, list string) {
		endpoints, err := ParseEndpoints(list)
		if err != nil {
			return
		}
		var texts []string
		for _, e := range endpoints {
			texts = append(texts, e.String())
		}
		again, err := ParseEndpoints(strings.Join(texts, ","))
		if err != nil || !slices.Equal(again, endpoints) {
			t.Errorf("%q is read as %+v, which is read as %+v, %v", list, endpoints, again, err)
		}
	})
}
