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

// TestS1_21RollingUpgrade (S1.21): the live members of a group on range are replaced one by one
// by members that offer cooperative-sticky and range, and those by members that offer
// cooperative-sticky alone. The group changes its protocol in the second round, when
// the last member that knows only range is gone, and never stops for good.
func TestS1_21RollingUpgrade(t *testing.T) {
	srv := rig.Start(t)
	t.Run("franz-go", func(t *testing.T) {
		t.Parallel()
		c := rig.MemberConfig{Client: "franz-go", Strategy: "range", ClientID: "upgrade"}
		g := newGroup(t, srv, 6)
		g.start(c, 3)
		g.settle(3, 20*time.Second)
		g.protocol("range")
		for _, next := range []string{"cooperative-sticky,range", "cooperative-sticky"} {
			old := g.members[len(g.members)-3:]
			c.Strategy = next
			for i, m := range old {
				m.Leave()
				g.start(c, 1)
				g.settle(3, 30*time.Second)
				if next != "cooperative-sticky" && i < len(old)-1 {
					g.protocol("range")
				}
			}
			g.protocol("cooperative-sticky")
		}
		g.finish()
	})
}

// TestS1_21Cooperative (S1.21): in a cooperative group of 3, then 4, then 2 members, nobody
// gives up a partition that it keeps, so those flow on through each rebalance.
func TestS1_21Cooperative(t *testing.T) {
	srv := rig.Start(t)
	for _, client := range []string{"franz-go", "sarama"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			c := rig.MemberConfig{Client: client, Strategy: "cooperative-sticky", ClientID: client}
			g := newGroup(t, srv, 12)
			g.start(c, 3)
			g.settle(3, 20*time.Second)
			released := g.ledger.Releases()
			g.start(c, 1)
			g.settle(4, 30*time.Second)
			if n := g.ledger.Releases() - released; n != 3 {
				t.Errorf("for a fourth member %d partitions of 12 were given up, want its 3", n)
			}
			released = g.ledger.Releases()
			g.members[0].Kill()
			g.members[1].Kill()
			g.settle(2, 30*time.Second)
			if n := g.ledger.Releases() - released; n != 0 {
				t.Errorf("when two members died, the others gave up %d partitions", n)
			}
			g.finish()
		})
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
