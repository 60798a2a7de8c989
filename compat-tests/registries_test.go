package compat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// electorate is a group of registries that elect by themselves.
type electorate struct {
	t     *testing.T
	srv   *rig.Server
	group string
	nodes []*rig.Registry
}

func (e *electorate) start(c rig.RegistryConfig) *rig.Registry {
	e.t.Helper()
	c.Group = e.group
	n := rig.StartRegistry(e.t, e.srv.Addr, c)
	e.nodes = append(e.nodes, n)
	return n
}

// three starts nodes at ports 8081, 8082 and 10000 of the hosts, all at once. In the order
// of text, 10000 comes before 8081.
func (e *electorate) three(kinds ...*rig.RegistryKind) {
	e.t.Helper()
	for i, port := range []int{8082, 10000, 8081} {
		e.start(rig.RegistryConfig{Kind: kinds[i%len(kinds)], Host: "host", Port: port})
	}
}

// remove ends a node by one of its methods and forgets it.
func (e *electorate) remove(n *rig.Registry, how func(*rig.Registry)) {
	how(n)
	for i := range e.nodes {
		if e.nodes[i] == n {
			e.nodes = append(e.nodes[:i:i], e.nodes[i+1:]...)
			return
		}
	}
}

// agree waits until all nodes have been told the same in the same generation, which fits.
func (e *electorate) agree(what string, fits func(rig.Election) error) rig.State {
	e.t.Helper()
	var first rig.State
	rig.Eventually(e.t, 30*time.Second, what, func() error {
		first = e.nodes[0].State()
		for _, n := range e.nodes {
			s := n.State()
			if s.Rounds == 0 || s.Told != first.Told || s.Generation != first.Generation {
				return fmt.Errorf("%s was told %q in generation %d, %s %q in %d", e.nodes[0], first.Told, first.Generation, n, s.Told, s.Generation)
			}
		}
		return fits(first.Election)
	})
	return first
}

// leads waits until all agree that n leads.
func (e *electorate) leads(n *rig.Registry) rig.State {
	e.t.Helper()
	return e.agree(n.String()+" leads", func(el rig.Election) error {
		if el.Error != 0 || el.Master != n.State().ID || el.Identity == nil || el.Identity.URL() != n.URL() {
			return fmt.Errorf("elected is %q (%v), error %d", el.Master, el.Identity, el.Error)
		}
		return nil
	})
}

// registryKinds are who takes part in an election: one kind, or both.
var registryKinds = []struct {
	name  string
	kinds []*rig.RegistryKind
}{
	{"Confluent", []*rig.RegistryKind{rig.Confluent}},
	{"Karapace", []*rig.RegistryKind{rig.Karapace}},
	{"both", []*rig.RegistryKind{rig.Confluent, rig.Karapace}},
}

// TestRegistries: members with the requests, the bytes and the reactions of schema
// registries elect their leader.
func TestRegistries(t *testing.T) {
	srv := rig.Start(t)
	for _, k := range registryKinds {
		for _, c := range []struct {
			name string
			test func(*electorate, ...*rig.RegistryKind)
		}{
			{"three nodes", registryThree}, {"leave", registryLeaves}, {"kill", registryKilled}, {"restart", registryRestarts},
			{"none eligible", registryNoneEligible}, {"later node", registryLater},
		} {
			if k.name == "both" && c.name == "none eligible" {
				continue // Karapace cannot read what Confluent's then says
			}
			t.Run(k.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.test(&electorate{t: t, srv: srv, group: unique(t, "schema-registry")}, k.kinds...)
				recordRegistries(t, c.name, k.kinds...)
			})
		}
	}
	t.Run("Confluent/duplicate URL", func(t *testing.T) {
		t.Parallel()
		registryDuplicate(&electorate{t: t, srv: srv, group: unique(t, "schema-registry")})
		recordRegistries(t, "duplicate URL", rig.Confluent)
	})
	t.Run("Confluent/sticky", func(t *testing.T) {
		t.Parallel()
		registrySticky(&electorate{t: t, srv: srv, group: unique(t, "schema-registry")})
		recordRegistries(t, "sticky", rig.Confluent)
	})
}

// recordRegistries notes an election for each kind that took part.
func recordRegistries(t *testing.T, scenario string, kinds ...*rig.RegistryKind) {
	t.Helper()
	with := "alone"
	if len(kinds) > 1 {
		with = "both in one group"
	}
	for _, k := range kinds {
		record(t, k.Name+" (member)", k.Version, "registries: "+scenario, with)
	}
}

// registryThree: the smallest URL leads, whoever leads the group in Kafka's sense.
func registryThree(e *electorate, kinds ...*rig.RegistryKind) {
	e.three(kinds...)
	state := e.leads(e.nodes[1])
	described := describe(rig.Dial(e.t, e.srv.Addr), e.group)
	if described.State != "Stable" || described.ProtocolType != "sr" || described.Protocol != "v0" || len(described.Members) != 3 {
		e.t.Errorf("the group is described as %s, %s, %s with %d members", described.State, described.ProtocolType, described.Protocol, len(described.Members))
	}
	for _, m := range described.Members {
		if string(m.MemberAssignment) != state.Told {
			e.t.Errorf("%q is described with %q, and was told %q", m.MemberID, m.MemberAssignment, state.Told)
		}
	}
}

// registryLater: nodes that come one after the other elect again each time; the one that
// elects is not the one that is elected.
func registryLater(e *electorate, kinds ...*rig.RegistryKind) {
	first := e.start(rig.RegistryConfig{Kind: kinds[0], Host: "c", Port: 1})
	e.leads(first)
	e.leads(e.start(rig.RegistryConfig{Kind: kinds[len(kinds)-1], Host: "b", Port: 1}))
	e.start(rig.RegistryConfig{Kind: kinds[0], Host: "a", Port: 1, NotEligible: true})
	rig.Eventually(e.t, 20*time.Second, "three are told", func() error {
		if e.nodes[2].State().Rounds == 0 {
			return fmt.Errorf("%s was not", e.nodes[2])
		}
		return nil
	})
	e.leads(e.nodes[1])
	if !first.State().Elects {
		e.t.Error("the first that came does not elect any more")
	}
}

// registryLeaves: when the leader leaves, the next one leads before a session could end.
func registryLeaves(e *electorate, kinds ...*rig.RegistryKind) {
	e.three(kinds...)
	e.leads(e.nodes[1])
	began := time.Now()
	e.remove(e.nodes[1], (*rig.Registry).Leave)
	e.leads(e.nodes[1])
	if d := time.Since(began); d > rig.RegistrySession {
		e.t.Errorf("it took %v to elect again, longer than a session", d)
	}
}

// registryKilled: when the leader is killed, the next one leads once its session has ended.
func registryKilled(e *electorate, kinds ...*rig.RegistryKind) {
	e.three(kinds...)
	e.leads(e.nodes[1])
	e.remove(e.nodes[1], (*rig.Registry).Kill)
	e.leads(e.nodes[1])
}

// registryRestarts: a node that is killed and comes back at once, under a new member id,
// does not meet itself.
func registryRestarts(e *electorate, kinds ...*rig.RegistryKind) {
	e.three(kinds...)
	e.leads(e.nodes[1])
	e.remove(e.nodes[1], (*rig.Registry).Kill)
	back := e.start(rig.RegistryConfig{Kind: kinds[len(kinds)-1], Host: "host", Port: 10000})
	e.leads(back)
	for _, n := range e.nodes {
		if d := n.State().Duplicates; d != 0 {
			e.t.Errorf("%s was told of duplicate URLs %d times", n, d)
		}
	}
}

// registryNoneEligible: with nobody to lead, all know that.
func registryNoneEligible(e *electorate, kinds ...*rig.RegistryKind) {
	for _, host := range []string{"a", "b"} {
		e.start(rig.RegistryConfig{Kind: kinds[0], Host: host, Port: 1, NotEligible: true})
	}
	e.agree("nobody leads", func(el rig.Election) error {
		if el.Error != 0 || el.Identity != nil && el.Identity.Eligible || kinds[0] == rig.Confluent && el.Master != "" {
			return fmt.Errorf("elected is %q (%v), error %d", el.Master, el.Identity, el.Error)
		}
		return nil
	})
}

// registryDuplicate: two nodes with one URL are told so, and one that leaves ends it.
func registryDuplicate(e *electorate) {
	e.start(rig.RegistryConfig{Kind: rig.Confluent, Host: "a", Port: 1})
	e.leads(e.nodes[0])
	twin := e.start(rig.RegistryConfig{Kind: rig.Confluent, Host: "a", Port: 1})
	e.agree("all are told of the duplicate", func(el rig.Election) error {
		if el.Error != 1 || el.Master != "" {
			return fmt.Errorf("error %d, %q", el.Error, el.Master)
		}
		return nil
	})
	e.remove(twin, (*rig.Registry).Leave)
	e.leads(e.nodes[0])
}

// registrySticky: a leader that says so stays when a smaller URL comes; its metadata has
// changed meanwhile, which the coordinator passes on.
func registrySticky(e *electorate) {
	leader := e.start(rig.RegistryConfig{Kind: rig.Confluent, Host: "b", Port: 1, Sticky: true})
	e.leads(leader)
	for _, host := range []string{"a", "c"} {
		n := e.start(rig.RegistryConfig{Kind: rig.Confluent, Host: host, Port: 1, Sticky: true})
		rig.Eventually(e.t, 20*time.Second, n.String()+" is told", func() error {
			if n.State().Rounds == 0 {
				return fmt.Errorf("it was not")
			}
			return nil
		})
		e.leads(leader)
	}
	e.remove(leader, (*rig.Registry).Leave)
	e.leads(e.nodes[0])
}

// TestRegistriesSurviveTheGateway: SIGKILL and a restart of the gateway change neither the
// leader nor, for those who go on with their generation, anything else.
func TestRegistriesSurviveTheGateway(t *testing.T) {
	for _, k := range registryKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			srv := rig.Start(t)
			ours(t, srv)
			e := &electorate{t: t, srv: srv, group: unique(t, "schema-registry")}
			e.three(k.kinds...)
			before := e.leads(e.nodes[1])
			srv.Kill()
			srv.Restart()
			beats := e.nodes[0].State().Beats
			rig.Eventually(t, 20*time.Second, "heartbeats go on", func() error {
				if now := e.nodes[0].State().Beats; now < beats+3 {
					return fmt.Errorf("there were %d and are %d", beats, now)
				}
				return nil
			})
			after := e.leads(e.nodes[1])
			if k.name == "Confluent" && (after.Generation != before.Generation || after.Told != before.Told) {
				t.Errorf("generation %d has become %d, %q has become %q", before.Generation, after.Generation, before.Told, after.Told)
			}
			for _, n := range e.nodes {
				if d := n.State().Duplicates; d != 0 {
					t.Errorf("%s was told of duplicate URLs %d times", n, d)
				}
			}
			recordRegistries(t, "gateway killed", k.kinds...)
		})
	}
}

// TestJavaRegistries: members on the base class of Kafka's clients that Confluent's registry
// is made of, by themselves and with others.
func TestJavaRegistries(t *testing.T) {
	needKafka(t)
	srv, jvm := rig.Start(t), rig.StartJVM(t)
	run := func(t *testing.T, class string, args ...string) {
		t.Helper()
		if status, out := jvm.Run(t, class, append([]string{srv.Addr}, args...)...); status != 0 {
			t.Errorf("%s %v:\n%s", class, args, out)
		}
	}
	t.Run("alone", func(t *testing.T) {
		run(t, "RegistryMembers", unique(t, "schema-registry"), "a", "b", "b", "a", "c")
		recordKafka(t, "AbstractCoordinator as a schema registry", "three nodes, leave")
	})
	t.Run("with others", func(t *testing.T) {
		e := &electorate{t: t, srv: srv, group: unique(t, "schema-registry")}
		e.start(rig.RegistryConfig{Kind: rig.Karapace, Host: "b", Port: 1})
		e.leads(e.nodes[0])
		run(t, "RegistryMembers", e.group, "b", "b", "c", "d") // the smaller leads
		run(t, "RegistryMembers", e.group, "a", "b", "c", "a") // comes, leads and leaves
		e.leads(e.nodes[0])
		recordKafka(t, "AbstractCoordinator as a schema registry", "with Karapace")
	})
	t.Run("store", func(t *testing.T) {
		topic := unique(t, "schemas")
		run(t, "RegistryStore", topic, "50")
		if !srv.External() {
			srv.Kill()
			srv.Restart()
		}
		run(t, "RegistryStore", topic, "10")
		for _, other := range []struct {
			policy     string
			partitions int32
			says       string
		}{{"delete", 1, "cleanup.policy: delete, want compact"}, {"compact", 2, "partitions: 2, want 1"}} {
			topic := unique(t, "schemas")
			rig.CreateTopicWith(t, srv.Addr, topic, other.partitions, map[string]string{"cleanup.policy": other.policy})
			if _, out := jvm.Run(t, "RegistryStore", srv.Addr, topic, "1"); !strings.Contains(out, other.says) {
				t.Errorf("a registry does not see %q:\n%s", other.says, out)
			}
		}
		recordKafka(t, "start of a schema registry, its topic read back within 500 ms", "new topic, after a kill, wrong topics")
	})
}
