// Package node puts the parts of a standalone gateway together: the data directory,
// the coordinator, the topics, the listeners and HTTP, and starts and stops them in
// order. It decides nothing. The command runs one in a process; tests run many, also
// on a file system and a network of their own.
package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/config"
	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/rollcall-mq/rollcall/gateway"
	"github.com/rollcall-mq/rollcall/gateway/admin"
	"github.com/rollcall-mq/rollcall/store"
	"github.com/rollcall-mq/rollcall/store/named"
	"github.com/rollcall-mq/rollcall/store/topics"
)

// Options says what to start.
type Options struct {
	// Config is the checked configuration.
	Config *config.Config
	// Version is the version of Rollcall, for the store and the metrics.
	Version string
	// Log takes everything that happens.
	Log *zap.Logger
	// FS is where the data directory is; nil is the disk.
	FS vfs.FS
	// Listen opens an entry of listeners; nil is [gateway.Listen], TCP. HTTP is
	// always TCP.
	Listen func(context.Context, gateway.Endpoint) (net.Listener, error)
	// Listener, if set, hears what the shards do after logs and metrics have: it gets
	// the listener that writes those and returns the one to use.
	Listener func(shard.Listener) shard.Listener
}

// Node is everything that runs, in the order in which it is started.
type Node struct {
	opts    Options
	log     *zap.Logger
	metrics *admin.Metrics

	http      net.Listener // nil without admin.listen
	listeners []kafkaListener

	store  *store.Store
	topics *topics.Log
	router *coordinator.Router
	txns   *txn.Coordinator
	kafka  *gateway.Server
	admin  *admin.Server

	// producers and snapshots are what HTTP keeps by name.
	producers, snapshots *named.Table

	// chores run in the background until stopChores; doing waits for them.
	chores     []func(context.Context)
	stopChores context.CancelFunc
	doing      sync.WaitGroup
	// started is set when the coordinator runs.
	started atomic.Bool
	// failed has the error of the first part that failed.
	failed chan error
	// stopped is closed when Stop is done.
	stopped chan struct{}
}

// kafkaListener is one entry of listeners that is open.
type kafkaListener struct {
	net.Listener
	name string
	// advertised is what clients of the listener are told to connect to.
	advertised gateway.Endpoint
}

// ErrInterrupted is what [Start] fails with when its context ends.
var ErrInterrupted = errors.New("interrupted while starting")

// Start takes what can be refused first, the addresses, and then what leaves
// traces on the disk, so that a start that fails changes nothing. If ctx ends
// meanwhile it is left where it is: the disk may hang, and whatever state a start
// leaves there the next one completes.
func Start(ctx context.Context, o Options) (*Node, error) {
	if o.Listen == nil {
		o.Listen = gateway.Listen
	}
	n := &Node{
		opts: o, log: o.Log, metrics: admin.NewMetrics(o.Version),
		failed: make(chan error, 1), stopped: make(chan struct{}), stopChores: func() {},
	}
	done := make(chan error, 1)
	go func() {
		for _, step := range []func(*config.Config) error{n.listen, n.open, n.wire} {
			if err := step(o.Config); err != nil {
				done <- errors.Join(err, n.close())
				return
			}
		}
		done <- nil
	}()
	select {
	case err := <-done:
		return n, err
	case <-ctx.Done():
		return nil, ErrInterrupted
	}
}

// listen opens the addresses. Only HTTP is accepted yet.
func (n *Node) listen(c *config.Config) (err error) {
	if c.AdminListen != "" {
		if n.http, err = net.Listen("tcp", c.AdminListen); err != nil {
			return fmt.Errorf("admin.listen: %w; choose another address, or end the process that uses it", err)
		}
	}
	n.admin = admin.NewServer(admin.Config{
		Token: c.AdminToken, Ready: n.Ready, Metrics: n.metrics.Handler(n.log), Log: n.log,
	})
	bound := make([]gateway.Endpoint, len(c.Listeners))
	for i, e := range c.Listeners {
		l, err := n.opts.Listen(context.Background(), e)
		if err != nil {
			return fmt.Errorf("listeners: %w; choose another address, or end the process that uses it", err)
		}
		n.listeners = append(n.listeners, kafkaListener{Listener: l, name: e.Name})
		bound[i] = gateway.Bound(e, l)
	}
	advertised, err := gateway.Advertise(bound, c.Advertised)
	if err != nil {
		return err
	}
	for i := range advertised {
		n.listeners[i].advertised = advertised[i]
	}
	if n.http != nil { // from now on, so that a start that takes long can be seen
		n.watch(func() error { return n.admin.Serve(n.http) })
	}
	return nil
}

// Ready tells whether clients can be served and, if not, why: what /readyz says.
func (n *Node) Ready() (ready bool, reason string) {
	if !n.started.Load() {
		return false, "the data directory is being opened"
	}
	return n.router.Ready()
}

// Run starts serving; the channel gets the error of the first part that fails.
func (n *Node) Run() <-chan error {
	n.watch(func() error {
		select {
		case <-n.store.Failed():
			return n.store.Err()
		case <-n.stopped:
			return nil
		}
	})
	n.watch(func() error { return n.router.Run(context.Background(), nil) })
	ctx, stop := context.WithCancel(context.Background())
	n.stopChores = stop
	for _, chore := range n.chores {
		n.doing.Go(func() { chore(ctx) })
	}
	n.started.Store(true)
	for _, l := range n.listeners {
		n.log.Info("listening", zap.String("on", l.name), zap.Stringer("address", l.Addr()), zap.String("advertised", l.advertised.Address()))
		n.watch(func() error { return n.kafka.Serve(context.Background(), l.name, l.Listener) })
	}
	if n.http != nil {
		n.log.Info("listening", zap.String("on", "http"), zap.Stringer("address", n.http.Addr()))
	}
	return n.failed
}

// watch runs a part and reports its failure, if it is the first.
func (n *Node) watch(part func() error) {
	go func() {
		err := part()
		if err == nil || errors.Is(err, gateway.ErrServerClosed) {
			return
		}
		select {
		case n.failed <- err:
		default:
		}
	}()
}

// stopGrace is what Stop waits after its context has ended: connections are cut off
// then, and the store can still be closed.
const stopGrace = 500 * time.Millisecond

// Stop ends everything in the reverse order of its start: no more requests, answers
// to those that are held, the last sync. It takes no longer than ctx and stopGrace:
// what hangs in the disk until then is left to the end of the process.
func (n *Node) Stop(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- n.stop(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(stopGrace):
		return fmt.Errorf("stopped without closing the data directory, whose disk does not answer: %w", ctx.Err())
	}
}

func (n *Node) stop(ctx context.Context) error {
	defer close(n.stopped)
	err := n.kafka.Shutdown(ctx) // which chores may have to answer for
	n.stopChores()
	n.producers.Release() // or Shutdown would wait for who waits for a snapshot
	n.admin.Shutdown(ctx)
	n.doing.Wait()
	return errors.Join(err, n.close())
}

// close lets go of what start took; it may be half of it.
func (n *Node) close() error {
	for _, l := range n.listeners {
		_ = l.Close() // the server has closed it already, if there was one
	}
	if n.http != nil {
		n.admin.Close()
		_ = n.http.Close() // it may not have been served
	}
	if n.store == nil {
		return nil
	}
	err := n.store.Close()
	if n.topics != nil {
		n.topics.Close()
	}
	return err
}
