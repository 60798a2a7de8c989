package main

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"go.uber.org/zap"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/internal/config"
	"github.com/rollcall-mq/rollcall/gateway/admin"
)

// node is everything that runs, in the order in which it was started.
type node struct {
	log    *zap.Logger
	admin  *admin.Server
	http   net.Listener
	failed chan error
}

// start takes what can be refused first, the addresses, and then what leaves
// traces on the disk, so that a start that fails changes nothing.
func start(c *config.Config, log *zap.Logger) (n *node, err error) {
	n = &node{log: log, failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			n.release()
		}
	}()
	if c.AdminListen != "" {
		if n.http, err = listen("admin.listen", c.AdminListen); err != nil {
			return nil, err
		}
	}
	n.admin = admin.NewServer(admin.Config{
		Token:   c.AdminToken,
		Ready:   func() (bool, string) { return false, "no shard is loaded" },
		Metrics: http.NotFoundHandler(),
		Log:     log,
	})
	return n, nil
}

// run starts serving; the channel gets the error of the first part that fails.
func (n *node) run() <-chan error {
	if n.http != nil {
		n.log.Info("listening", zap.String("on", "http"), zap.Stringer("address", n.http.Addr()))
		go n.watch(func() error { return n.admin.Serve(n.http) })
	}
	return n.failed
}

// watch runs a part and reports its failure, if it is the first.
func (n *node) watch(part func() error) {
	if err := part(); err != nil {
		select {
		case n.failed <- err:
		default:
		}
	}
}

// stop stops everything in the reverse order of its start.
func (n *node) stop(ctx context.Context) error {
	n.admin.Shutdown(ctx)
	return nil
}

// release closes what start had opened before it failed.
func (n *node) release() {
	if n.http != nil {
		_ = n.http.Close() // nothing was accepted on it
	}
}

// listen takes an address and says which key named it if it cannot be had.
func listen(key, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen on %s: %w; is another process using it?", key, address, err)
	}
	return l, nil
}
