package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"go.uber.org/zap"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/internal/config"
	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/gateway"
	"github.com/rollcall-mq/rollcall/gateway/admin"
	"github.com/rollcall-mq/rollcall/store"
	"github.com/rollcall-mq/rollcall/store/topics"
)

// node is everything that runs, in the order in which it is started.
type node struct {
	log     *zap.Logger
	metrics *admin.Metrics

	http      net.Listener // nil without admin.listen
	listeners []kafkaListener

	store  *store.Store
	topics *topics.Log
	router *coordinator.Router
	kafka  *gateway.Server
	admin  *admin.Server

	// failed has the error of the first part that failed.
	failed chan error
}

// kafkaListener is one entry of listeners that is open.
type kafkaListener struct {
	net.Listener
	name string
	// advertised is what clients of the listener are told to connect to.
	advertised gateway.Endpoint
}

// start takes what can be refused first, the addresses, and then what leaves
// traces on the disk, so that a start that fails changes nothing.
func start(c *config.Config, log *zap.Logger) (n *node, err error) {
	n = &node{log: log, metrics: admin.NewMetrics(versionName()), failed: make(chan error, 1)}
	for _, step := range []func(*config.Config) error{n.listen, n.open, n.wire} {
		if err := step(c); err != nil {
			return nil, errors.Join(err, n.close())
		}
	}
	return n, nil
}

// listen opens the addresses. Nothing is accepted yet.
func (n *node) listen(c *config.Config) (err error) {
	if c.AdminListen != "" {
		if n.http, err = net.Listen("tcp", c.AdminListen); err != nil {
			return fmt.Errorf("admin.listen: %w; choose another address, or end the process that uses it", err)
		}
	}
	bound := make([]gateway.Endpoint, len(c.Listeners))
	for i, e := range c.Listeners {
		l, err := gateway.Listen(context.Background(), e)
		if err != nil {
			return fmt.Errorf("listeners: %w; choose another address, or end the process that uses it", err)
		}
		n.listeners = append(n.listeners, kafkaListener{Listener: l, name: e.Name})
		bound[i] = gateway.Bound(e, l)
	}
	advertised, err := gateway.Advertise(bound, c.Advertised)
	for i := range advertised {
		n.listeners[i].advertised = advertised[i]
	}
	return err
}

// run starts serving; the channel gets the error of the first part that fails.
func (n *node) run() <-chan error {
	n.watch(func() error {
		<-n.store.Failed()
		return n.store.Err()
	})
	n.watch(func() error { return n.router.Run(context.Background(), nil) })
	for _, l := range n.listeners {
		n.log.Info("listening", zap.String("on", l.name), zap.Stringer("address", l.Addr()), zap.String("advertised", l.advertised.Address()))
		n.watch(func() error { return n.kafka.Serve(context.Background(), l.name, l.Listener) })
	}
	if n.http != nil {
		n.log.Info("listening", zap.String("on", "http"), zap.Stringer("address", n.http.Addr()))
		n.watch(func() error { return n.admin.Serve(n.http) })
	}
	return n.failed
}

// watch runs a part and reports its failure, if it is the first.
func (n *node) watch(part func() error) {
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

// stop ends everything in the reverse order of its start: no more requests, answers
// to those that are held, the last sync. It takes no longer than ctx, by much.
func (n *node) stop(ctx context.Context) error {
	err := n.kafka.Shutdown(ctx)
	n.admin.Shutdown(ctx)
	return errors.Join(err, n.close())
}

// close lets go of what start took; it may be half of it.
func (n *node) close() error {
	for _, l := range n.listeners {
		_ = l.Close() // the server has closed it already, if there was one
	}
	if n.http != nil {
		_ = n.http.Close()
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
