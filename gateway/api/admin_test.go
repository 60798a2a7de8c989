package api

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const noOperations = -1 << 31

func TestB89_B90_DescribeGroups(t *testing.T) {
	member := group.DescribedMember{
		MemberID: "m", InstanceID: ptr("i"), ClientID: "c", ClientHost: "/10.0.0.2", Metadata: []byte{0, 0xff}, Assignment: []byte{1},
	}
	for v := int16(0); v <= 6; v++ {
		for state, want := range map[group.State]string{
			group.Empty: "Empty", group.PreparingRebalance: "PreparingRebalance", group.CompletingRebalance: "CompletingRebalance", group.Stable: "Stable",
		} {
			s := newServer()
			s.groups.reply = func(string, group.Event) group.Reply {
				return group.Reply{Body: &group.DescribeReply{State: state, ProtocolType: "sr", Protocol: "v0", Members: []group.DescribedMember{member}}}
			}
			got := s.ask(t, v, &kmsg.DescribeGroupsRequest{Groups: []string{"g"}}).(*kmsg.DescribeGroupsResponse).Groups[0]
			wanted := kmsg.DescribeGroupsResponseGroup{
				Group: "g", State: want, ProtocolType: "sr", Protocol: "v0", AuthorizedOperations: noOperations,
				Members: []kmsg.DescribeGroupsResponseGroupMember{{
					MemberID: "m", ClientID: "c", ClientHost: "/10.0.0.2", ProtocolMetadata: []byte{0, 0xff}, MemberAssignment: []byte{1},
				}},
			}
			if v >= 4 {
				wanted.Members[0].InstanceID = ptr("i")
			}
			if !reflect.DeepEqual(got, wanted) {
				t.Errorf("v%d:\n got %+v\nwant %+v", v, got, wanted)
			}
		}
	}
}

// Scenario 20: a group that does not exist is Dead, and from version 6 on an error.
func TestDescribeGroupsUnknown(t *testing.T) {
	for v := int16(0); v <= 6; v++ {
		s := newServer()
		s.groups.reply = func(string, group.Event) group.Reply {
			return group.Reply{Code: group.GroupIDNotFound, Body: &group.DescribeReply{State: group.Dead}}
		}
		req := &kmsg.DescribeGroupsRequest{Groups: []string{"nix"}, IncludeAuthorizedOperations: true}
		got := s.ask(t, v, req).(*kmsg.DescribeGroupsResponse).Groups[0]
		want := kmsg.DescribeGroupsResponseGroup{Group: "nix", State: "Dead", AuthorizedOperations: noOperations}
		switch {
		case v >= 6:
			want.ErrorCode, want.ErrorMessage = 69, ptr("Group nix not found.")
		case v >= 3:
			want.AuthorizedOperations = 3400
		}
		got.Members = nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("v%d:\n got %+v\nwant %+v", v, got, want)
		}
	}
}

func TestDescribeGroupsOperations(t *testing.T) {
	s := newServer()
	s.groups.reply = func(string, group.Event) group.Reply {
		return group.Reply{Body: &group.DescribeReply{State: group.Empty}}
	}
	s.Auth = denier{{OpDelete, ResourceGroup, ""}, {OpRead, ResourceGroup, "h"}, {OpDescribe, ResourceGroup, "secret"}}
	for _, asked := range []bool{false, true} {
		want := []int32{noOperations, noOperations, noOperations}
		if asked { // 3400 is what Kafka says without security
			want = []int32{3400 - 1<<6, 3400 - 1<<6 - 1<<3, noOperations}
		}
		resp := s.ask(t, 6, &kmsg.DescribeGroupsRequest{Groups: []string{"g", "h", "secret"}, IncludeAuthorizedOperations: asked}).(*kmsg.DescribeGroupsResponse)
		for i, g := range resp.Groups {
			if g.AuthorizedOperations != want[i] {
				t.Errorf("asked %v: group %s may %d, want %d", asked, g.Group, g.AuthorizedOperations, want[i])
			}
		}
		if g := resp.Groups[2]; g.ErrorCode != 30 || g.State != "" {
			t.Errorf("a denied group: %+v", g)
		}
	}
}

// Several groups are answered in the order of the request, one named twice twice.
func TestDescribeGroupsSeveral(t *testing.T) {
	s := newServer()
	s.groups.reply = func(id string, _ group.Event) group.Reply {
		if id == "away" {
			return group.Reply{Code: group.NotCoordinator}
		}
		return group.Reply{Body: &group.DescribeReply{State: group.Empty, ProtocolType: "of " + id}}
	}
	resp := s.ask(t, 5, &kmsg.DescribeGroupsRequest{Groups: []string{"a", "", "away", "a"}}).(*kmsg.DescribeGroupsResponse)
	var got []string
	for _, g := range resp.Groups {
		got = append(got, fmt.Sprintf("%s/%d/%s/%s", g.Group, g.ErrorCode, g.State, g.ProtocolType))
	}
	if want := []string{"a/0/Empty/of a", "/0/Empty/of ", "away/16//", "a/0/Empty/of a"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if resp := s.ask(t, 0, &kmsg.DescribeGroupsRequest{}).(*kmsg.DescribeGroupsResponse); len(resp.Groups) != 0 {
		t.Errorf("no groups are answered %+v", resp.Groups)
	}
}

func listReplies(groups ...group.ListReply) []group.Reply {
	var replies []group.Reply
	for i := range groups {
		replies = append(replies, group.Reply{Body: &groups[i]})
	}
	return replies
}

func TestB91_ListGroupsFilters(t *testing.T) {
	all := []string{"a", "b", "c"}
	for _, tc := range []struct {
		states, types []string
		want          []string
	}{
		{nil, nil, all},
		{[]string{"Stable"}, nil, []string{"b"}},
		{[]string{"stable", "EMPTY"}, nil, []string{"a", "b"}},
		{[]string{" stable "}, nil, []string{"b"}},
		{[]string{"\tempty\n"}, nil, []string{"a"}},
		{[]string{"NoSuch"}, nil, nil},
		{[]string{"e mpty"}, nil, nil},
		{[]string{""}, nil, nil},
		{[]string{"dead"}, nil, nil},
		{nil, []string{"classic"}, all},
		{nil, []string{"consumer", "CLASSIC"}, all},
		{nil, []string{" classic"}, nil},
		{nil, []string{"consumer"}, nil},
		{nil, []string{"x"}, nil},
		{nil, []string{""}, nil},
		{[]string{"Stable"}, []string{"consumer"}, nil},
		{[]string{"PreparingRebalance"}, []string{"classic"}, []string{"c"}},
	} {
		for v := int16(0); v <= 5; v++ {
			s := newServer()
			s.groups.list[0].replies = append(listReplies(group.ListReply{GroupID: "c", ProtocolType: "sr", State: group.PreparingRebalance}),
				group.Reply{Code: group.GroupIDNotFound, Body: &group.ListReply{GroupID: "gone"}})
			s.groups.list[1].code = group.NotCoordinator // another node's shard
			s.groups.list[2].replies = listReplies(group.ListReply{GroupID: "b", ProtocolType: "consumer", State: group.Stable}, group.ListReply{GroupID: "a", State: group.Empty})
			resp := s.ask(t, v, &kmsg.ListGroupsRequest{StatesFilter: tc.states, TypesFilter: tc.types}).(*kmsg.ListGroupsResponse)
			want := tc.want
			if v < 4 || v < 5 && tc.types != nil { // the version has no such filter
				if v < 4 || tc.states == nil {
					want = all
				} else {
					continue
				}
			}
			var got []string
			for _, g := range resp.Groups {
				got = append(got, g.Group)
				if v >= 5 && g.GroupType != "classic" || v >= 4 && g.GroupState == "" {
					t.Errorf("v%d: %+v", v, g)
				}
			}
			if !reflect.DeepEqual(got, want) || resp.ErrorCode != 0 {
				t.Errorf("v%d, states %q, types %q: %v, want %v", v, tc.states, tc.types, got, want)
			}
		}
	}
}

// A shard that loads fails the whole list.
func TestListGroupsErrors(t *testing.T) {
	for _, code := range []group.Code{group.CoordinatorLoading, group.CoordinatorNotAvailable} {
		for v := int16(0); v <= 5; v++ {
			s := newServer()
			s.groups.list[0].replies = listReplies(group.ListReply{GroupID: "a", State: group.Empty})
			s.groups.list[2].code = code
			resp := s.ask(t, v, &kmsg.ListGroupsRequest{}).(*kmsg.ListGroupsResponse)
			if resp.ErrorCode != int16(code) || len(resp.Groups) != 0 {
				t.Errorf("v%d: code %d with %d groups", v, resp.ErrorCode, len(resp.Groups))
			}
		}
	}
}

func TestListGroupsAuthorization(t *testing.T) {
	s := newServer()
	s.groups.list[0].replies = listReplies(group.ListReply{GroupID: "a", State: group.Empty}, group.ListReply{GroupID: "b", State: group.Empty})
	for _, tc := range []struct {
		auth denier
		want string
	}{
		{denier{{OpDescribe, ResourceGroup, "a"}}, "a b"}, // who may describe the cluster sees all
		{denier{{OpDescribe, ResourceCluster, ""}, {OpDescribe, ResourceGroup, "a"}}, "b"},
		{denier{{OpDescribe, ResourceCluster, ""}, {OpDescribe, ResourceGroup, ""}}, ""},
	} {
		s.Auth = tc.auth
		var got []string
		for _, g := range s.ask(t, 5, &kmsg.ListGroupsRequest{}).(*kmsg.ListGroupsResponse).Groups {
			got = append(got, g.Group)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%v: %v, want %v", tc.auth, got, tc.want)
		}
	}
}

func TestB93_DeleteGroups(t *testing.T) {
	codes := map[string]group.Code{"empty": 0, "stable": 68, "pending": 0, "unknown": 69, "away": 16, "": 0}
	for v := int16(0); v <= 3; v++ {
		s := newServer()
		s.Auth = denier{{OpDelete, ResourceGroup, "secret"}}
		s.groups.reply = func(id string, _ group.Event) group.Reply { return group.Reply{Code: codes[id]} }
		req := &kmsg.DeleteGroupsRequest{Groups: []string{"empty", "stable", "empty", "secret", "pending", "unknown", "away", "", "stable", "secret"}}
		resp := s.ask(t, v, req).(*kmsg.DeleteGroupsResponse)
		var got []string
		for _, g := range resp.Groups {
			got = append(got, fmt.Sprintf("%s=%d", g.Group, g.ErrorCode))
			if g.ErrorMessage != nil {
				t.Errorf("v%d: %s has the message %q", v, g.Group, *g.ErrorMessage)
			}
		}
		if want := "empty=0 stable=68 secret=30 pending=0 unknown=69 away=16 =0"; strings.Join(got, " ") != want {
			t.Errorf("v%d: %v, want %s", v, got, want)
		}
		if len(s.groups.asked) != 6 {
			t.Errorf("v%d: %d groups were asked", v, len(s.groups.asked))
		}
	}
}

func findAnswer(resp kmsg.Response) string {
	r := resp.(*kmsg.FindCoordinatorResponse)
	message := func(m *string) string {
		if m == nil {
			return "null"
		}
		return *m
	}
	if r.Version < 4 {
		return fmt.Sprintf("%d %d %s:%d %s", r.ErrorCode, r.NodeID, r.Host, r.Port, message(r.ErrorMessage))
	}
	keys := []string{}
	for _, c := range r.Coordinators {
		keys = append(keys, fmt.Sprintf("%s %d %d %s:%d %s", c.Key, c.ErrorCode, c.NodeID, c.Host, c.Port, message(c.ErrorMessage)))
	}
	return strings.Join(keys, "\n")
}

// B82: where Apache Kafka 4.4.0 has a text and where not, and the -1 of errors.
func TestB82_FindCoordinator(t *testing.T) {
	const malformed = "This most likely occurs because of a request being malformed by the client library or the message was sent to an incompatible broker. See the broker logs for more details."
	for _, tc := range []struct {
		from, to int16
		kind     int8
		keys     []string
		want     string
	}{
		{0, 0, 0, []string{"g"}, "0 1 inside:1001 null"},
		{1, 3, 0, []string{"g"}, "0 1 inside:1001 NONE"},
		{1, 3, 0, []string{""}, "0 1 inside:1001 NONE"},
		{1, 3, 1, []string{"tx"}, "0 1 inside:1001 NONE"},
		{1, 3, 0, []string{"secret"}, "30 -1 :-1 Not authorized to access group: Group authorization failed."},
		{1, 3, 1, []string{"secret"}, "53 -1 :-1 Transactional ID authorization failed."},
		{1, 3, 0, []string{"away"}, "15 -1 :-1 The coordinator is not available."},
		{1, 3, 9, []string{"g"}, "42 -1 :-1 " + malformed},
		{1, 3, 2, []string{"g"}, "42 -1 :-1 " + malformed},
		{4, 6, 0, []string{"g", "secret", "", "g", "away"}, "g 0 1 inside:1001 \nsecret 30 -1 :-1 \n 0 1 inside:1001 \ng 0 1 inside:1001 \naway 15 -1 :-1 "},
		{4, 6, 1, []string{"tx", "secret"}, "tx 0 1 inside:1001 \nsecret 53 -1 :-1 "},
		{4, 6, 0, nil, ""},
		{4, 6, 9, nil, ""},
		{4, 6, 9, []string{"a", "b"}, "a 42 -1 :-1 " + malformed + "\nb 42 -1 :-1 " + malformed},
		{4, 6, 2, []string{"g", "g:AAAAAAAAAAAAAAAAAAAAAQ:0"}, "g 42 -1 :-1 \ng:AAAAAAAAAAAAAAAAAAAAAQ:0 42 -1 :-1 "},
	} {
		for v := tc.from; v <= tc.to; v++ {
			s := newServer()
			s.Auth = denier{{OpDescribe, ResourceGroup, "secret"}, {OpDescribe, ResourceTransactionalID, "secret"}}
			s.groups.coordinates = func(id string) group.Code {
				if id == "away" {
					return group.NotCoordinator
				}
				return group.None
			}
			req := &kmsg.FindCoordinatorRequest{CoordinatorType: tc.kind, CoordinatorKeys: tc.keys}
			if len(tc.keys) > 0 {
				req.CoordinatorKey = tc.keys[0]
			}
			if got := findAnswer(s.ask(t, v, req)); got != tc.want {
				t.Errorf("v%d type %d %q:\n%s\nwant\n%s", v, tc.kind, tc.keys, got, tc.want)
			}
		}
	}
}

func TestS0_6_AnswerForTheListener(t *testing.T) {
	for listener, want := range map[string]string{"INSIDE": "0 1 inside:1001 NONE", "OUTSIDE": "0 1 outside:1002 NONE", "OTHER": "15 -1 :-1 The coordinator is not available."} {
		s := newServer()
		s.session.Listener = listener
		if got := findAnswer(s.ask(t, 3, &kmsg.FindCoordinatorRequest{CoordinatorKey: "g"})); got != want {
			t.Errorf("%s: %s, want %s", listener, got, want)
		}
	}
}

// S0.7: no owner is a state, not a crash.
func TestS0_7_FindCoordinatorWithoutCluster(t *testing.T) {
	s := newServer()
	s.Cluster.Set(nil)
	if got := findAnswer(s.ask(t, 3, &kmsg.FindCoordinatorRequest{CoordinatorKey: "g"})); !strings.HasPrefix(got, "15 -1 :-1") {
		t.Error(got)
	}
}

func TestClusterBrokers(t *testing.T) {
	c := testCluster()
	c.Nodes = append(c.Nodes, Node{ID: 2, Endpoints: []Endpoint{{Listener: "INSIDE", Host: "second", Port: 2001}}})
	if got, want := c.Brokers("INSIDE"), []Broker{{ID: 1, Host: "inside", Port: 1001}, {ID: 2, Host: "second", Port: 2001}}; !reflect.DeepEqual(got, want) {
		t.Errorf("INSIDE: %v", got)
	}
	if got, want := c.Brokers("OUTSIDE"), []Broker{{ID: 1, Host: "outside", Port: 1002}}; !reflect.DeepEqual(got, want) {
		t.Errorf("OUTSIDE: %v", got)
	}
	if _, ok := c.Broker(3, "INSIDE"); ok {
		t.Error("node 3 is found")
	}
}

func TestB97_ApiVersionsSoftware(t *testing.T) {
	for _, tc := range []struct {
		name, version string
		want          int16
	}{
		{"librdkafka", "2.3.0", 0}, {"a.b-c", "1.0.0-SNAPSHOT", 0}, {"a", "1", 0}, {"a--.b", "1", 0},
		{"", "1", 42}, {"a", "", 42}, {"bad name!", "1", 42}, {"a", "1 2", 42}, {"a-", "1", 42}, {"-a", "1", 42},
		{"a.", "1", 42}, {"a_b", "1", 42}, {"a", "v1\n", 42}, {"é", "1", 42},
	} {
		for v := int16(0); v <= 5; v++ {
			s := newServer()
			resp := s.ask(t, v, &kmsg.ApiVersionsRequest{ClientSoftwareName: tc.name, ClientSoftwareVersion: tc.version, NodeID: -1}).(*kmsg.ApiVersionsResponse)
			want := tc.want
			if v < 3 {
				want = 0
			}
			if resp.ErrorCode != want || (len(resp.ApiKeys) == 0) != (want != 0) {
				t.Errorf("v%d %q %q: code %d with %d keys, want %d", v, tc.name, tc.version, resp.ErrorCode, len(resp.ApiKeys), want)
			}
			if kept := s.session.SoftwareName; v >= 3 && want == 0 && kept != tc.name {
				t.Errorf("v%d: the session knows %q, not %q", v, kept, tc.name)
			}
			if len(resp.SupportedFeatures)+len(resp.FinalizedFeatures) != 0 || resp.FinalizedFeaturesEpoch != -1 {
				t.Errorf("v%d: features %+v", v, resp)
			}
		}
	}
}

// KIP-1242, with the answers of Apache Kafka 4.4.0: the cluster and the node are
// named both or not at all, and must be these.
func TestApiVersionsWrongNode(t *testing.T) {
	for _, tc := range []struct {
		cluster *string
		node    int32
		want    int16
	}{
		{nil, -1, 0}, {nil, 1, 42}, {nil, 0, 42}, {ptr(""), -1, 42}, {ptr("cluster"), -1, 42}, {ptr("wrong"), -1, 42},
		{ptr("cluster"), 1, 0}, {ptr("cluster"), 2, 129}, {ptr("wrong"), 1, 129}, {ptr(""), 1, 129},
	} {
		s := newServer()
		req := &kmsg.ApiVersionsRequest{ClientSoftwareName: "a", ClientSoftwareVersion: "1", ClusterID: tc.cluster, NodeID: tc.node}
		if got := s.ask(t, 5, req).(*kmsg.ApiVersionsResponse); got.ErrorCode != tc.want || (len(got.ApiKeys) == 0) != (tc.want != 0) {
			t.Errorf("%v node %d: code %d with %d keys, want %d", tc.cluster, tc.node, got.ErrorCode, len(got.ApiKeys), tc.want)
		}
		if got := s.ask(t, 4, req).(*kmsg.ApiVersionsResponse); got.ErrorCode != 0 {
			t.Errorf("v4: code %d", got.ErrorCode)
		}
	}
}
