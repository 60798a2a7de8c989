package event

import (
	"context"
	"flag"
	"os/signal"
	"syscall"
	"time"
)

// Parse reads the command line; the context ends with SIGTERM, which asks a member
// to leave its group in an orderly way.
func Parse() (Flags, context.Context) {
	var f Flags
	flag.StringVar(&f.Client, "client", "", "client library")
	flag.StringVar(&f.Addr, "addr", "", "bootstrap address")
	flag.StringVar(&f.Group, "group", "", "group id")
	flag.StringVar(&f.Topic, "topic", "", "topic")
	flag.StringVar(&f.Strategy, "strategy", "range", "range, roundrobin, sticky or cooperative-sticky")
	flag.StringVar(&f.ClientID, "client-id", "member", "client id")
	flag.StringVar(&f.InstanceID, "instance-id", "", "group.instance.id")
	flag.DurationVar(&f.Session, "session", 6*time.Second, "session timeout")
	flag.DurationVar(&f.Rebalance, "rebalance", 20*time.Second, "rebalance timeout")
	flag.DurationVar(&f.Heartbeat, "heartbeat", 300*time.Millisecond, "heartbeat interval")
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	return f, ctx
}
