package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rollcall is the path of the built command; what is tested here is what users run.
var rollcall string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "rollcall-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		rollcall = filepath.Join(dir, "rollcall")
		if out, err := exec.Command("go", "build", "-o", rollcall, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building rollcall: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// limit bounds everything that a test waits for.
const limit = 30 * time.Second

// command returns a rollcall command line that is killed when the test ends.
func command(t *testing.T, environ []string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, rollcall, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, environ...)
	return cmd
}

// runToEnd runs a command that ends by itself.
func runToEnd(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t, environ, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// process is a running gateway.
type process struct {
	cmd *exec.Cmd
	// kafka and http are where it really listens.
	kafka, http string
	// ended is closed when the process has ended; the log is then complete.
	ended chan struct{}
	log   bytes.Buffer
}

// startServe starts a gateway on free ports and waits until it listens.
func startServe(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	args = append([]string{"serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "json"}, args...)
	p := &process{cmd: command(t, nil, args...), ended: make(chan struct{})}
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan struct{})
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			p.log.Write(append(lines.Bytes(), '\n'))
			var line struct{ Msg, On, Address string }
			if json.Unmarshal(lines.Bytes(), &line) != nil || line.Msg != "listening" {
				continue
			}
			if line.On == "http" {
				p.http = line.Address
			} else {
				p.kafka = line.Address
			}
			if p.kafka != "" && p.http != "" {
				close(listening)
			}
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
		if t.Failed() {
			t.Logf("log of the gateway:\n%s", p.log.String())
		}
	})
	select {
	case <-listening:
	case <-p.ended:
		t.Fatalf("the gateway ended by itself: %s", p.log.String())
	case <-t.Context().Done():
		t.Fatal("the gateway did not listen in time")
	}
	return p
}

// wait waits for the end of the process and returns its exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		t.Fatal("the gateway did not end in time")
	}
	return p.cmd.ProcessState.ExitCode()
}

// ready waits until /readyz is 200.
func (p *process) ready(t *testing.T) {
	t.Helper()
	var last string
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); <-tick.C {
		line, err := ask("http://" + p.http + "/readyz")
		if err == nil {
			return
		}
		last = fmt.Sprint(line, err)
	}
	t.Fatalf("not ready in time: %s", last)
}

// contents returns the path, size and modification time of everything below dir.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size := info.Size()
		if d.IsDir() {
			size = 0
		}
		fmt.Fprintln(&b, path, size, info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestBadInput has what users get wrong: one line that says what and what to do,
// an exit code, and nothing changed on the disk.
func TestBadInput(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	used := filepath.Join(t.TempDir(), "used")
	running := startServe(t, used)
	running.ready(t)

	stopped := filepath.Join(t.TempDir(), "stopped")
	before := startServe(t, stopped)
	before.ready(t)
	before.terminate(t)

	newer := copyOf(t, stopped)
	format, err := os.ReadFile(filepath.Join(newer, "FORMAT"))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(format, &fields); err != nil {
		t.Fatal(err)
	}
	fields["format"], fields["writtenBy"] = 99, "v9.9.9"
	if format, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(newer, "FORMAT"), format, 0o600); err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("not a directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(t.TempDir(), "fresh")

	for _, test := range []struct {
		name    string
		dir     string
		environ []string
		args    []string
		code    int
		want    []string // parts of the line
	}{
		{"Kafka port in use", fresh, nil, []string{"--listen", taken.Addr().String()}, exitFailed,
			[]string{"listeners: listen on PLAINTEXT://" + taken.Addr().String(), "address already in use", "choose another address, or end the process that uses it"}},
		{"HTTP port in use", fresh, nil, []string{"--admin", taken.Addr().String()}, exitFailed,
			[]string{"admin.listen: listen tcp " + taken.Addr().String(), "address already in use", "choose another address"}},
		{"no such address", fresh, nil, []string{"--listen", "192.0.2.1:9092"}, exitFailed, []string{"listeners: listen on PLAINTEXT://192.0.2.1:9092", "choose another address"}},
		{"wildcard without advertised address", fresh, nil, []string{"--listen", "0.0.0.0:0"}, exitUsage, []string{"set advertised.listeners"}},
		{"HTTP for all without token", fresh, nil, []string{"--admin", "0.0.0.0:0"}, exitUsage, []string{"set admin.token"}},
		{"data directory is a file", file, nil, nil, exitFailed, []string{file, "give a directory"}},
		{"data directory below a file", filepath.Join(file, "data"), nil, nil, exitFailed, []string{file}},
		{"data directory of somebody else", foreign, nil, nil, exitFailed, []string{foreign, "thesis.txt", "give an empty or a new directory"}},
		{"second process", used, nil, nil, exitFailed,
			[]string{used, fmt.Sprintf("in use by process %d", running.cmd.Process.Pid)}},
		{"newer store", newer, nil, nil, exitFailed, []string{newer, "format 99", "v9.9.9", "use the newer version"}},
		{"other number of shards", stopped, []string{"ROLLCALL_OFFSETS_TOPIC_NUM_PARTITIONS=7"}, nil, exitFailed,
			[]string{"created with offsets.topic.num.partitions=50", "7 is configured"}},
		{"unknown key", fresh, []string{"ROLLCALL_GROUP_MAX_SIZ=7"}, nil, exitUsage,
			[]string{"environment ROLLCALL_GROUP_MAX_SIZ", "did you mean group.max.size?"}},
		{"value out of range", fresh, []string{"ROLLCALL_NUM_PARTITIONS=0"}, nil, exitUsage,
			[]string{`environment ROLLCALL_NUM_PARTITIONS: num.partitions = "0": must be 1 to 100000`}},
		{"unknown flag", fresh, nil, []string{"--lisen", "x"}, exitUsage, []string{"unknown flag: --lisen"}},
		{"stray argument", fresh, nil, []string{"now"}, exitUsage, []string{`unexpected "now"`}},
		{"no such file", fresh, nil, []string{"--config", filepath.Join(foreign, "none.yaml")}, exitUsage, []string{"none.yaml: no such file"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			everything := filepath.Dir(test.dir)
			was := ""
			if test.dir != filepath.Join(file, "data") && test.dir != used {
				was = contents(t, everything)
			}
			args := append([]string{"serve", "--data-dir", test.dir, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, test.args...)
			stdout, stderr, code := runToEnd(t, test.environ, args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "rollcall: ") {
				t.Errorf("want one line on standard error, got %q and %q", stdout, stderr)
			}
			for _, part := range test.want {
				if !strings.Contains(stderr, part) {
					t.Errorf("%q does not say %q", stderr, part)
				}
			}
			if was != "" {
				if is := contents(t, everything); is != was {
					t.Errorf("changed on the disk:\nbefore\n%safter\n%s", was, is)
				}
			}
		})
	}
	running.ready(t) // the second process did no harm
	running.terminate(t)
}

// terminate sends SIGTERM and wants a clean end within 5 s.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	sent := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	if took := time.Since(sent); took > 5*time.Second {
		t.Errorf("took %v to stop, want at most 5 s", took)
	}
}

// copyOf copies a directory of a stopped gateway.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestCheckAndStop(t *testing.T) {
	p := startServe(t, filepath.Join(t.TempDir(), "data"))
	p.ready(t)
	stdout, stderr, code := runToEnd(t, nil, "check", "--admin", p.http)
	if code != 0 || stdout != "ready\n" || stderr != "" {
		t.Errorf("check: %d %q %q", code, stdout, stderr)
	}
	resp, err := http.Get("http://" + p.http + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("/metrics: %s", resp.Status)
	}
	p.terminate(t)
	_, stderr, code = runToEnd(t, nil, "check", "--admin", p.http)
	if code != exitFailed || !strings.HasPrefix(stderr, "rollcall: not ready: ") {
		t.Errorf("check of a stopped gateway: %d %q", code, stderr)
	}
}

// TestStopWhileStarting has a start that hangs on the disk, here on a pipe that
// nobody writes to: health says so, and SIGTERM ends the process all the same.
func TestStopWhileStarting(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "FORMAT"), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	cmd := command(t, nil, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--admin", address)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	const want = "not ready: the data directory is being opened"
	for deadline := time.Now().Add(limit); ; <-tick.C {
		if _, err := ask("http://" + address + "/readyz"); err != nil && err.Error() == want {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("/readyz: %v, want %s", err, want)
		}
	}
	sent := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || time.Since(sent) > 5*time.Second {
		t.Errorf("ended with %v after %v: %s", err, time.Since(sent), stderr.String())
	}
}

func TestConfigShowCanBeRead(t *testing.T) {
	out, stderr, code := runToEnd(t, []string{"ROLLCALL_GROUP_MAX_SIZE=5", "ROLLCALL_LOG_LEVEL=debug"}, "config", "show", "--listen", "127.0.0.1:9999")
	if code != 0 {
		t.Fatal(stderr)
	}
	for _, line := range []string{
		"group.max.size: 5  # environment ROLLCALL_GROUP_MAX_SIZE",
		"listeners: 127.0.0.1:9999  # flag --listen",
		"store.sync: true  # default",
	} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("no line %q in:\n%s", line, out)
		}
	}
	file := filepath.Join(t.TempDir(), "rollcall.yaml")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := runToEnd(t, nil, "config", "check", "--config", file); code != 0 || stdout != "the configuration is valid\n" {
		t.Errorf("what show printed is not valid: %d %q %q", code, stdout, stderr)
	}
}

func TestVersion(t *testing.T) {
	out, _, code := runToEnd(t, nil, "version")
	if code != 0 || !strings.HasPrefix(out, "rollcall ") {
		t.Errorf("%d %q", code, out)
	}
}
