package event

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Config is what a member program gets as its one argument, a JSON object, whatever
// language it is written in. With Produce it is a producer, which ends by itself; else
// it is a member of a group, which leaves on SIGTERM.
type Config struct {
	// Client is the library to use, Addr the bootstrap address.
	Client string `json:"client"`
	Addr   string `json:"addr"`
	Topic  string `json:"topic"`
	// ClientID goes into request headers.
	ClientID string `json:"clientId"`

	// What follows is for members. Strategy is range, roundrobin, sticky or
	// cooperative-sticky (franz-go and Sarama take several, with commas); InstanceID
	// makes the member static.
	Group      string `json:"group,omitempty"`
	Strategy   string `json:"strategy,omitempty"`
	InstanceID string `json:"instanceId,omitempty"`
	// SessionMs, RebalanceMs and HeartbeatMs are the timeouts and the interval.
	SessionMs   int `json:"sessionMs,omitempty"`
	RebalanceMs int `json:"rebalanceMs,omitempty"`
	HeartbeatMs int `json:"heartbeatMs,omitempty"`
	// Committed makes the member read committed transactions only.
	Committed bool `json:"committed,omitempty"`

	// Produce is how many records to write, in turn to each of the Partitions where the
	// client leaves it to its user. Their values are different and begin with PREFIX and a dot.
	Produce    int `json:"produce,omitempty"`
	Partitions int `json:"partitions,omitempty"`
	Prefix     int `json:"prefix,omitempty"`
	// Compression is none, gzip, snappy, lz4 or zstd.
	Compression string `json:"compression,omitempty"`
	Idempotent  bool   `json:"idempotent,omitempty"`
	// Transactional is a transactional id: all records are one transaction, which Abort ends
	// badly.
	Transactional string `json:"transactional,omitempty"`
	Abort         bool   `json:"abort,omitempty"`
}

// Session is SessionMs as a duration.
func (c Config) Session() time.Duration { return time.Duration(c.SessionMs) * time.Millisecond }

// Rebalance is RebalanceMs as a duration.
func (c Config) Rebalance() time.Duration { return time.Duration(c.RebalanceMs) * time.Millisecond }

// Heartbeat is HeartbeatMs as a duration.
func (c Config) Heartbeat() time.Duration { return time.Duration(c.HeartbeatMs) * time.Millisecond }

// Value is the value of the n-th record of a producer. It is long enough to become
// shorter with every codec: some clients do not compress what would become longer.
func (c Config) Value(n int) string {
	return fmt.Sprintf("%d.%d.%s", c.Prefix, n, strings.Repeat("x", 50))
}

// Partition is the partition of the n-th record of a producer.
func (c Config) Partition(n int) int32 { return int32(n % c.Partitions) }

// Parse reads the program's argument; the context ends with SIGTERM, which asks a member
// to leave its group in an orderly way.
func Parse() (Config, context.Context) {
	var c Config
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "want one argument, a JSON object")
		os.Exit(2)
	}
	if err := json.Unmarshal([]byte(os.Args[1]), &c); err != nil {
		fmt.Fprintln(os.Stderr, "the argument:", err)
		os.Exit(2)
	}
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	return c, ctx
}
