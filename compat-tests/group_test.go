package compat

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// liveGroup is a group of member processes under a steady flow of records.
type liveGroup struct {
	t          *testing.T
	srv        *rig.Server
	adm        *kadm.Client
	ledger     *rig.Ledger
	members    []*rig.Member
	partitions int
	producer   *rig.Producer
	commits    func() error
}

var groups atomic.Int32

// unique makes a name that no other test of this process has.
func unique(t *testing.T, what string) string {
	return fmt.Sprintf("%s-%s-%d-%d", what, strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()), time.Now().UnixNano(), groups.Add(1))
}

// quietGroup is a group without a flow of records.
func quietGroup(t *testing.T, srv *rig.Server, partitions int) liveGroup {
	t.Helper()
	g := liveGroup{t: t, srv: srv, adm: rig.Admin(t, srv.Addr), partitions: partitions}
	g.ledger = rig.NewLedger(unique(t, "g"), unique(t, "t"))
	rig.CreateTopic(t, g.adm, g.ledger.Topic, int32(partitions))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the members reported:\n%s", g.ledger)
		}
	})
	return g
}

func newGroup(t *testing.T, srv *rig.Server, partitions int) *liveGroup {
	t.Helper()
	live := quietGroup(t, srv, partitions)
	g := &live
	g.producer = rig.Produce(t, srv.Addr, g.ledger.Topic, int32(partitions), 20*time.Millisecond)
	g.commits = rig.WatchCommits(t, g.adm, g.ledger.Group)
	return g
}

// start adds n members at once.
func (g *liveGroup) start(c rig.MemberConfig, n int) {
	g.t.Helper()
	for range n {
		name := fmt.Sprintf("%s-%d", c.Client, len(g.members))
		g.members = append(g.members, g.ledger.StartMember(g.t, g.srv.Addr, name, c))
	}
}

// present waits until the group has n members, whatever its state.
func (g *liveGroup) present(n int) {
	g.t.Helper()
	rig.Eventually(g.t, 20*time.Second, fmt.Sprintf("%d members are there", n), func() error {
		described, err := g.adm.DescribeGroups(g.t.Context(), g.ledger.Group)
		if err == nil && len(described[g.ledger.Group].Members) < n {
			err = fmt.Errorf("there are %d", len(described[g.ledger.Group].Members))
		}
		return err
	})
}

// settle waits until the group is Stable with n members, each partition has one owner,
// the members agree, and no member has more than its share.
func (g *liveGroup) settle(n int, timeout time.Duration) map[string][]int32 {
	g.t.Helper()
	var by map[string][]int32
	rig.Eventually(g.t, timeout, fmt.Sprintf("%d members share %d partitions", n, g.partitions), func() (err error) {
		if by, err = rig.Assignment(g.t.Context(), g.adm, g.ledger.Group, g.ledger.Topic, n, g.partitions); err != nil {
			return err
		}
		for member, parts := range by {
			if most := (g.partitions + n - 1) / n; len(parts) > most {
				return fmt.Errorf("%s has %v", member, parts)
			}
		}
		owners, err := g.ledger.Owners()
		if err != nil {
			g.t.Fatal(err)
		}
		if len(owners) != g.partitions {
			return fmt.Errorf("the members say they own %v", owners)
		}
		return nil
	})
	return by
}

// protocol fails unless the group has agreed on that strategy.
func (g *liveGroup) protocol(want string) {
	g.t.Helper()
	described, err := g.adm.DescribeGroups(g.t.Context(), g.ledger.Group)
	if err != nil {
		g.t.Fatal(err)
	}
	if got := described[g.ledger.Group].Protocol; got != want {
		g.t.Errorf("the group is on %q, want %q", got, want)
	}
}

// lifeCycle lets a fifth member come, the first one leave and the second one die.
func (g *liveGroup) lifeCycle(c rig.MemberConfig) {
	g.t.Helper()
	n := len(g.members)
	g.start(c, 1)
	g.settle(n+1, 30*time.Second)
	g.members[0].Leave()
	g.settle(n, 30*time.Second)
	g.members[1].Kill()
	g.settle(n-1, 30*time.Second)
}

// drain stops the producer and waits until each record has been processed.
func (g *liveGroup) drain() {
	g.t.Helper()
	ends, err := g.producer.Stop()
	if err != nil {
		g.t.Fatalf("produce: %v", err)
	}
	rig.Eventually(g.t, 20*time.Second, "every record is processed", func() error {
		seen := g.ledger.Processed()
		for p, end := range ends {
			for o := range end {
				if !seen[p][o] {
					return fmt.Errorf("record %d of partition %d (of %d) is not", o, p, end)
				}
			}
		}
		return nil
	})
}

// finish drains and judges the whole life of the group.
func (g *liveGroup) finish() {
	g.t.Helper()
	g.drain()
	if _, err := g.ledger.Owners(); err != nil {
		g.t.Error(err)
	}
	if err := g.commits(); err != nil {
		g.t.Error(err)
	}
	for _, m := range g.members {
		m.Kill()
	}
}
