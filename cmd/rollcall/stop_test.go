package main

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestStopAnswersWhatIsHeld has a JoinGroup that waits for the initial delay when
// SIGTERM comes: it is answered NOT_COORDINATOR, the connection is closed and the
// process exits with 0.
func TestStopAnswersWhatIsHeld(t *testing.T) {
	p := startServe(t, filepath.Join(t.TempDir(), "data"))
	p.ready(t)
	conn, err := net.Dial("tcp", p.kafka)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.ProtocolType = 3, "held", "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 10_000, 60_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, join, 7)
	if _, err := conn.Write(frame); err != nil {
		t.Fatal(err)
	}
	p.metric(t, "rollcall_group_requests_parked 1")

	sent := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer) < 8 || binary.BigEndian.Uint32(answer[4:]) != 7 {
		t.Fatalf("the answer is %x", answer)
	}
	resp := join.ResponseKind().(*kmsg.JoinGroupResponse)
	resp.Version = join.Version
	if err := resp.ReadFrom(answer[8:]); err != nil || resp.ErrorCode != kerr.NotCoordinator.Code {
		t.Errorf("error code %d, %v, want %d", resp.ErrorCode, err, kerr.NotCoordinator.Code)
	}
	if code := p.wait(t); code != 0 || time.Since(sent) > 5*time.Second {
		t.Errorf("exit code %d after %v", code, time.Since(sent))
	}
}

// metric waits until /metrics has a line.
func (p *process) metric(t *testing.T, line string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); <-tick.C {
		resp, err := http.Get("http://" + p.http + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), "\n"+line+"\n") {
			return
		}
	}
	t.Fatalf("/metrics never has %q", line)
}
