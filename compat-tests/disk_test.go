package compat

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// TestDiskFull: below store.min.free.bytes commits are refused and /readyz says so; what
// was there is served, what makes room goes on, and it ends by itself.
func TestDiskFull(t *testing.T) {
	small := smallDisk(t)
	srv := rig.StartIn(t, filepath.Join(small, "data"), "ROLLCALL_GROUP_INITIAL_REBALANCE_DELAY_MS=0", "ROLLCALL_STORE_MIN_FREE_BYTES=100000000")
	ours(t, srv)
	g, topic := unique(t, "g"), newTopic(t, srv)
	m := newPeer(t, srv, g)
	stable(t, m)
	m.code("OffsetCommit", m.commit(topic, 1), errNone)

	ballast := filepath.Join(small, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 150<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	ready := func(want int) {
		t.Helper()
		rig.Eventually(t, 10*time.Second, fmt.Sprintf("/readyz is %d", want), func() error {
			resp, err := http.Get("http://" + srv.Admin + "/readyz")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != want {
				return fmt.Errorf("it is %s", resp.Status)
			}
			return nil
		})
	}
	ready(http.StatusServiceUnavailable)
	m.code("OffsetCommit with a full disk", m.commit(topic, 2), errCoordinatorNotAvailable)
	m.code("Heartbeat with a full disk", m.heartbeat(), errNone)
	if got := fetchOffset(m.Conn, g, topic); got != 1 {
		t.Errorf("offset %d, want 1", got)
	}
	n := newPeer(t, srv, g)
	n.park()
	m.join()
	n.joined()
	m.sync(errCoordinatorNotAvailable, m.id, "0", n.id, "1")
	n.code("LeaveGroup with a full disk", n.leave(), errNone)

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	ready(http.StatusOK)
	m.join()
	m.sync(errNone, m.id, "0")
	m.code("OffsetCommit with room again", m.commit(topic, 3), errNone)
	srv.Kill()
	srv.Restart()
	if got := fetchOffset(rig.Dial(t, srv.Addr), g, topic); got != 3 {
		t.Errorf("offset %d after a restart, want 3", got)
	}
}

// TestDiskFullStart: on a disk that is full to the last byte the gateway does not hang
// in its start: it says what is wrong and leaves everything as it was.
func TestDiskFullStart(t *testing.T) {
	small := smallDisk(t)
	srv := rig.StartIn(t, filepath.Join(small, "data"), "ROLLCALL_GROUP_INITIAL_REBALANCE_DELAY_MS=0")
	ours(t, srv)
	g, topic := unique(t, "g"), newTopic(t, srv)
	m := newPeer(t, srv, g)
	stable(t, m)
	m.code("OffsetCommit", m.commit(topic, 1), errNone)
	srv.Kill()
	before := filepath.Join(t.TempDir(), "before")
	if err := os.CopyFS(before, os.DirFS(srv.Dir)); err != nil {
		t.Fatal(err)
	}

	ballast := filepath.Join(small, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 256<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	out := srv.MustNotStart()
	if !strings.Contains(out, "0 bytes free") || !strings.Contains(out, "make room") || strings.Count(out, "\n") != 1 {
		t.Errorf("it says %q", out)
	}
	if out, err := exec.Command("diff", "-r", before, srv.Dir).CombinedOutput(); err != nil {
		t.Errorf("the directory changed: %v\n%s", err, out)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	srv.Restart()
	if got := fetchOffset(rig.Dial(t, srv.Addr), g, topic); got != 1 {
		t.Errorf("offset %d, want 1", got)
	}
}

// smallDisk mounts a file system of 256 MiB and returns where.
func smallDisk(t *testing.T) string {
	t.Helper()
	small := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", small).CombinedOutput(); err != nil {
		skip(t, "a full disk", fmt.Sprintf("a small file system cannot be mounted here (it takes root): %v %s", err, out))
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", small).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return small
}
