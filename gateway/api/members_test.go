package api

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const zeroUUID = "00010203-0405-4607-8809-0a0b0c0d0e0f" // of newServer's entropy

func joinRequest() *kmsg.JoinGroupRequest {
	return &kmsg.JoinGroupRequest{
		Group: "g", SessionTimeoutMillis: 10000, RebalanceTimeoutMillis: 60000, ProtocolType: "consumer",
		Protocols: []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("r")}, {Name: "sticky", Metadata: nil}},
	}
}

func (s *server) lastEvent() group.Event { return s.groups.asked[len(s.groups.asked)-1].ev }

func TestJoinGroupEvent(t *testing.T) {
	for v := int16(0); v <= 9; v++ {
		s := newServer()
		req := joinRequest()
		req.Reason = ptr("why")
		s.ask(t, v, req)
		ev := s.lastEvent().(*group.Join)
		want := &group.Join{
			Client: group.Client{ID: "client", Host: "/10.0.0.1", Principal: "User:ANONYMOUS"},
			NewID:  "client-" + zeroUUID, RequireMemberID: v >= 4, CanSkipAssignment: v >= 9,
			SessionTimeout: 10000, RebalanceTimeout: 60000, ProtocolType: "consumer",
			Protocols: []group.Protocol{{Name: "range", Metadata: []byte("r")}, {Name: "sticky", Metadata: []byte{}}},
		}
		if v == 0 {
			want.RebalanceTimeout = 10000
		}
		if v >= 8 {
			want.Reason = "why"
		}
		if !reflect.DeepEqual(ev, want) {
			t.Errorf("v%d:\n got %+v\nwant %+v", v, ev, want)
		}
	}
}

func TestJoinGroupNewMemberIDs(t *testing.T) {
	long := strings.Repeat("c", 32767)
	for _, tc := range []struct {
		name, client, member string
		instance             *string
		want                 string
	}{
		{"dynamic", "client", "", nil, "client-" + zeroUUID},
		{"null client id", "", "", nil, "-" + zeroUUID},
		{"static", "client", "", ptr("i"), "i-" + zeroUUID},
		{"empty instance id", "client", "", ptr(""), "-" + zeroUUID},
		{"has one", "client", "m", nil, ""},
		{"fits a string", long, "", nil, long[:32767-37] + "-" + zeroUUID},
	} {
		s := newServer()
		s.client = tc.client
		req := joinRequest()
		req.MemberID, req.InstanceID = tc.member, tc.instance
		s.ask(t, 5, req)
		if got := s.lastEvent().(*group.Join).NewID; got != tc.want {
			t.Errorf("%s: new id %.60q, want %.60q", tc.name, got, tc.want)
		}
	}
}

func TestJoinGroupNewMemberIDsDiffer(t *testing.T) {
	s := newServer()
	s.Random = nil
	seen := make(map[string]bool)
	for range 100 {
		s.ask(t, 9, joinRequest())
		seen[s.lastEvent().(*group.Join).NewID] = true
	}
	if len(seen) != 100 {
		t.Errorf("100 joins were given %d ids", len(seen))
	}
}

// The session timeout is judged before the group is asked for, as in Kafka, where
// even a broker that does not own the group says INVALID_SESSION_TIMEOUT.
func TestJoinGroupSessionTimeout(t *testing.T) {
	for ms, want := range map[int32]int16{-1: 26, 0: 26, 5999: 26, 6000: 16, 1800000: 16, 1800001: 26} {
		for v := int16(0); v <= 9; v++ {
			s := newServer()
			s.groups.reply = replies(group.NotCoordinator)
			req := joinRequest()
			req.SessionTimeoutMillis, req.MemberID = ms, "m"
			resp := s.ask(t, v, req).(*kmsg.JoinGroupResponse)
			wantID := "m"
			if want == 16 {
				wantID = ""
			}
			if resp.ErrorCode != want || resp.MemberID != wantID || resp.Generation != -1 {
				t.Errorf("v%d, %d ms: code %d, member %q, generation %d; want %d, %q, -1", v, ms, resp.ErrorCode, resp.MemberID, resp.Generation, want, wantID)
			}
		}
	}
}

func TestJoinGroupRefusals(t *testing.T) {
	for v := int16(0); v <= 9; v++ {
		s := newServer()
		s.Auth = denyAll{}
		req := joinRequest()
		req.Group, req.MemberID, req.SessionTimeoutMillis = "", "m", 1
		resp := s.ask(t, v, req).(*kmsg.JoinGroupResponse)
		if resp.ErrorCode != 30 || resp.MemberID != "" {
			t.Errorf("v%d: unauthorized: code %d, member %q", v, resp.ErrorCode, resp.MemberID)
		}
		s.Auth = AllowAll{}
		resp = s.ask(t, v, req).(*kmsg.JoinGroupResponse)
		if resp.ErrorCode != 24 || resp.MemberID != "m" {
			t.Errorf("v%d: no group: code %d, member %q", v, resp.ErrorCode, resp.MemberID)
		}
		if wantNull := v >= 7; (resp.Protocol == nil) != wantNull {
			t.Errorf("v%d: protocol name %v with an error", v, resp.Protocol)
		}
	}
}

func TestJoinGroupResponse(t *testing.T) {
	body := &group.JoinReply{
		Generation: 7, ProtocolType: ptr("sr"), ProtocolName: ptr("v0"), Leader: "a", MemberID: "a", SkipAssignment: true,
		Members: []group.JoinMember{{MemberID: "a", Metadata: []byte{1}}, {MemberID: "b", InstanceID: ptr("i")}},
	}
	for v := int16(0); v <= 9; v++ {
		s := newServer()
		s.groups.reply = func(string, group.Event) group.Reply { return group.Reply{Body: body} }
		got := s.ask(t, v, joinRequest()).(*kmsg.JoinGroupResponse)
		want := &kmsg.JoinGroupResponse{
			Version: v, Generation: 7, Protocol: ptr("v0"), LeaderID: "a", MemberID: "a", SkipAssignment: v >= 9,
			Members: []kmsg.JoinGroupResponseMember{{MemberID: "a", ProtocolMetadata: []byte{1}}, {MemberID: "b", ProtocolMetadata: []byte{}}},
		}
		if v >= 7 {
			want.ProtocolType = ptr("sr") // S3.7: the group's, never a constant
		}
		if v >= 5 {
			want.Members[1].InstanceID = ptr("i")
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("v%d:\n got %+v\nwant %+v", v, got, want)
		}
	}
}

// An empty protocol name is null from version 7 on, and null is "" below.
func TestJoinGroupProtocolName(t *testing.T) {
	for _, name := range []*string{nil, ptr("")} {
		for v := int16(0); v <= 9; v++ {
			s := newServer()
			s.groups.reply = func(string, group.Event) group.Reply {
				return group.Reply{Code: 79, Body: &group.JoinReply{Generation: -1, ProtocolName: name, MemberID: "new"}}
			}
			got := s.ask(t, v, joinRequest()).(*kmsg.JoinGroupResponse)
			if v >= 7 && got.Protocol != nil || v < 7 && (got.Protocol == nil || *got.Protocol != "") {
				t.Errorf("v%d: %v goes out as %v", v, name, got.Protocol)
			}
			if got.ErrorCode != 79 || got.MemberID != "new" {
				t.Errorf("v%d: code %d, member %q", v, got.ErrorCode, got.MemberID)
			}
		}
	}
}

func TestB105_Reasons(t *testing.T) {
	for _, tc := range []struct {
		reason *string
		want   string
	}{
		{nil, ""}, {ptr(""), ""}, {ptr("plain"), "plain"}, {ptr("two\nlines\ttab\x1b[31m\xff"), "two lines tab [31m "},
		{ptr(strings.Repeat("x", 32767)), strings.Repeat("x", 255)}, {ptr("grün, 絵"), "grün, 絵"},
		{ptr(strings.Repeat("絵", 1000)), strings.Repeat("絵", 85)},
	} {
		s := newServer()
		for v := int16(8); v <= 9; v++ {
			join := joinRequest()
			join.Reason = tc.reason
			s.ask(t, v, join)
			if got := s.lastEvent().(*group.Join).Reason; got != tc.want {
				t.Errorf("v%d: join reason %.40q, want %.40q", v, got, tc.want)
			}
		}
		s.ask(t, 5, &kmsg.LeaveGroupRequest{Group: "g", Members: []kmsg.LeaveGroupRequestMember{{MemberID: "m", Reason: tc.reason}}})
		if got := s.lastEvent().(*group.Leave).Members[0].Reason; got != tc.want {
			t.Errorf("leave reason %.40q, want %.40q", got, tc.want)
		}
	}
}

func TestSyncGroupEvent(t *testing.T) {
	for v := int16(0); v <= 5; v++ {
		s := newServer()
		s.ask(t, v, &kmsg.SyncGroupRequest{
			Group: "g", Generation: 4, MemberID: "m", InstanceID: ptr("i"), ProtocolType: ptr("sr"), Protocol: ptr("v0"),
			GroupAssignment: []kmsg.SyncGroupRequestGroupAssignment{{MemberID: "m", MemberAssignment: []byte("a")}, {MemberID: "n"}},
		})
		want := &group.Sync{
			Client: group.Client{ID: "client", Host: "/10.0.0.1", Principal: "User:ANONYMOUS"}, MemberID: "m", Generation: 4,
			Assignments: []group.Assignment{{MemberID: "m", Bytes: []byte("a")}, {MemberID: "n", Bytes: []byte{}}},
		}
		if v >= 3 {
			want.InstanceID = ptr("i")
		}
		if v >= 5 {
			want.ProtocolType, want.ProtocolName = ptr("sr"), ptr("v0")
		}
		if got := s.lastEvent(); !reflect.DeepEqual(got, want) {
			t.Errorf("v%d:\n got %+v\nwant %+v", v, got, want)
		}
	}
}

// B101: an assignment leaves as it came, and an empty one has length 0.
func TestB101_AssignmentBytes(t *testing.T) {
	for _, n := range []int{0, 1, 70000} {
		want := bytes.Repeat([]byte{0x00, 0xff, 0x7f}, n)[:n]
		for v := int16(0); v <= 5; v++ {
			s := newServer()
			s.groups.reply = func(string, group.Event) group.Reply {
				return group.Reply{Body: &group.SyncReply{ProtocolType: ptr("sr"), ProtocolName: ptr("v0"), Assignment: want}}
			}
			got := s.ask(t, v, &kmsg.SyncGroupRequest{Group: "g", ProtocolType: ptr(""), Protocol: ptr("")}).(*kmsg.SyncGroupResponse)
			if got.MemberAssignment == nil || !bytes.Equal(got.MemberAssignment, want) {
				t.Errorf("v%d: %d bytes come back as %d", v, n, len(got.MemberAssignment))
			}
			if v >= 5 && (*got.ProtocolType != "sr" || *got.Protocol != "v0") { // S3.7
				t.Errorf("v%d: protocol %q %q", v, *got.ProtocolType, *got.Protocol)
			}
		}
	}
}

// Scenario 24: a null where version 5 wants the protocol is refused before the
// right to read and the group id.
func TestSyncGroupNullProtocol(t *testing.T) {
	for _, tc := range []struct{ kind, name *string }{{nil, nil}, {ptr("sr"), nil}, {nil, ptr("v0")}} {
		s := newServer()
		s.Auth = denyAll{}
		got := s.ask(t, 5, &kmsg.SyncGroupRequest{ProtocolType: tc.kind, Protocol: tc.name}).(*kmsg.SyncGroupResponse)
		if got.ErrorCode != 23 || len(s.groups.asked) != 0 {
			t.Errorf("%v %v: code %d", tc.kind, tc.name, got.ErrorCode)
		}
	}
	s := newServer()
	s.Auth = denyAll{}
	if got := s.ask(t, 4, &kmsg.SyncGroupRequest{}).(*kmsg.SyncGroupResponse); got.ErrorCode != 30 {
		t.Errorf("v4, which has no protocol: code %d, want 30", got.ErrorCode)
	}
}

// Whatever body a coordinator sends with an error, the fields are empty.
func TestSyncGroupErrorIsEmpty(t *testing.T) {
	for v := int16(0); v <= 5; v++ {
		s := newServer()
		s.groups.reply = func(string, group.Event) group.Reply {
			return group.Reply{Code: 27, Body: &group.SyncReply{ProtocolType: ptr("x"), Assignment: []byte("x")}}
		}
		got := s.ask(t, v, &kmsg.SyncGroupRequest{Group: "g", ProtocolType: ptr("x"), Protocol: ptr("y")}).(*kmsg.SyncGroupResponse)
		if got.ErrorCode != 27 || got.ProtocolType != nil || got.Protocol != nil || len(got.MemberAssignment) != 0 {
			t.Errorf("v%d: %+v", v, got)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	for v := int16(0); v <= 4; v++ {
		for _, want := range []int16{0, 15, 16, 22, 25, 27, 82} {
			s := newServer()
			s.groups.reply = replies(group.Code(want))
			got := s.ask(t, v, &kmsg.HeartbeatRequest{Group: "g", Generation: 3, MemberID: "m", InstanceID: ptr("i")}).(*kmsg.HeartbeatResponse)
			if got.ErrorCode != want {
				t.Errorf("v%d: code %d is answered %d", v, want, got.ErrorCode)
			}
			ev := &group.Heartbeat{Generation: 3, MemberID: "m"}
			if v >= 3 {
				ev.InstanceID = ptr("i")
			}
			if !reflect.DeepEqual(s.lastEvent(), group.Event(ev)) {
				t.Errorf("v%d: event %+v, want %+v", v, s.lastEvent(), ev)
			}
		}
	}
}

// B36 and B44: the list is answered in its order with its ids; one member's code
// becomes the request's below version 3.
func TestB36_B44_LeaveGroup(t *testing.T) {
	req := func() *kmsg.LeaveGroupRequest {
		return &kmsg.LeaveGroupRequest{Group: "g", MemberID: "single", Members: []kmsg.LeaveGroupRequestMember{
			{InstanceID: ptr("a")}, {MemberID: "bad", InstanceID: ptr("b")}, {InstanceID: ptr("zz")}, {MemberID: "m"}, {MemberID: "nope"},
		}}
	}
	for v := int16(0); v <= 5; v++ {
		s := newServer()
		s.groups.reply = func(_ string, ev group.Event) group.Reply {
			codes := []group.Code{0, 82, 25, 0, 25}
			if v < 3 {
				codes = []group.Code{25}
			}
			if n := len(ev.(*group.Leave).Members); n != len(codes) {
				t.Errorf("v%d: %d members", v, n)
			}
			return group.Reply{Body: &group.LeaveReply{Codes: codes}}
		}
		got := s.ask(t, v, req()).(*kmsg.LeaveGroupResponse)
		want := &kmsg.LeaveGroupResponse{Version: v, ErrorCode: 25}
		if v >= 3 {
			want.ErrorCode = 0
			want.Members = []kmsg.LeaveGroupResponseMember{
				{InstanceID: ptr("a")}, {MemberID: "bad", InstanceID: ptr("b"), ErrorCode: 82}, {InstanceID: ptr("zz"), ErrorCode: 25},
				{MemberID: "m"}, {MemberID: "nope", ErrorCode: 25},
			}
		} else if m := s.lastEvent().(*group.Leave).Members[0]; m.MemberID != "single" || m.InstanceID != nil {
			t.Errorf("v%d: member %+v", v, m)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("v%d:\n got %+v\nwant %+v", v, got, want)
		}
	}
}

// The same bytes that Apache Kafka 4.4.0 sends, without the correlation id.
func TestB44_LeaveGroupBytes(t *testing.T) {
	for v, want := range map[int16]string{
		2: "\x00\x00\x00\x00\x00\x19",
		3: "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x01x\xff\xff\x00\x19\x00\x00\x00\x01i\x00\x19",
		4: "\x00\x00\x00\x00\x00\x00\x03\x02x\x00\x00\x19\x00\x01\x02i\x00\x19\x00\x00",
		5: "\x00\x00\x00\x00\x00\x00\x03\x02x\x00\x00\x19\x00\x01\x02i\x00\x19\x00\x00",
	} {
		s := newServer()
		s.groups.reply = func(_ string, ev group.Event) group.Reply {
			return group.Reply{Body: &group.LeaveReply{Codes: []group.Code{25, 25}[:len(ev.(*group.Leave).Members)]}}
		}
		c := s.start(t, v, &kmsg.LeaveGroupRequest{Group: "g", MemberID: "x", Members: []kmsg.LeaveGroupRequestMember{{MemberID: "x"}, {InstanceID: ptr("i")}}})
		resp, _ := c.Response()
		if got := string(resp.AppendTo(nil)); got != want {
			t.Errorf("v%d: %x, want %x", v, got, want)
		}
	}
}

func TestLeaveGroupEmptyList(t *testing.T) {
	for v := int16(3); v <= 5; v++ {
		s := newServer()
		s.groups.reply = func(string, group.Event) group.Reply { return group.Reply{Body: &group.LeaveReply{}} }
		if got := s.ask(t, v, &kmsg.LeaveGroupRequest{Group: "g"}).(*kmsg.LeaveGroupResponse); got.ErrorCode != 0 || len(got.Members) != 0 {
			t.Errorf("v%d: %+v", v, got)
		}
	}
}
