// Package compat holds the tests that real clients decide: each starts Rollcall as a
// process of its own and members of a group as others.
package compat

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

var (
	runs    = flag.Int("runs", 1, "how often each four-member group is formed")
	rdkafka = flag.Bool("rdkafka", false, "include librdkafka, which needs a C compiler")
	real    = flag.Bool("real", false, "run the clients and tools that tools/install installs")
	full    = flag.Bool("full", false, "include what takes longer: every strategy's life cycle, restarts, mixed groups")
)

// strategies are the assignment strategies that a client library has.
var strategies = map[string][]string{
	"sarama":     {"range", "roundrobin", "sticky", "cooperative-sticky"},
	"franz-go":   {"range", "roundrobin", "sticky", "cooperative-sticky"},
	"kafka-go":   {"range", "roundrobin"},
	"librdkafka": {"range", "roundrobin", "cooperative-sticky"},
}

func clients() []string {
	c := []string{"sarama", "franz-go", "kafka-go"}
	if *rdkafka {
		c = append(c, "librdkafka")
	}
	return c
}

// TestGroupOfFour: four members with one client id that start within 300 ms get
// exactly one of four partitions each; then a fifth comes, one leaves, one is killed.
func TestGroupOfFour(t *testing.T) {
	srv := rig.Start(t)
	for _, client := range clients() {
		for _, strategy := range strategies[client] {
			for run := range *runs {
				t.Run(fmt.Sprintf("%s/%s/%d", client, strategy, run), func(t *testing.T) {
					t.Parallel()
					g := newGroup(t, srv, 4)
					g.start(rig.MemberConfig{Client: client, Strategy: strategy, ClientID: client}, 4)
					g.settle(4, 20*time.Second)
					if run == 0 && (*full || strategy == "range") {
						g.lifeCycle(rig.MemberConfig{Client: client, Strategy: strategy, ClientID: client})
					}
					g.finish()
					record(t, client, g.ledger.Version(client+"-0"), "group of four", strategy)
				})
			}
		}
	}
}

// TestMixedGroup: one member of each client library in one group on range. kafka-go and
// librdkafka cannot read each other's subscriptions (it is not the broker that reads
// them), so a leader that can, Sarama and after it franz-go, has to be there first.
func TestMixedGroup(t *testing.T) {
	if !*full {
		skip(t, "mixed group", "it runs with -full")
	}
	srv := rig.Start(t)
	g := newGroup(t, srv, 4)
	for _, client := range clients() {
		g.start(rig.MemberConfig{Client: client, Strategy: "range", ClientID: "mixed"}, 1)
		g.present(len(g.members))
	}
	g.settle(len(clients()), 30*time.Second)
	g.lifeCycle(rig.MemberConfig{Client: "sarama", Strategy: "range", ClientID: "mixed"})
	g.finish()
	for i, client := range clients() {
		record(t, client, g.ledger.Version(fmt.Sprintf("%s-%d", client, i)), "mixed group", "range")
	}
}

// TestMembersSurviveTheGateway: SIGKILL and a restart change neither the generation
// nor the assignment of a Stable group.
func TestMembersSurviveTheGateway(t *testing.T) {
	for _, client := range clients() {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			srv := rig.Start(t)
			ours(t, srv)
			g := newGroup(t, srv, 4)
			g.start(rig.MemberConfig{Client: client, Strategy: "range", ClientID: client, Session: 10 * time.Second}, 3)
			before := g.settle(3, 20*time.Second)
			claims := strings.Count(g.ledger.String(), "claim")
			srv.Kill()
			srv.Restart()
			after := g.settle(3, 20*time.Second)
			if fmt.Sprint(before) != fmt.Sprint(after) {
				t.Errorf("the assignment changed from %v to %v", before, after)
			}
			g.drain()
			// kafka-go ends its generation by itself when a heartbeat fails, and rejoins.
			if now := strings.Count(g.ledger.String(), "claim"); now != claims && client != "kafka-go" {
				t.Errorf("the restart made the members claim partitions anew\n%s", g.ledger)
			}
			record(t, client, g.ledger.Version(client+"-0"), "gateway killed", "range")
		})
	}
}
