package assignor

import (
	"encoding/json"
	"fmt"
	"testing"
)

// confluent returns the metadata that a Confluent registry joins with.
func confluent(host string, port int, eligible, leader bool) []byte {
	return fmt.Appendf(nil, `{"version":1,"host":%q,"port":%d,"master_eligibility":%t,"scheme":"http","leader":%t}`,
		host, port, eligible, leader)
}

// karapace returns the metadata that a Karapace joins with.
func karapace(host string, port int, eligible bool) []byte {
	return fmt.Appendf(nil, `{"version":2,"karapace_version":"6.2.0","host":%q,"port":%d,"scheme":"http","master_eligibility":%t}`,
		host, port, eligible)
}

func named(metadata ...[]byte) []Member {
	members := make([]Member, len(metadata))
	for i, m := range metadata {
		members[i] = Member{ID: fmt.Sprintf("m%d", i+1), Metadata: m}
	}
	return members
}

// The election of requirement S3.8 in all its cases. Where all members get the
// same bytes, want has one entry.
func TestSchemaRegistryElection(t *testing.T) {
	for _, tc := range []struct {
		name    string
		members []Member
		want    []string
	}{
		{
			"one member", named(confluent("a", 8081, true, false)),
			[]string{`{"version":1,"error":0,"master":"m1","master_identity":{"version":1,"host":"a","port":8081,"master_eligibility":true,"scheme":"http","leader":false}}`},
		},
		{
			"the smallest URL of the eligible ones, whoever joined first",
			named(confluent("a", 8081, false, false), confluent("c", 8081, true, false), confluent("b", 8081, true, false)),
			[]string{`{"version":1,"error":0,"master":"m3","master_identity":{"version":1,"host":"b","port":8081,"master_eligibility":true,"scheme":"http","leader":false}}`},
		},
		{
			"URLs are compared as strings: port 10000 before 8081",
			named(confluent("a", 8081, true, false), confluent("a", 10000, true, false)),
			[]string{`{"version":1,"error":0,"master":"m2","master_identity":{"version":1,"host":"a","port":10000,"master_eligibility":true,"scheme":"http","leader":false}}`},
		},
		{
			"a single present primary stays",
			named(confluent("a", 8081, true, false), confluent("b", 8081, true, true)),
			[]string{`{"version":1,"error":0,"master":"m2","master_identity":{"version":1,"host":"b","port":8081,"master_eligibility":true,"scheme":"http","leader":true}}`},
		},
		{
			"two that claim to be primary count for nothing",
			named(confluent("b", 8081, true, true), confluent("c", 8081, true, true), confluent("a", 8081, true, false)),
			[]string{`{"version":1,"error":0,"master":"m3","master_identity":{"version":1,"host":"a","port":8081,"master_eligibility":true,"scheme":"http","leader":false}}`},
		},
		{
			"a claim of an ineligible member counts for nothing",
			named(confluent("a", 8081, false, true), confluent("b", 8081, true, false)),
			[]string{`{"version":1,"error":0,"master":"m2","master_identity":{"version":1,"host":"b","port":8081,"master_eligibility":true,"scheme":"http","leader":false}}`},
		},
		{
			"equal URLs, also of an ineligible member, are error 1",
			named(confluent("b", 8081, true, false), confluent("a", 8081, true, false), confluent("b", 8081, false, false)),
			[]string{`{"version":1,"error":1,"master":"m2","master_identity":{"version":1,"host":"a","port":8081,"master_eligibility":true,"scheme":"http","leader":false}}`},
		},
		{
			"nobody eligible, Confluent: no primary",
			named(confluent("a", 8081, false, false), confluent("b", 8081, false, false)),
			[]string{`{"version":1,"error":0}`},
		},
		{
			"nobody eligible, Karapace: an ineligible primary, which means none",
			named(karapace("b", 8081, false), karapace("a", 8081, false)),
			[]string{`{"version":1,"error":0,"master":"m2","master_identity":{"version":2,"karapace_version":"6.2.0","host":"a","port":8081,"scheme":"http","master_eligibility":false}}`},
		},
		{
			"nobody eligible, both kinds: each its own",
			named(karapace("b", 8081, false), confluent("a", 8081, false, false)),
			[]string{
				`{"version":1,"error":0,"master":"m2","master_identity":{"version":1,"host":"a","port":8081,"master_eligibility":false,"scheme":"http","leader":false}}`,
				`{"version":1,"error":0}`,
			},
		},
		{
			"both kinds with an eligible member: one answer",
			named(confluent("b", 8081, true, false), karapace("a", 8081, true)),
			[]string{`{"version":1,"error":0,"master":"m2","master_identity":{"version":2,"karapace_version":"6.2.0","host":"a","port":8081,"scheme":"http","master_eligibility":true}}`},
		},
		{
			"unreadable metadata is no candidate",
			named(nil, []byte("junk"), []byte(`{"host":"a"}`), []byte(`null`), []byte(`[]`),
				[]byte(`{"host":"a","port":"8081","scheme":"http","master_eligibility":true}`),
				[]byte(`{"host":"a","port":8081,"scheme":null,"master_eligibility":true}`),
				[]byte(`{"Host":"a","port":8081,"scheme":"http","master_eligibility":true}`),
				confluent("z", 1, true, false)),
			[]string{`{"version":1,"error":0,"master":"m9","master_identity":{"version":1,"host":"z","port":1,"master_eligibility":true,"scheme":"http","leader":false}}`},
		},
		{
			"no readable member", named(nil, []byte(`{"karapace_version":"1"}`)),
			[]string{`{"version":1,"error":0}`},
		},
		{"no members", nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := SchemaRegistry(tc.members)
			if len(got) != len(tc.members) {
				t.Fatalf("%d assignments for %d members", len(got), len(tc.members))
			}
			for i, g := range got {
				want := tc.want[min(i, len(tc.want)-1)]
				if string(g) != want {
					t.Errorf("member %d\n got %s\nwant %s", i+1, g, want)
				}
			}
		})
	}
}

// Whatever bytes members bring, each gets one readable assignment, the named
// primary is a member whose metadata names it, and a second call says the same.
func FuzzSchemaRegistry(f *testing.F) {
	f.Add(confluent("a", 8081, true, false), karapace("b", 8081, true), []byte("junk"))
	f.Add(confluent("a", 8081, false, false), karapace("a", 8081, false), []byte(nil))
	f.Add([]byte(`{"host":"<","port":-1,"scheme":"\u0000","master_eligibility":true}`), []byte(`{}`), []byte(`1`))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		members := named(a, b, c)
		got := SchemaRegistry(members)
		again := SchemaRegistry(members)
		if len(got) != len(members) {
			t.Fatalf("%d assignments", len(got))
		}
		for i, g := range got {
			if string(g) != string(again[i]) {
				t.Fatalf("not deterministic: %s and %s", g, again[i])
			}
			var read struct {
				Version, Error int
				Master         string
				MasterIdentity json.RawMessage `json:"master_identity"`
			}
			if err := json.Unmarshal(g, &read); err != nil {
				t.Fatalf("unreadable assignment %q: %v", g, err)
			}
			if (read.Master == "") != (read.MasterIdentity == nil) {
				t.Fatalf("primary and identity do not go together: %s", g)
			}
			if read.Master == "" {
				continue
			}
			at := int(read.Master[1] - '1')
			want, _ := readIdentity(members[at].Metadata)
			have, ok := readIdentity(read.MasterIdentity)
			if !ok || have != want {
				t.Fatalf("identity of %s is %+v, not %+v", read.Master, have, want)
			}
		}
	})
}
