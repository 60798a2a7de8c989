package compat

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// identity is what a schema registry says of itself when it joins.
func identity(host string, port int, eligible bool) string {
	return fmt.Sprintf(`{"host":%q,"port":%d,"master_eligibility":%v,"scheme":"http","version":1}`, host, port, eligible)
}

// registry makes a member as Confluent's or Karapace's registry is one.
func registry(t *testing.T, srv *rig.Server, group, identity string, karapace bool) *peer {
	m := newPeer(t, srv, group)
	m.protocolType, m.protocols = "sr", protocols("v0", identity)
	if karapace {
		m.joinVersion = 5
	}
	return m
}

type election struct {
	Error          int
	Master         string
	MasterIdentity struct {
		Host string
		Port int
	} `json:"master_identity"`
}

// elect lets the leader of the round that the last member starts sync with an empty
// list, and returns what every member was told.
func elect(t *testing.T, peers ...*peer) election {
	t.Helper()
	stable(t, peers[:len(peers)-1]...)
	joinLast(peers...)
	for _, p := range peers[1:] {
		p.sendSync()
	}
	peers[0].sendSync()
	var first string
	for i, p := range peers {
		got := p.synced(errNone)
		if i == 0 {
			first = got
		}
		if got != first {
			t.Errorf("%q and %q are told different things", first, got)
		}
	}
	var e election
	if err := json.Unmarshal([]byte(first), &e); err != nil {
		t.Fatalf("%q: %v", first, err)
	}
	return e
}

// TestSchemaRegistryElection: the leader of an `sr` group that sends no assignments
// gets the election that registries make themselves.
func TestSchemaRegistryElection(t *testing.T) {
	srv := forRaw(t)
	ours(t, srv) // Kafka hands out empty bytes
	for _, karapace := range []bool{false, true} {
		t.Run(fmt.Sprint("karapace ", karapace), func(t *testing.T) {
			g := unique(t, "registry")
			b := registry(t, srv, g, identity("b", 8081, false), karapace)
			c := registry(t, srv, g, identity("c", 8081, true), karapace)
			d := registry(t, srv, g, identity("d", 8081, true), karapace)
			e := elect(t, b, d, c)
			if e.Error != 0 || e.Master != c.id || e.MasterIdentity.Host != "c" {
				t.Errorf("the eligible one with the smallest URL is %q: %+v", c.id, e)
			}
		})
	}
	t.Run("duplicate URLs", func(t *testing.T) {
		g := unique(t, "registry")
		e := elect(t, registry(t, srv, g, identity("a", 1, true), false), registry(t, srv, g, identity("a", 1, true), false))
		if e.Error != 1 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("nobody eligible", func(t *testing.T) {
		g := unique(t, "registry")
		e := elect(t, registry(t, srv, g, identity("a", 1, false), false), registry(t, srv, g, identity("b", 1, false), false))
		if e.Error != 0 || e.Master != "" {
			t.Errorf("%+v", e)
		}
	})
}

// TestSchemaRegistryRelay: what the leader does send reaches every member as it is,
// whatever the group is called.
func TestSchemaRegistryRelay(t *testing.T) {
	srv := forRaw(t)
	for _, name := range []string{"schema-registry", "schema-registry-prod"} {
		m1 := registry(t, srv, unique(t, name), identity("a", 1, true), false)
		m2 := registry(t, srv, m1.group, identity("b", 1, true), true)
		stable(t, m1, m2) // each gets exactly the bytes meant for it
	}
}

// TestEmptyAssignments: the leader of any other group may assign nothing; everyone gets
// empty bytes and no further round begins.
func TestEmptyAssignments(t *testing.T) {
	srv := forRaw(t)
	m1, m2 := newPeer(t, srv, unique(t, "g")), newPeer(t, srv, "")
	m2.group = m1.group
	stable(t, m1, m2)
	m1.park()
	m2.join()
	m1.joined()
	m2.sendSync()
	m1.sendSync()
	for _, p := range []*peer{m1, m2} {
		if got := p.synced(errNone); got != "" {
			t.Errorf("%q gets %q", p.id, got)
		}
		p.code("Heartbeat", p.heartbeat(), errNone)
	}
}
