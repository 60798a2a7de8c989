package bubble

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/config"
	"github.com/rollcall-mq/rollcall/cmd/rollcall/node"
	"github.com/rollcall-mq/rollcall/compat-tests/sim/wire"
	"github.com/rollcall-mq/rollcall/gateway"
	"github.com/rollcall-mq/rollcall/gateway/memnet"
)

// world is a node with its clients and what happens to them.
type world struct {
	*wire.Site
	t   *testing.T
	rnd *rand.Rand // of the faults
	log *zap.Logger
	// life is the node as it runs.
	life *life

	// fast: the disk takes no time.
	fast     bool
	settings map[string]string

	crashes, stops int
}

// life is the node from a start to its end.
type life struct {
	disk    *disk
	node    *node.Node
	failed  <-chan error
	network *memnet.Listener
}

// output takes the log, for the case that a check fails.
type output struct {
	mu sync.Mutex
	bytes.Buffer
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Buffer.Write(p)
}

// Sync implements [zapcore.WriteSyncer].
func (o *output) Sync() error { return nil }

// logger returns a logger that writes to the output.
func (o *output) logger() *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), o, zapcore.InfoLevel))
}

// newWorld makes a world whose node runs, with these settings on top of those that all
// have. In a bubble.
func newWorld(t *testing.T, seed uint64, log *zap.Logger, fast bool, settings map[string]string) *world {
	w := &world{Site: wire.NewSite(), t: t, rnd: rand.New(rand.NewPCG(seed, 1)), log: log, fast: fast, settings: settings}
	w.start(vfs.NewCrashableMem())
	w.createTopics()
	return w
}

// start starts the node on what is on a disk.
func (w *world) start(mem *vfs.MemFS) {
	flags := map[string]config.Flag{}
	set := func(key, value string) { flags[key] = config.Flag{Name: key, Value: value} }
	set("admin.listen", "")
	set("data.dir", "data")
	set("offsets.topic.num.partitions", "3")
	set("group.initial.rebalance.delay.ms", "1000")
	set("store.min.free.bytes", fmt.Sprint(minFree))
	for key, value := range w.settings {
		set(key, value)
	}
	c, _, err := config.Load(config.Input{Flags: flags})
	if err != nil {
		w.t.Fatal(err)
	}
	l := &life{disk: newDisk(mem), network: memnet.Listen()}
	if w.fast {
		close(l.disk.atOnce)
	}
	if l.node, err = node.Start(context.Background(), node.Options{
		Config: c, Version: "sim", Log: w.log, FS: l.disk,
		Listen: func(context.Context, gateway.Endpoint) (net.Listener, error) { return l.network, nil },
	}); err != nil {
		w.t.Fatalf("start: %v", err)
	}
	l.failed = l.node.Run()
	w.life = l
	w.Up(l.network.Dial)
}

// createTopics makes the topics that groups are about, which offsets are committed for
// only if they exist.
func (w *world) createTopics() {
	synctest.Wait()
	nc, err := w.life.network.Dial(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	defer nc.Close()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 2, 10_000
	for _, topic := range []string{"t", "u"} {
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, 4, 1
		req.Topics = append(req.Topics, rt)
	}
	if _, err := nc.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := nc.Read(make([]byte, 4096)); err != nil {
		w.t.Fatal(err)
	}
}

// crash cuts the power: what was synced is on the disk, and so much of the rest. What
// clients have been told by then, they have been told.
func (w *world) crash(unsyncedPercent int) {
	conns := w.Cut()
	l := w.life
	left := l.disk.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsyncedPercent, RNG: w.rnd})
	w.Leave(conns)
	w.crashes++
	l.disk.dead.Store(true)
	w.end(l)
	w.start(left)
}

// stop stops the node in good order and starts it again.
func (w *world) stop() {
	conns := w.Down()
	l := w.life
	if err := w.end(l); err != nil && !l.disk.full.Load() {
		w.History.Problem("stop: %v", err)
	}
	for _, c := range conns {
		c.Ended()
	}
	w.Leave(conns)
	w.stops++
	w.start(l.disk.mem)
}

// end ends a node; a disk that fails makes that an error.
func (w *world) end(l *life) error {
	if !w.fast {
		close(l.disk.atOnce)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return l.node.Stop(ctx)
}

// trouble does something to the node or its clients.
func (w *world) trouble() {
	l := w.life
	select {
	case err := <-l.failed:
		w.log.Info("the node failed", zap.Error(err))
		if !l.disk.full.Load() {
			w.History.Problem("the node failed: %v", err)
		}
		w.crash(w.rnd.IntN(101))
		return
	default:
	}
	switch p := w.rnd.IntN(100); {
	case p < 30:
		w.crash(w.rnd.IntN(2) * w.rnd.IntN(101))
	case p < 35:
		w.stop()
	case p < 45:
		l.disk.syncMax.Store(int64(time.Duration(1+w.rnd.IntN(7000)) * time.Millisecond))
	case p < 60:
		l.disk.syncMax.Store(int64(10 * time.Millisecond))
	case p < 67:
		l.disk.free.Store(minFree / 2)
	case p < 80:
		l.disk.free.Store(100 * minFree)
	case p < 83:
		l.disk.full.Store(true)
	default:
		w.Break(w.rnd)
	}
}
