package compat

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
	"github.com/rollcall-mq/rollcall/compat-tests/sim/actor"
	"github.com/rollcall-mq/rollcall/compat-tests/sim/wire"
)

// load is the clients of the simulations, at work against a real process.
type load struct {
	*wire.Site
	t      *testing.T
	srv    *rig.Server
	groups []string
}

// startLoad lets members, writers and administrators work.
func startLoad(t *testing.T, srv *rig.Server) *load {
	adm := rig.Admin(t, srv.Addr)
	for _, topic := range []string{"t", "u"} {
		rig.CreateTopic(t, adm, topic, 4)
	}
	adm.Close()
	l := &load{Site: wire.NewSite(), t: t, srv: srv, groups: []string{"group-0", "group-1", "simple-0"}}
	l.up()
	for _, g := range l.groups[:2] {
		l.Spawn(1, func(w actor.World) { actor.Admin(w, "admin of "+g, g, 5) })
		for j := range 3 {
			l.Spawn(1, func(w actor.World) { actor.Consumer(w, fmt.Sprintf("member %d of %s", j, g), g, nil) })
		}
	}
	l.Spawn(1, func(w actor.World) { actor.Admin(w, "admin of simple-0", l.groups[2], 20) })
	for i := range 3 {
		l.Spawn(1, func(w actor.World) { actor.Writer(w, fmt.Sprint("writer ", i), l.groups[2]) })
	}
	return l
}

// up lets clients connect.
func (l *load) up() {
	l.Up(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", l.srv.Addr)
	})
}

// through lets the process end, by kill, and starts it again.
func (l *load) through(why string, kill func()) {
	l.t.Helper()
	kill()
	l.Leave(l.Cut())
	l.srv.Restart()
	l.up()
	l.Audit(1, why, l.groups)
}

// end looks at what is left, and judges all that the clients saw.
func (l *load) end() {
	l.t.Helper()
	l.Over()
	l.Last(1, "at the end", l.groups)
	l.Cut()
	commits := l.History.Commits()
	if err := l.History.Check(); err != nil {
		file := filepath.Join(os.TempDir(), "faults.history")
		if saveErr := l.History.Save(file); saveErr != nil {
			l.t.Log(saveErr)
		}
		l.t.Errorf("%v\nthe history is in %s", err, file)
	}
	l.t.Logf("%d commits, %d assignments", commits, len(l.History.Claims))
	if commits < 20 {
		l.t.Error("too few commits were acknowledged for this to mean something")
	}
}

// TestKillsUnderLoad kills the server again and again while groups of members live in
// it. They go on with the generation that they have, and what they saw is held against
// the checkers of the simulations.
func TestKillsUnderLoad(t *testing.T) {
	kills := 5
	if *full {
		kills = 100
	}
	srv := rig.Start(t, "ROLLCALL_OFFSETS_TOPIC_NUM_PARTITIONS=3")
	ours(t, srv)
	l := startLoad(t, srv)
	for i := range kills {
		<-time.After(time.Duration(500+rand.IntN(3500)) * time.Millisecond)
		l.through(fmt.Sprint("after kill ", i+1), srv.Kill)
	}
	<-time.After(time.Second)
	l.end()
}

// TestDiskRunsFull: when a write fails for want of space, the process ends with one line
// that says so, nothing that was acknowledged is lost, and with room again it goes on.
func TestDiskRunsFull(t *testing.T) {
	small := smallDisk(t)
	srv := rig.StartIn(t, filepath.Join(small, "data"), "ROLLCALL_STORE_MIN_FREE_BYTES=0", "ROLLCALL_OFFSETS_TOPIC_NUM_PARTITIONS=3")
	ours(t, srv)
	l := startLoad(t, srv)
	ballast := filepath.Join(small, "ballast")
	for i := range 2 {
		<-time.After(2 * time.Second)
		l.through(fmt.Sprint("after the disk was full ", i+1), func() {
			f, err := os.Create(ballast)
			if err != nil {
				t.Fatal(err)
			}
			for err == nil { // until there is no room for another byte
				_, err = f.Write(make([]byte, 1<<20))
			}
			f.Close()
			// Logs are written into space that they have already; this makes them grow.
			go bigCommits(srv.Addr)
			if log := srv.MustFail(30 * time.Second); !strings.Contains(log, "no space left on device") {
				t.Errorf("the server does not say why it ended:\n%s", log)
			}
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		})
	}
	<-time.After(time.Second)
	l.end()
}

// bigCommits commits with as much metadata as there may be until the server is gone.
func bigCommits(addr string) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer nc.Close()
	go io.Copy(io.Discard, nc)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group = 8, "big"
	metadata := strings.Repeat("m", 4000)
	topic := kmsg.OffsetCommitRequestTopic{Topic: "t"}
	for i := range int32(4) {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Metadata = i, &metadata
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)
	for err == nil {
		_, err = nc.Write(frame)
	}
}
