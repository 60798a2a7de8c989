package store

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// The test binary runs itself as the process that holds or writes a store.
const (
	childEnv  = "ROLLCALL_STORE_CHILD"
	childHold = "hold"
	childLoop = "loop"
)

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case childHold:
		child(func(*Store) { fmt.Println("open") })
	case childLoop:
		child(writeLoop)
	}
}

// child opens the store in the directory given and keeps it until stdin ends.
func child(then func(*Store)) {
	s, err := Open(Options{Dir: os.Args[1], Shards: 50, Version: "child"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	then(s)
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = s.Close()
	os.Exit(0)
}

// writeLoop commits n to ten keys at once, for ever, and prints each n that is
// acknowledged.
func writeLoop(s *Store) {
	n := uint64(0)
	if value, closer, err := s.Groups().Pebble.Get([]byte("key-0")); err == nil {
		n = binary.BigEndian.Uint64(value)
		_ = closer.Close()
	}
	result := make(chan error, 1)
	for {
		n++
		s.Groups().Committer.Submit(Op{
			Sync: true,
			Write: func(b *Batch) {
				for i := range 10 {
					b.Set(fmt.Appendf(nil, "key-%d", i), binary.BigEndian.AppendUint64(nil, n))
				}
			},
			Done: func(err error) { result <- err },
		})
		if err := <-result; err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(4)
		}
		_, _ = os.Stdout.WriteString(strconv.FormatUint(n, 10) + "\n")
	}
}

func startChild(t *testing.T, mode, dir string) (cmd *exec.Cmd, stdout *bufio.Scanner, stderr *strings.Builder) {
	t.Helper()
	cmd = exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), childEnv+"="+mode)
	stderr = new(strings.Builder)
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out), stderr
}

// TestSecondProcess: a directory in use is refused, naming the directory and the
// process that has it.
func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	first, out, _ := startChild(t, childHold, dir)
	if !out.Scan() {
		t.Fatal("the first process did not open the store")
	}
	second, out, stderr := startChild(t, childHold, dir)
	for out.Scan() {
		t.Errorf("second process: %s", out.Text())
	}
	if err := second.Wait(); err == nil || second.ProcessState.ExitCode() != 3 {
		t.Errorf("second process ended with %v", err)
	}
	line := strings.TrimSuffix(stderr.String(), "\n")
	want := fmt.Sprintf("data directory %s is in use by process %d", dir, first.Process.Pid)
	if !strings.HasPrefix(line, want) || strings.Contains(line, "\n") {
		t.Errorf("second process said %q, want %q", line, want)
	}
	// Once the first is gone, killed even, the directory is free.
	_ = first.Process.Kill()
	_ = first.Wait()
	mustClose(t, mustOpen(t, Options{Dir: dir, Shards: 50}))
}

// TestKill kills a process that commits, again and again: what it had printed as
// acknowledged is there afterwards, and all keys are of the same commit.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	rounds, last := 100, uint64(0)
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		cmd, out, stderr := startChild(t, childLoop, dir)
		for range 1 + round*37%100 {
			if !out.Scan() {
				t.Fatalf("round %d: the process ended: %s", round, stderr)
			}
		}
		_ = cmd.Process.Kill()
		for ok := true; ok; ok = out.Scan() {
			n, err := strconv.ParseUint(out.Text(), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			last = n
		}
		_ = cmd.Wait()
		s := mustOpen(t, Options{Dir: dir, Shards: 50})
		got := get(t, s.Groups(), "key-0")
		if n := binary.BigEndian.Uint64([]byte(got)); n != last && n != last+1 {
			t.Errorf("round %d: %d was acknowledged, %d is there", round, last, n)
		}
		for i := range 10 {
			if other := get(t, s.Groups(), fmt.Sprintf("key-%d", i)); other != got {
				t.Errorf("round %d: keys 0 and %d differ: %x %x", round, i, got, other)
			}
		}
		mustClose(t, s)
	}
	t.Logf("%d rounds, %d commits", rounds, last)
}
