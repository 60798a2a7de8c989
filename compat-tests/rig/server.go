// Package rig runs Rollcall and the members of consumer groups as processes, so that
// tests can stop, kill and restart each of them.
package rig

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// build compiles a package of this module or of Rollcall once per test process.
func build(pkg string, cgo bool) (string, error) {
	dir, err := os.MkdirTemp("", "rollcall-rig")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-o", bin, pkg)
	cmd.Env = os.Environ()
	if pkg == rollcallPkg {
		// In its own module, the one around this, so with the dependencies that it is
		// released with.
		dir, err := moduleDir()
		if err != nil {
			return "", err
		}
		cmd.Dir = filepath.Dir(dir)
	}
	if !cgo {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return bin, nil
}

const (
	rollcallPkg = "github.com/rollcall-mq/rollcall/cmd/rollcall"
	memberPkg   = "github.com/rollcall-mq/rollcall/compat-tests/member"
	rdkafkaPkg  = "github.com/rollcall-mq/rollcall/compat-tests/member-rdkafka"
)

var (
	rollcallBin = sync.OnceValues(func() (string, error) { return build(rollcallPkg, false) })
	memberBin   = sync.OnceValues(func() (string, error) { return build(memberPkg, false) })
	rdkafkaBin  = sync.OnceValues(func() (string, error) { return build(rdkafkaPkg, true) })
)

// Server is one Rollcall process, or Kafka at the address in ROLLCALL_COMPAT_ADDR.
type Server struct {
	// Addr is the Kafka listener and Admin the HTTP one, once it listens.
	Addr, Admin string
	// Dir is the data directory.
	Dir string

	t        testing.TB
	env      []string
	cmd      *exec.Cmd
	exited   chan error
	external bool
	log      logTail
}

// Start runs a server with its own data directory. env are ROLLCALL_… settings on
// top of a short initial rebalance delay and topics created on first use.
func Start(t testing.TB, env ...string) *Server {
	t.Helper()
	return StartIn(t, filepath.Join(t.TempDir(), "data"), env...)
}

// StartIn is Start with a data directory that the test names.
func StartIn(t testing.TB, dir string, env ...string) *Server {
	t.Helper()
	if addr := os.Getenv("ROLLCALL_COMPAT_ADDR"); addr != "" {
		s := &Server{Addr: addr, t: t, external: true}
		warm(t, addr)
		return s
	}
	s := &Server{Addr: "127.0.0.1:0", Admin: "127.0.0.1:0", Dir: dir, t: t}
	s.env = append([]string{
		"ROLLCALL_GROUP_INITIAL_REBALANCE_DELAY_MS=500", "ROLLCALL_GROUP_MIN_SESSION_TIMEOUT_MS=100",
		"ROLLCALL_AUTO_CREATE_TOPICS_ENABLE=true", "ROLLCALL_STORE_MIN_FREE_BYTES=1",
	}, env...)
	s.Restart()
	t.Cleanup(func() {
		if s.cmd != nil {
			s.Stop()
		}
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", s.log.String())
		}
	})
	return s
}

// warm makes a new Kafka create its offsets topic.
func warm(t testing.TB, addr string) {
	t.Helper()
	adm := Admin(t, addr)
	Eventually(t, 20*time.Second, "the coordinator answers", func() error {
		_, err := adm.FetchOffsets(t.Context(), "warm")
		return err
	})
}

// External tells whether the server is not ours to stop.
func (s *Server) External() bool { return s.external }

// Log returns the newest lines of the server's log.
func (s *Server) Log() string { return s.log.String() }

// Restart starts the process again, on the same addresses and data.
func (s *Server) Restart() {
	s.t.Helper()
	bin, err := rollcallBin()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(bin, "serve", "--listen", s.Addr, "--admin", s.Admin, "--data-dir", s.Dir, "--log-format", "json")
	s.cmd.Env = append(os.Environ(), s.env...)
	pipe, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	listening := make(chan [2]string, 2)
	s.exited = make(chan error, 1)
	go func(cmd *exec.Cmd, exited chan error) {
		s.readLog(bufio.NewScanner(pipe), listening)
		exited <- cmd.Wait()
	}(s.cmd, s.exited)
	for seen := 0; seen < 2; seen++ {
		select {
		case l := <-listening:
			if l[0] == "http" {
				s.Admin = l[1]
			} else {
				s.Addr = l[1]
			}
		case err := <-s.exited:
			s.t.Fatalf("the server did not start: %v\n%s", err, s.log.String())
		case <-time.After(30 * time.Second):
			s.t.Fatalf("the server does not say where it listens\n%s", s.log.String())
		}
	}
	Eventually(s.t, 30*time.Second, "the server is ready", func() error {
		resp, err := http.Get("http://" + s.Admin + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz is %s", resp.Status)
		}
		return nil
	})
}

func (s *Server) readLog(lines *bufio.Scanner, listening chan<- [2]string) {
	lines.Buffer(make([]byte, 1<<16), 1<<22)
	for lines.Scan() {
		s.log.add(lines.Text())
		var l struct{ Msg, On, Address string }
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Msg == "listening" {
			select {
			case listening <- [2]string{l.On, l.Address}:
			default:
			}
		}
	}
}

// MustNotStart starts the stopped server with other settings and returns what it says
// when it refuses them.
func (s *Server) MustNotStart(env ...string) string {
	s.t.Helper()
	bin, err := rollcallBin()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(bin, "serve", "--listen", s.Addr, "--admin", s.Admin, "--data-dir", s.Dir)
	cmd.Env = append(append(os.Environ(), s.env...), env...)
	cmd.WaitDelay = 10 * time.Second
	timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	if err == nil {
		s.t.Errorf("the server started with %v", env)
	}
	return string(out)
}

// Kill ends the process with SIGKILL.
func (s *Server) Kill() {
	s.t.Helper()
	_ = s.cmd.Process.Kill()
	<-s.exited
	s.cmd = nil
}

// MustFail waits until the process ends by itself, which must be with an error, and
// returns what it has logged.
func (s *Server) MustFail(within time.Duration) string {
	s.t.Helper()
	select {
	case err := <-s.exited:
		if err == nil {
			s.t.Errorf("the server ended without an error\n%s", s.log.String())
		}
	case <-time.After(within):
		s.t.Errorf("the server goes on\n%s", s.log.String())
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
	s.cmd = nil
	return s.log.String()
}

// Stop ends the process with SIGTERM and checks that it exits with 0 within 5 s.
func (s *Server) Stop() {
	s.t.Helper()
	began := time.Now()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.exited:
		if err != nil {
			s.t.Errorf("the server stopped with %v\n%s", err, s.log.String())
		}
		if d := time.Since(began); d > 5*time.Second {
			s.t.Errorf("the server took %v to stop", d)
		}
	case <-time.After(15 * time.Second):
		s.t.Errorf("the server does not stop\n%s", s.log.String())
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
	s.cmd = nil
}

// logTail keeps the newest lines of a log.
type logTail struct {
	mu    sync.Mutex
	lines []string
}

func (l *logTail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 400 {
		l.lines = append(l.lines[:0], l.lines[200:]...)
	}
	l.lines = append(l.lines, line)
}

func (l *logTail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// Steady fails the test if f returns an error within d.
func Steady(t testing.TB, d time.Duration, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(d)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(deadline) {
		if err := f(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		<-tick.C
	}
}

// Eventually waits until f returns nil and fails the test when it does not in time.
// Other processes decide when that is, so it has to ask again and again.
func Eventually(t testing.TB, timeout time.Duration, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, timeout, err)
		}
		<-tick.C
	}
}
