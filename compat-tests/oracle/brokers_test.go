package oracle

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/config"
	"github.com/rollcall-mq/rollcall/cmd/rollcall/node"
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/gateway"
	"github.com/rollcall-mq/rollcall/gateway/memnet"
)

// rollcall is a node in the process, on a disk and a network in memory. Each
// start has a network of its own.
type rollcall struct {
	t       *testing.T
	config  map[string]string
	disk    *vfs.MemFS
	network *memnet.Listener
	node    *node.Node
	// rules counts the rules of coordinator/group that were carried out.
	rules *rules
}

// rules are counted by the shards of many nodes.
type rules struct {
	mu    sync.Mutex
	count map[string]int
}

// ruleListener counts what it hears.
type ruleListener struct {
	shard.Listener
	rules *rules
}

// OnNotes implements [shard.Listener].
func (l ruleListener) OnNotes(n uint32, groupID string, notes []group.Note) {
	l.Listener.OnNotes(n, groupID, notes)
	l.rules.mu.Lock()
	defer l.rules.mu.Unlock()
	for i := range notes {
		l.rules.count[notes[i].Rule.String()]++
	}
}

// startRollcall starts a node that ends with the test.
func startRollcall(t *testing.T, config map[string]string, seen *rules) *rollcall {
	r := &rollcall{t: t, config: config, disk: vfs.NewCrashableMem(), rules: seen}
	r.start()
	return r
}

func (r *rollcall) start() {
	flags := map[string]config.Flag{
		"admin.listen": {Name: "admin"}, "data.dir": {Name: "data-dir", Value: "data"},
	}
	for key, value := range r.config {
		flags[key] = config.Flag{Name: key, Value: value}
	}
	c, _, err := config.Load(config.Input{Flags: flags})
	if err != nil {
		r.t.Fatal(err)
	}
	r.network = memnet.Listen()
	r.node, err = node.Start(context.Background(), node.Options{
		Config: c, Version: "test", Log: zap.NewNop(), FS: r.disk,
		Listen:   func(context.Context, gateway.Endpoint) (net.Listener, error) { return r.network, nil },
		Listener: func(l shard.Listener) shard.Listener { return ruleListener{l, r.rules} },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.node.Run()
	for ready := false; !ready; ready, _ = r.node.Ready() {
		pause := time.NewTimer(time.Millisecond)
		<-pause.C
	}
}

// Dial implements [Broker].
func (r *rollcall) Dial(ctx context.Context) (net.Conn, error) { return r.network.Dial(ctx) }

// Restart implements [Broker]. A crash keeps what was synced.
func (r *rollcall) Restart(_ context.Context, step string) error {
	switch step {
	case "start":
		r.start()
	case "kill":
		after := r.disk.CrashClone(vfs.CrashCloneCfg{})
		r.stop()
		r.disk = after
	case "stop":
		r.stop()
	}
	return nil
}

func (r *rollcall) stop() {
	if r.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := r.node.Stop(ctx); err != nil {
		r.t.Error(err)
	}
	r.node = nil
}

// kafka is an Apache Kafka that scenarios share.
type kafka struct {
	dir  string
	port int
	set  []string

	mu sync.Mutex
	// running are the scenarios under way, waiting those that want the same restart.
	running, waiting int
	// turn is closed, and made anew, when a restart is done.
	turn chan struct{}
	err  error
}

// startKafka starts a broker in a new directory.
func startKafka(ctx context.Context, dir string, port int, set map[string]string) (*kafka, error) {
	k := &kafka{dir: dir, port: port, turn: make(chan struct{})}
	for key, value := range set {
		k.set = append(k.set, key+"="+value)
	}
	return k, k.script(ctx, "start")
}

// script runs the script that starts and stops brokers.
func (k *kafka) script(ctx context.Context, what string) error {
	args := []string{what, k.dir}
	if what == "start" {
		args = append(append(args, strconv.Itoa(k.port)), k.set...)
	}
	script, err := filepath.Abs("../kafka/kafka")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, script, args...)
	cmd.Env = append(os.Environ(), "KAFKA_HEAP=-Xmx768m")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", script, args, err, out)
	}
	return nil
}

// Dial implements [Broker].
func (k *kafka) Dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(k.port)))
}

// Restart implements [Broker]: it waits until all scenarios want to.
func (k *kafka) Restart(ctx context.Context, step string) error {
	k.mu.Lock()
	k.waiting++
	if k.waiting == k.running {
		k.err = k.script(ctx, step)
		k.waiting = 0
		close(k.turn)
		k.turn = make(chan struct{})
		k.mu.Unlock()
		return k.err
	}
	turn := k.turn
	k.mu.Unlock()
	select {
	case <-turn:
		return k.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// configured is the configuration of a scenario's broker.
func configured(s *Scenario) map[string]string {
	set := maps.Clone(Defaults)
	maps.Copy(set, s.Broker())
	return set
}
