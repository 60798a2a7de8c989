package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/config"
	"github.com/rollcall-mq/rollcall/cmd/rollcall/node"
	"github.com/rollcall-mq/rollcall/gateway"
)

// start runs a gateway in memory, but for its sockets, and returns its address.
func start(t *testing.T) string {
	t.Helper()
	flags := map[string]config.Flag{}
	for key, value := range map[string]string{
		"listeners": "127.0.0.1:0", "admin.listen": "", "data.dir": "data", "group.initial.rebalance.delay.ms": "0",
		"auto.create.topics.enable": "false",
	} {
		flags[key] = config.Flag{Name: key, Value: value}
	}
	c, _, err := config.Load(config.Input{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	var addr string
	n, err := node.Start(t.Context(), node.Options{
		Config: c, Version: "test", Log: zap.NewNop(), FS: vfs.NewMem(),
		Listen: func(ctx context.Context, e gateway.Endpoint) (net.Listener, error) {
			l, err := gateway.Listen(ctx, e)
			if err == nil {
				addr = l.Addr().String()
			}
			return l, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Run()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return addr
}

// small measures everything, a moment each.
var small = Config{
	Rounds: 2, Time: 20 * time.Millisecond, Connections: []int{1, 3}, Depths: []int{1, 4}, Partitions: 3, FetchGroups: []int{1, 5},
	Joins: []Join{{7, 1}, {11, 3}}, IdleConnections: 5, IdleGroups: 70,
}

// TestRun measures everything and finds the server as it was before.
func TestRun(t *testing.T) {
	addr := start(t)
	var got []Result
	targets := []Target{{Name: "a", Addr: addr}, {Name: "b", Addr: addr}}
	if err := Run(t.Context(), small, targets, func(rs []Result) { got = append(got, rs...) }); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, r := range got {
		if r.Error != "" || r.PerSecond <= 0 || r.P50 <= 0 || r.P99 < r.P50 {
			t.Errorf("%+v", r)
		}
		if want := targets[i%2].Name; r.Server != want {
			t.Errorf("result %d is of %s, want %s", i, r.Server, want)
		}
		if idle := strings.HasPrefix(r.Load, "idle-"); r.Rounds != 2 && !idle || r.Rounds != 1 && idle {
			t.Errorf("%s: %d rounds", r.Load, r.Rounds)
		}
		if i%2 == 0 {
			names = append(names, r.Load)
		}
	}
	want := strings.Fields("idle-connections/5 idle-groups/70 commit/1/1 commit/3/1 commit/1/4 commit/3/4 heartbeat/1 heartbeat/3 " +
		"fetch/1/1 fetch/3/1 fetch/1/5 fetch/3/5 join/7x1 join/11x3")
	if !slices.Equal(names, want) {
		t.Errorf("loads\n%v, want\n%v", names, want)
	}
	if left := inventory(t, addr); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// TestLowestVersions does the same with the lowest versions that the gateway has.
func TestLowestVersions(t *testing.T) {
	addr := start(t)
	s, err := open(t.Context(), Target{Name: "old", Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	for key, v := range s.versions {
		s.versions[key] = versions{v.low, max(v.low, spoken[key].low)}
	}
	for _, l := range small.loads() {
		_, err := l.run(t.Context(), s)
		if l.name == "fetch/1/5" || l.name == "fetch/3/5" {
			if err == nil || !strings.Contains(err.Error(), "of several groups only since 8") {
				t.Errorf("%s: %v", l.name, err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", l.name, err)
		}
	}
	if err := s.cleanUp(t.Context()); err != nil {
		t.Error(err)
	}
	if left := inventory(t, addr); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// TestInterrupted ends a run in the middle; it cleans up all the same.
func TestInterrupted(t *testing.T) {
	addr := start(t)
	long := small
	long.Loads, long.Time = []string{"commit", "heartbeat"}, time.Minute
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for inventory(t, addr) == "" {
			<-tick.C
		}
		cancel(stop)
	}()
	if err := Run(ctx, long, []Target{{Name: "a", Addr: addr}}, func(rs []Result) { t.Errorf("%v", rs) }); !errors.Is(err, stop) {
		t.Errorf("%v, want %v", err, stop)
	}
	if left := inventory(t, addr); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// inventory lists the topics and the groups of a server.
func inventory(t *testing.T, addr string) string {
	t.Helper()
	c, err := (&server{}).dial(context.Background(), addr)
	if err != nil {
		t.Error(err)
		return "?"
	}
	defer c.close()
	var found []string
	for _, req := range []kmsg.Request{&kmsg.MetadataRequest{}, &kmsg.ListGroupsRequest{}} {
		b, err := c.exchange(encode(req))
		if err != nil {
			t.Error(err)
			return "?"
		}
		answer, err := decode(req, b)
		if err != nil {
			t.Error(err)
		}
		switch resp := answer.(type) {
		case *kmsg.MetadataResponse:
			for _, topic := range resp.Topics {
				found = append(found, "topic "+*topic.Topic)
			}
		case *kmsg.ListGroupsResponse:
			for _, g := range resp.Groups {
				found = append(found, "group "+g.Group)
			}
		}
	}
	return strings.Join(found, ", ")
}

// stub answers every request with the same body, or hangs up if there is none.
func stub(t *testing.T, body []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				head := make([]byte, 12)
				if _, err := io.ReadFull(nc, head); err != nil || body == nil {
					return
				}
				answer := binary.BigEndian.AppendUint32(nil, uint32(4+len(body)))
				_, _ = nc.Write(append(append(answer, head[8:]...), body...)) // the client may be gone
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

// TestNotKafka has servers that cannot be measured, and what is said of them.
func TestNotKafka(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for _, test := range []struct{ addr, want string }{
		{closed.Addr().String(), "x: cannot connect to " + closed.Addr().String() + ": connect: connection refused"},
		{stub(t, nil), "does not answer ApiVersions as a Kafka server does: the server closed the connection"},
		{stub(t, []byte{0, 35}), "does not answer ApiVersions as a Kafka server does: UNSUPPORTED_VERSION"},
		{stub(t, []byte{0, 0, 1}), "does not answer ApiVersions as a Kafka server does: ApiVersions: the answer cannot be read"},
	} {
		err := Run(t.Context(), small, []Target{{Name: "x", Addr: test.addr}}, nil)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v\nwant …%s…", err, test.want)
		}
	}
}

// TestOtherVersions has requests that both sides have, but not at the same versions.
func TestOtherVersions(t *testing.T) {
	s := &server{versions: map[int16]versions{offsetCommitKey: {0, 1}, heartbeatKey: {2, 9}}}
	for _, test := range []struct {
		req  kmsg.Request
		want string
	}{
		{kmsg.NewPtrOffsetCommitRequest(), "the server speaks OffsetCommit 0 to 1, this command 2 to 9"},
		{kmsg.NewPtrJoinGroupRequest(), "the server does not support JoinGroup"},
	} {
		if err := s.version(test.req); err == nil || err.Error() != test.want {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	if err := s.version(beat); err != nil || beat.Version != 4 {
		t.Errorf("version %d, %v", beat.Version, err)
	}
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]Target{
		"127.0.0.1:9092":      {Name: "127.0.0.1:9092", Addr: "127.0.0.1:9092"},
		"k=localhost:1@77":    {Name: "k", Addr: "localhost:1", PID: 77},
		"six=[::1]:9092":      {Name: "six", Addr: "[::1]:9092"},
		"":                    {},
		"localhost":           {},
		":9092":               {},
		"=localhost:9092":     {},
		"localhost:http":      {},
		"localhost:70000":     {},
		"localhost:9092@x":    {},
		"k=localhost:9092@-1": {},
	} {
		got, err := ParseTarget(text)
		if got != want || (err == nil) != (want != Target{}) {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("%q is not in %q", text, err)
		}
	}
}

// TestHistogram compares with the exact quantiles.
func TestHistogram(t *testing.T) {
	var a, b histogram
	for us := 1; us <= 100_000; us++ {
		h := &a
		if us%3 == 0 {
			h = &b
		}
		h.add(time.Duration(us) * time.Microsecond)
	}
	a.merge(&b)
	for q, want := range map[float64]float64{0.001: 100, 0.5: 50_000, 0.99: 99_000} {
		if got := a.quantile(q); got < want*0.984 || got > want*1.016 {
			t.Errorf("quantile %v is %v µs, want about %v", q, got, want)
		}
	}
	for i := range histogramBuckets {
		if got := bucketOf(time.Duration(lowest(i))); got != i {
			t.Fatalf("%d ns, the lowest of bucket %d, is in bucket %d", lowest(i), i, got)
		}
	}
	a.add(1000 * time.Hour) // longer than the last bucket
	a.add(-1)
}

// TestMedian has the order of the servers change and rounds that differ.
func TestMedian(t *testing.T) {
	var order []string
	rates := []float64{5, 1, 9, 2}
	l := load{name: "x", run: func(_ context.Context, s *server) (sample, error) {
		order = append(order, s.name)
		if s.name == "broken" && len(order) > 2 {
			return sample{}, errors.New("it\nbroke")
		}
		return sample{perSecond: rates[(len(order)-1)/2%4], latency: &histogram{}}, nil
	}}
	rs := measure(t.Context(), Config{Rounds: 4}, l, []*server{{name: "good"}, {name: "broken"}})
	if got := strings.Join(order, " "); got != "good broken broken good good good" {
		t.Errorf("order %s", got)
	}
	if rs[0].Rounds != 4 || rs[0].Error != "" || rs[1].Rounds != 1 || rs[1].Error != "it; broke" {
		t.Errorf("%+v", rs)
	}
	if m := median([]sample{{perSecond: 5}, {perSecond: 1}, {perSecond: 9}, {perSecond: 2}}, func(s sample) float64 { return s.perSecond }); m != 3.5 {
		t.Errorf("median %v", m)
	}
}

// TestProcess finds this process by the port that it listens on.
func TestProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := findProcess(l.Addr().String())
	if p == nil {
		t.Skip("there is no /proc to look into")
	}
	m := p.meter()
	for used := 0.0; used < 20_000; used = *m.used(1) {
		if *m.used(2) > *m.used(1) {
			t.Fatal("half of it is more")
		}
	}
	if _, err := openProcess(p.proc.PID); err != nil {
		t.Error(err)
	}
	if findProcess("192.0.2.1:9092") != nil {
		t.Error("a process of another machine was found here")
	}
}
