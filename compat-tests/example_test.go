package compat

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// TestREADMEExample: the consumer group that the README shows is example/main.go, and
// it runs.
func TestREADMEExample(t *testing.T) {
	source, err := os.ReadFile("example/main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code := string(source[bytes.Index(source, []byte("package main")):])
	if !strings.Contains(string(readme), code) {
		t.Error("README.md does not show compat-tests/example/main.go from its package clause on")
	}
	srv := rig.Start(t, "ROLLCALL_NUM_PARTITIONS=2")
	rig.CreateTopic(t, rig.Admin(t, srv.Addr), "greetings", 2)
	dir := t.TempDir()
	// The address is all that differs from what a user runs.
	source = bytes.Replace(source, []byte("127.0.0.1:9092"), []byte(srv.Addr), 1)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), source, 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "example")
	if out, err := exec.Command("go", "build", "-o", bin, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out lockedBuffer
	cmd := exec.Command(bin)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	rig.Produce(t, srv.Addr, "greetings", 2, 50*time.Millisecond)
	rig.Eventually(t, 20*time.Second, "the example prints records", func() error {
		if s := out.String(); !strings.Contains(s, "greetings/0@1:") || !strings.Contains(s, "owns map[greetings:[0 1]]") {
			return fmt.Errorf("it printed %q", s)
		}
		return nil
	})
}

// lockedBuffer is a buffer that a process may write to while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestKcat: the four modes of kcat that people type.
func TestKcat(t *testing.T) {
	need(t, "kcat")
	srv := rig.Start(t)
	topic := newTopic(t, srv)
	run := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command("kcat", append([]string{"-b", srv.Addr, "-m", "10"}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		cmd.WaitDelay = time.Second
		timer := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kcat %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := run("", "-L", "-t", topic); !strings.Contains(out, fmt.Sprintf("topic %q with 4 partitions", topic)) {
		t.Errorf("kcat -L: %s", out)
	}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		run(codec+"\n", "-P", "-t", topic, "-p", "1", "-z", codec)
	}
	run("idempotent\n", "-P", "-t", topic, "-p", "1", "-X", "enable.idempotence=true")
	want := "none\ngzip\nsnappy\nlz4\nzstd\nidempotent\n"
	if out := run("", "-C", "-t", topic, "-p", "1", "-o", "beginning", "-e", "-q"); out != want {
		t.Errorf("kcat -C: %q, want %q", out, want)
	}
	group := unique(t, "g")
	// -c ends it; what it got is committed when it closes, so a second one gets the rest.
	if out := run("", "-G", group, "-q", "-c", "2", "-X", "auto.offset.reset=earliest", topic); !strings.Contains(out, "none\ngzip\n") {
		t.Errorf("kcat -G: %q", out)
	}
	if out := run("", "-G", group, "-q", "-e", topic); !strings.Contains(out, "idempotent") {
		t.Errorf("the second kcat -G: %q", out)
	}
}
