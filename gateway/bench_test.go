package gateway

import (
	"context"
	"encoding/binary"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

// echo answers each frame with its own bytes: the least that a server with one
// goroutine per connection and one buffer can do.
func echo(ln net.Listener) {
	for {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer nc.Close()
			buf := make([]byte, 64<<10)
			have := 0
			for {
				n, err := nc.Read(buf[have:])
				if err != nil {
					return
				}
				have += n
				whole := 0
				for have-whole >= 4 && have-whole >= 4+int(binary.BigEndian.Uint32(buf[whole:])) {
					whole += 4 + int(binary.BigEndian.Uint32(buf[whole:]))
				}
				if _, err := nc.Write(buf[:whole]); err != nil {
					return
				}
				have = copy(buf, buf[whole:have])
			}
		}()
	}
}

// benchServer is a server whose Heartbeats are answered by another goroutine, as a
// shard does, or at once.
func benchServer(b *testing.B, awaited bool) net.Listener {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	inbox := make(chan *api.Call, 1024)
	go func() {
		for call := range inbox {
			call.Done()
		}
	}()
	resp := func() kmsg.Response { return kmsg.NewPtrHeartbeatResponse() }
	handle := func(c *api.Call) { c.Respond(resp()) }
	if awaited {
		handle = func(c *api.Call) {
			c.Await(1, resp)
			inbox <- c
		}
	}
	s, err := New(Config{Entries: []api.Entry{{Key: 12, Max: 4, Handle: handle}}}, zap.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	go s.Serve(context.Background(), "PLAINTEXT", ln)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			b.Error(err)
		}
		close(inbox)
	})
	return ln
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEcho compares the server with a bare echo, both over loopback with clients
// in the same process that send so many requests and then read the answers. cpu-µs/req is
// the CPU time of both ends.
func BenchmarkEcho(b *testing.B) {
	bare, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	go echo(bare)
	for _, burst := range []struct {
		name string
		n    int
	}{{"one", 1}, {"sixteen", 16}} {
		b.Run(burst.name, func(b *testing.B) {
			b.Run("bare", func(b *testing.B) { benchmarkBursts(b, bare, burst.n) })
			b.Run("at_once", func(b *testing.B) { benchmarkBursts(b, benchServer(b, false), burst.n) })
			b.Run("awaited", func(b *testing.B) { benchmarkBursts(b, benchServer(b, true), burst.n) })
		})
	}
}

func benchmarkBursts(b *testing.B, ln net.Listener, n int) {
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	var burst []byte
	for range n {
		burst = append(burst, heartbeat(1, 0)...)
	}
	answers := make([]byte, len(burst))
	round := func() int {
		if _, err := nc.Write(burst); err != nil {
			b.Fatal(err)
		}
		requests, have := 0, 0
		for requests < n {
			got, err := nc.Read(answers[have:])
			if err != nil {
				b.Fatal(err)
			}
			have += got
			whole := 0
			for have-whole >= 4 && have-whole >= 4+int(binary.BigEndian.Uint32(answers[whole:])) {
				whole += 4 + int(binary.BigEndian.Uint32(answers[whole:]))
				requests++
			}
			have = copy(answers, answers[whole:have])
		}
		return requests
	}
	round()
	b.ReportAllocs()
	b.ResetTimer()
	start := cpuTime(b)
	for done := 0; done < b.N; {
		done += round()
	}
	b.ReportMetric(float64((cpuTime(b)-start).Nanoseconds())/1000/float64(b.N), "cpu-µs/req")
}

// An idle connection that has asked once takes less than 8 KiB in all: heap and
// stack of the server's side (the clients are bare sockets).
func TestIdleConnectionsAreSmall(t *testing.T) {
	const connections, most = 5000, 8 << 10
	needed := uint64(2*connections + 200)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < needed {
		t.Skipf("%d open files are allowed, %d are needed", limit.Cur, needed)
	}
	s := loopback(t, nil)
	before := memoryInUse()
	sockets := make([]int, 0, connections)
	defer func() {
		for _, fd := range sockets {
			syscall.Close(fd)
		}
	}()
	frame, answer := heartbeat(1, 0), make([]byte, 100)
	to := &syscall.SockaddrInet4{Port: s.ln.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	for range connections {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		sockets = append(sockets, fd)
		if err = syscall.Connect(fd, to); err == nil {
			_, err = syscall.Write(fd, frame)
		}
		if err == nil {
			_, err = syscall.Read(fd, answer)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	each := (memoryInUse() - before) / connections
	t.Logf("%d bytes for an idle connection", each)
	if each > most {
		t.Errorf("%d bytes for an idle connection, at most %d", each, most)
	}
}

// memoryInUse is the heap and the stacks after what can be freed is.
func memoryInUse() int64 {
	var m runtime.MemStats
	for range 4 { // pools are emptied and stacks shrunk in steps
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
