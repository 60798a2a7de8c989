package compat

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

func TestOffsetCases(t *testing.T) {
	play(t, forRaw(t), []wireCase{
		{"B18 precedence of commit errors", commitPrecedence},
		{"B19 commit while syncing", commitWhileSyncing},
		{"B46 last member leaves", lastMemberLeaves},
		{"B47 tools and live groups", toolsAndLiveGroups},
		{"B48 retention time", retentionTime},
		{"B49 null and empty metadata", nullMetadata},
		{"B52 committing backwards", backwards},
		{"B53 all topics and no topics", allAndNoTopics},
		{"B56 no committed offset", noCommittedOffset},
		{"B57 leader epoch", leaderEpoch},
		{"B82 FindCoordinator forms", findCoordinatorForms},
		{"B89 describe while rebalancing", describeStates},
		{"B90 groups that are not consumers", otherProtocolTypes},
		{"B91 list filters", listFilters},
		{"B93 DeleteGroups", deleteGroups},
		{"B95 CreateTopics corners", createTopicsCorners},
		{"B101 assignment bytes", assignmentBytes},
		{"B105 odd strings", oddStrings},
		{"OffsetDelete", offsetDelete},
		{"metadata too large", metadataTooLarge},
	})
}

func commitPrecedence(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	m := newPeer(t, srv, g)
	stable(t, m)
	c := rig.Dial(t, srv.Addr)
	for _, k := range []struct {
		what       string
		version    int16
		group      string
		member     string
		generation int32
		want       int16
	}{
		{"unknown member", 8, g, "nobody", m.generation, errUnknownMember},
		{"older generation", 8, g, m.id, m.generation - 1, errIllegalGeneration},
		{"newer generation", 8, g, m.id, m.generation + 1, errIllegalGeneration},
		{"unknown group, v8", 8, g + "-none", m.id, 3, errIllegalGeneration},
		{"unknown group, v9", 9, g + "-none", m.id, 3, errGroupIDNotFound},
		{"no member id", 8, g, "", m.generation, errUnknownMember},
	} {
		if got := commitAs(c, k.version, k.group, k.member, nil, k.generation, topic, 1); got != k.want {
			t.Errorf("%s: code %d, want %d", k.what, got, k.want)
		}
	}
	if got := fetchOffset(c, g, topic); got != -1 {
		t.Errorf("a refused commit stored %d", got)
	}
	if got := commitAs(c, 8, g, "nobody", nil, 9, "no-such-topic", 1); got != errUnknownTopic {
		t.Errorf("only an unknown topic: code %d, want 3 whoever asks", got)
	}
}

func commitWhileSyncing(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	stable(t, m1, m2)
	m1.park()
	m2.code("OffsetCommit in PreparingRebalance", m2.commit(topic, 6), errNone)
	m2.join()
	m1.joined()
	m2.code("OffsetCommit in CompletingRebalance", m2.commit(topic, 7), errRebalancing)
	m2.generation--
	m2.code("OffsetCommit of the round before", m2.commit(topic, 7), errIllegalGeneration)
	if got := fetchOffset(m1.Conn, g, topic); got != 6 {
		t.Errorf("offset %d, want 6", got)
	}
}

func lastMemberLeaves(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	m := newPeer(t, srv, g)
	stable(t, m)
	m.code("OffsetCommit", m.commit(topic, 10), errNone)
	was := m.generation
	m.code("LeaveGroup", m.leave(), errNone)
	check := func() {
		t.Helper()
		c := rig.Dial(t, srv.Addr)
		d := describe(c, g)
		if d.State != "Empty" || d.ProtocolType != "consumer" || len(d.Members) != 0 {
			t.Errorf("%s of type %q with %d members", d.State, d.ProtocolType, len(d.Members))
		}
		if got := fetchOffset(c, g, topic); got != 10 {
			t.Errorf("offset %d, want 10", got)
		}
	}
	check()
	again := newPeer(t, srv, g)
	again.join()
	if again.generation != was+2 {
		t.Errorf("generation %d, want %d", again.generation, was+2)
	}
	again.sync(errNone, again.id, "0")
	again.leave()
	check()
}

func toolsAndLiveGroups(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	for _, version := range []int16{2, 7, 8} {
		g := fmt.Sprint(g, version)
		try := func(what string, want int16) {
			t.Helper()
			if got := commitAs(c, version, g, "", nil, -1, topic, 5); got != want {
				t.Errorf("v%d on %s: code %d, want %d", version, what, got, want)
			}
		}
		try("an unknown group", errNone)
		try("an Empty group", errNone)
		m, n := newPeer(t, srv, g), newPeer(t, srv, g)
		stable(t, m)
		try("a Stable group", errUnknownMember)
		n.park()
		try("a group in PreparingRebalance", errUnknownMember)
		m.leave()
		n.joined()
		n.leave()
	}
}

func retentionTime(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	commit := func(group string, retention int64) {
		t.Helper()
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Version, req.Group, req.Generation, req.RetentionTimeMillis = 3, group, -1, retention
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Offset = 1
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
		if code := rig.Do[*kmsg.OffsetCommitResponse](c, req).Topics[0].Partitions[0].ErrorCode; code != 0 {
			t.Errorf("retention %d: code %d", retention, code)
		}
	}
	commit(g+"-default", -1)
	commit(g+"-long", 600_000)
	commit(g+"-short", 1500)
	commit(g+"-zero", 0)
	gone := func(suffix string) {
		t.Helper()
		rig.Eventually(t, 6*time.Second, suffix+" expires", func() error {
			if fetchOffset(c, g+suffix, topic) != -1 {
				return rig.ErrQuiet
			}
			return nil
		})
	}
	gone("-zero")
	gone("-short")
	for _, suffix := range []string{"-default", "-long"} {
		if got := fetchOffset(c, g+suffix, topic); got != 1 {
			t.Errorf("%s: offset %d, want 1", suffix, got)
		}
	}
	if !srv.External() { // Kafka's sum wraps into the past
		commit(g+"-max", 1<<63-1)
		rig.Dial(t, srv.Addr).Quiet(2500 * time.Millisecond)
		if got := fetchOffset(c, g+"-max", topic); got != 1 {
			t.Errorf("the longest retention there is: offset %d, want 1", got)
		}
	}
}

func nullMetadata(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, g, -1
	empty, x := "", "x"
	rt := kmsg.OffsetCommitRequestTopic{Topic: topic}
	for i, m := range []*string{nil, &empty, &x} {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.Metadata = int32(i), 5, m
		rt.Partitions = append(rt.Partitions, p)
	}
	req.Topics = []kmsg.OffsetCommitRequestTopic{rt}
	rig.Do[*kmsg.OffsetCommitResponse](c, req)
	for version := int16(1); version <= 9; version++ {
		got := fetchAll(c, version, g, topic, 0, 1, 2, 3)
		for i, want := range []string{"", "", "x", ""} {
			p := got[i]
			if p.Metadata == nil || *p.Metadata != want || p.LeaderEpoch != -1 || p.ErrorCode != 0 || (p.Offset == -1) != (i == 3) {
				t.Errorf("v%d, partition %d: %+v", version, i, p)
			}
		}
	}
}

// fetchAll asks for partitions of one topic in any version below 10.
func fetchAll(c *rig.Conn, version int16, group, topic string, partitions ...int32) []kmsg.OffsetFetchResponseTopicPartition {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = version
	if version < 8 {
		req.Group = group
		req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: partitions}}
		return rig.Do[*kmsg.OffsetFetchResponse](c, req).Topics[0].Partitions
	}
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	rg.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, Partitions: partitions}}
	req.Groups = []kmsg.OffsetFetchRequestGroup{rg}
	var ps []kmsg.OffsetFetchResponseTopicPartition
	for _, p := range rig.Do[*kmsg.OffsetFetchResponse](c, req).Groups[0].Topics[0].Partitions {
		ps = append(ps, kmsg.OffsetFetchResponseTopicPartition{
			Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
		})
	}
	return ps
}

func backwards(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	for _, o := range []int64{100, 40, 40, 0, -7, 1 << 62} {
		if code := simpleCommit(c, g, topic, o); code != 0 {
			t.Errorf("commit %d: code %d", o, code)
		}
		if got := fetchOffset(c, g, topic); got != o {
			t.Errorf("offset %d, want %d", got, o)
		}
	}
}

func allAndNoTopics(t *testing.T, srv *rig.Server, g string) {
	one, two := newTopic(t, srv), newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	simpleCommit(c, g, one, 1)
	simpleCommit(c, g, two, 2)
	for version := int16(1); version <= 9; version++ {
		for _, all := range []bool{false, true} {
			if all && version < 2 {
				continue
			}
			req := kmsg.NewPtrOffsetFetchRequest()
			req.Version, req.Group = version, g
			rg := kmsg.NewOffsetFetchRequestGroup()
			rg.Group = g
			if !all {
				req.Topics = []kmsg.OffsetFetchRequestTopic{}
				rg.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
			}
			req.Groups = []kmsg.OffsetFetchRequestGroup{rg}
			resp := rig.Do[*kmsg.OffsetFetchResponse](c, req)
			n, code := len(resp.Topics), resp.ErrorCode
			if version >= 8 {
				n, code = len(resp.Groups[0].Topics), resp.Groups[0].ErrorCode
			}
			if want := map[bool]int{false: 0, true: 2}[all]; n != want || code != 0 {
				t.Errorf("v%d, all %v: %d topics, code %d", version, all, n, code)
			}
		}
	}
}

func noCommittedOffset(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	simpleCommit(c, g, topic, 3)
	for version := int16(1); version <= 9; version++ {
		for _, ask := range [][2]string{{g + "-unknown", topic}, {g, "no-such-topic"}, {g, topic}} {
			p := fetchAll(c, version, ask[0], ask[1], 2)[0]
			if p.Offset != -1 || p.LeaderEpoch != -1 || p.ErrorCode != 0 || p.Metadata == nil || *p.Metadata != "" {
				t.Errorf("v%d, %v: %+v", version, ask, p)
			}
		}
	}
}

func leaderEpoch(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	commit := func(version int16, epoch int32) {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Version, req.Group, req.Generation = version, g, -1
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Offset, p.LeaderEpoch = 5, epoch
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
		rig.Do[*kmsg.OffsetCommitResponse](c, req)
	}
	for _, k := range []struct {
		version     int16
		epoch, want int32
	}{{5, 99, -1}, {6, 7, 7}, {6, -1, -1}, {8, 7, 7}, {5, 99, -1}} {
		commit(k.version, k.epoch)
		if got := fetchAll(c, 5, g, topic, 0)[0].LeaderEpoch; got != k.want {
			t.Errorf("OffsetCommit v%d with epoch %d: fetched %d, want %d", k.version, k.epoch, got, k.want)
		}
	}
}

func findCoordinatorForms(t *testing.T, srv *rig.Server, g string) {
	c := rig.Dial(t, srv.Addr)
	for version := int16(0); version <= 3; version++ {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version, req.CoordinatorKey = version, g
		if resp := rig.Do[*kmsg.FindCoordinatorResponse](c, req); resp.ErrorCode != 0 || resp.Port == 0 || resp.Host != "127.0.0.1" {
			t.Errorf("v%d: %+v", version, resp)
		}
	}
	for version := int16(4); version <= 6; version++ {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version, req.CoordinatorKeys = version, []string{g, "", g + "2"}
		resp := rig.Do[*kmsg.FindCoordinatorResponse](c, req)
		if len(resp.Coordinators) != 3 || resp.ErrorCode != 0 {
			t.Fatalf("v%d: %+v", version, resp)
		}
		for i, k := range resp.Coordinators {
			if k.Key != req.CoordinatorKeys[i] || k.ErrorCode != 0 || k.NodeID < 0 || k.Port == 0 {
				t.Errorf("v%d, key %d: %+v", version, i, k)
			}
		}
		req.CoordinatorKeys = []string{}
		if resp := rig.Do[*kmsg.FindCoordinatorResponse](c, req); len(resp.Coordinators) != 0 {
			t.Errorf("v%d without keys: %+v", version, resp)
		}
	}
	for _, k := range []struct {
		version int16
		kind    int8
	}{{3, 2}, {5, 2}, {3, 9}, {6, 9}} {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version, req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = k.version, k.kind, "k", []string{"k"}
		resp := rig.Do[*kmsg.FindCoordinatorResponse](c, req)
		code := resp.ErrorCode
		if k.version >= 4 {
			code = resp.Coordinators[0].ErrorCode
		}
		if code != errInvalidRequest {
			t.Errorf("v%d, type %d: code %d, want 42", k.version, k.kind, code)
		}
	}
}

func describeStates(t *testing.T, srv *rig.Server, g string) {
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g).static("i")
	stable(t, m1, m2)
	c := rig.Dial(t, srv.Addr)
	check := func(state, protocol string, metadata int) {
		t.Helper()
		d := describe(c, g)
		if d.State != state || d.Protocol != protocol || d.ProtocolType != "consumer" || len(d.Members) != 2 {
			t.Errorf("%+v", d)
		}
		for _, m := range d.Members {
			want := map[string]string{m1.id: "0", m2.id: "1"}[m.MemberID]
			if len(m.ProtocolMetadata) != metadata || string(m.MemberAssignment) != want || m.ClientID != "raw" || m.ClientHost != "/127.0.0.1" {
				t.Errorf("in %s: %+v", state, m)
			}
			if (m.InstanceID != nil) != (m.MemberID == m2.id) {
				t.Errorf("in %s: instance id of %+v", state, m)
			}
		}
	}
	check("Stable", "range", 1)
	m1.park()
	check("PreparingRebalance", "", 0)
	m2.join()
	m1.joined()
	check("CompletingRebalance", "", 0)
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = 6, []string{g + "-unknown"}
	if d := rig.Do[*kmsg.DescribeGroupsResponse](c, req).Groups[0]; d.ErrorCode != errGroupIDNotFound || d.State != "Dead" || d.ErrorMessage == nil {
		t.Errorf("unknown group, v6: %+v", d)
	}
	if d := describe(c, g+"-unknown"); d.ErrorCode != 0 || d.State != "Dead" {
		t.Errorf("unknown group, v5: %+v", d)
	}
}

func otherProtocolTypes(t *testing.T, srv *rig.Server, g string) {
	c := rig.Dial(t, srv.Addr)
	for _, kind := range []string{"connect", "sr"} {
		m := newPeer(t, srv, g+kind)
		m.protocolType, m.protocols = kind, protocols("v0", "\x00\xff\xfe\x01")
		m.join()
		m.sync(errNone, m.id, "\x00\xff")
		d := describe(c, g+kind)
		if d.ProtocolType != kind || string(d.Members[0].ProtocolMetadata) != "\x00\xff\xfe\x01" || string(d.Members[0].MemberAssignment) != "\x00\xff" {
			t.Errorf("%+v", d)
		}
	}
}

func listFilters(t *testing.T, srv *rig.Server, g string) {
	m := newPeer(t, srv, g+"-stable")
	stable(t, m)
	topic := newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	simpleCommit(c, g+"-simple", topic, 1)
	list := func(version int16, states, types []string) []string {
		req := kmsg.NewPtrListGroupsRequest()
		req.Version, req.StatesFilter, req.TypesFilter = version, states, types
		resp := rig.Do[*kmsg.ListGroupsResponse](c, req)
		var mine []string
		for _, l := range resp.Groups {
			if strings.HasPrefix(l.Group, g) {
				s := strings.TrimPrefix(l.Group, g) + " " + l.ProtocolType
				if version >= 4 {
					s += " " + l.GroupState
				}
				if version >= 5 {
					s += " " + l.GroupType
				}
				mine = append(mine, s)
			}
		}
		slices.Sort(mine)
		return mine
	}
	for _, k := range []struct {
		version       int16
		states, types []string
		want          string
	}{
		{0, nil, nil, "[-simple  -stable consumer]"},
		{3, nil, nil, "[-simple  -stable consumer]"},
		{4, nil, nil, "[-simple  Empty -stable consumer Stable]"},
		{4, []string{"Stable"}, nil, "[-stable consumer Stable]"},
		{4, []string{" stable ", "Empty"}, nil, "[-simple  Empty -stable consumer Stable]"},
		{4, []string{"NoSuch"}, nil, "[]"},
		{5, nil, []string{"classic"}, "[-simple  Empty classic -stable consumer Stable classic]"},
		{5, nil, []string{"CLASSIC"}, "[-simple  Empty classic -stable consumer Stable classic]"},
		{5, nil, []string{" classic"}, "[]"},
		{5, nil, []string{"consumer"}, "[]"},
		{5, []string{"empty"}, []string{"classic"}, "[-simple  Empty classic]"},
		{5, nil, []string{"x"}, "[]"},
	} {
		if got := fmt.Sprint(list(k.version, k.states, k.types)); got != k.want {
			t.Errorf("v%d %v %v: %s, want %s", k.version, k.states, k.types, got, k.want)
		}
	}
}

func deleteGroups(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	simpleCommit(c, g+"-empty", topic, 1)
	m, p := newPeer(t, srv, g+"-stable"), newPeer(t, srv, g+"-pending")
	stable(t, m)
	p.takeID()
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version = 2
	req.Groups = []string{g + "-empty", g + "-stable", g + "-pending", g + "-unknown", g + "-empty"}
	got := map[string]int16{}
	resp := rig.Do[*kmsg.DeleteGroupsResponse](c, req)
	for _, r := range resp.Groups {
		got[strings.TrimPrefix(r.Group, g)] = r.ErrorCode
	}
	if want := map[string]int16{"-empty": 0, "-stable": 68, "-pending": 0, "-unknown": 69}; fmt.Sprint(got) != fmt.Sprint(want) || len(resp.Groups) != 4 {
		t.Errorf("%v in %d answers, want %v", got, len(resp.Groups), want)
	}
	if o := fetchOffset(c, g+"-empty", topic); o != -1 {
		t.Errorf("the offset survived: %d", o)
	}
	p.code("JoinGroup with the pending id of a deleted group", p.joinCode(), errUnknownMember)
	n := newPeer(t, srv, g+"-empty")
	if n.join(); n.generation != 1 {
		t.Errorf("the new group begins at generation %d", n.generation)
	}
}

func createTopicsCorners(t *testing.T, srv *rig.Server, g string) {
	existing := newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, 10_000
	add := func(name string) {
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, -1, -1
		req.Topics = append(req.Topics, rt)
	}
	for _, name := range []string{existing, g + "-new", "", "..", strings.Repeat("x", 250), "a b", g + "-twice", g + "-twice"} {
		add(name)
	}
	codes := func() map[string]int16 {
		got := map[string]int16{}
		for _, r := range rig.Do[*kmsg.CreateTopicsResponse](c, req).Topics {
			name := r.Topic
			if len(name) > 200 {
				name = "long"
			}
			got[strings.TrimPrefix(name, g)] = r.ErrorCode
		}
		return got
	}
	want := map[string]int16{existing: errTopicExists, "-new": 0, "": errInvalidTopic, "..": errInvalidTopic, "long": errInvalidTopic, "a b": errInvalidTopic, "-twice": errInvalidRequest}
	if got := codes(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	req.Topics, req.ValidateOnly = nil, true
	add(g + "-dry")
	if got := codes(); got["-dry"] != 0 {
		t.Errorf("validate only: %v", got)
	}
	req.ValidateOnly = false
	if got := codes(); got["-dry"] != 0 {
		t.Errorf("validate only created the topic: %v", got)
	}
}

func assignmentBytes(t *testing.T, srv *rig.Server, g string) {
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	stable(t, m1, m2)
	for version := int16(0); version <= 5; version++ {
		for _, size := range []int{0, 1, 70_000} {
			m1.park()
			m2.join()
			m1.joined()
			want := strings.Repeat("\x00\xff\x7f", size/3+1)[:size]
			send := func(p *peer, assign bool) {
				req := kmsg.NewPtrSyncGroupRequest()
				req.Version, req.Group, req.MemberID, req.Generation = version, g, p.id, p.generation
				kind, name := "consumer", "range"
				req.ProtocolType, req.Protocol = &kind, &name
				if assign {
					req.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{
						{MemberID: m1.id, MemberAssignment: []byte(want)}, {MemberID: m2.id, MemberAssignment: []byte(want)},
						{MemberID: "nobody", MemberAssignment: []byte("x")},
					}
				}
				p.Send(req)
			}
			send(m2, false)
			send(m1, true)
			for _, p := range []*peer{m1, m2} {
				resp := rig.Answer[*kmsg.SyncGroupResponse](p.Conn)
				if resp.ErrorCode != 0 || string(resp.MemberAssignment) != want || resp.MemberAssignment == nil {
					t.Errorf("v%d, %d bytes: code %d, %d bytes came", version, size, resp.ErrorCode, len(resp.MemberAssignment))
				}
			}
		}
	}
	name, kind := "other", "consumer"
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.MemberID, req.Generation, req.Protocol, req.ProtocolType = 5, g, m1.id, m1.generation, &name, &kind
	if code := rig.Do[*kmsg.SyncGroupResponse](m1.Conn, req).ErrorCode; code != errInconsistent {
		t.Errorf("another protocol name: code %d, want 23", code)
	}
	req.Protocol = nil
	if code := rig.Do[*kmsg.SyncGroupResponse](m1.Conn, req).ErrorCode; code != errInconsistent {
		t.Errorf("no protocol name: code %d, want 23", code)
	}
}

func oddStrings(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	ids := []string{g + "/b c", g + "\u4e2d\u6587", g + strings.Repeat("x", 32_600), g + "a", g + "a\x00", g + "aa"}
	for i, id := range ids {
		if code := simpleCommit(c, id, topic, int64(i)); code != 0 {
			t.Errorf("group id %.20q: code %d", id, code)
		}
	}
	for i, id := range ids {
		if got := fetchOffset(c, id, topic); got != int64(i) {
			t.Errorf("group id %.20q: offset %d, want %d", id, got, i)
		}
	}
	for _, reason := range []string{"", "line\nbreak\x00", strings.Repeat("r", 32_767)} {
		m := newPeer(t, srv, g+"r")
		m.takeID()
		req := kmsg.NewPtrJoinGroupRequest()
		req.Version, req.Group, req.MemberID, req.Reason = 9, m.group, m.id, &reason
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis, req.ProtocolType, req.Protocols = 10_000, 10_000, "consumer", m.protocols
		m.Send(req)
		m.joined()
		m.leave()
	}
}

func offsetDelete(t *testing.T, srv *rig.Server, g string) {
	subscribed, other := newTopic(t, srv), newTopic(t, srv)
	m := newPeer(t, srv, g)
	sub := kmsg.NewConsumerMemberMetadata()
	sub.Topics = []string{subscribed}
	m.protocols = protocols("range", string(sub.AppendTo(nil)))
	stable(t, m)
	m.code("OffsetCommit", m.commit(subscribed, 1), errNone)
	m.code("OffsetCommit", m.commit(other, 2), errNone)
	c := rig.Dial(t, srv.Addr)
	del := func(group string) *kmsg.OffsetDeleteResponse {
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = group
		for _, topic := range []string{subscribed, other, "no-such-topic"} {
			req.Topics = append(req.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}})
		}
		return rig.Do[*kmsg.OffsetDeleteResponse](c, req)
	}
	got := map[string]int16{}
	for _, r := range del(g).Topics {
		got[r.Topic] = r.Partitions[0].ErrorCode
	}
	if got[subscribed] != errGroupSubscribed || got[other] != 0 || got["no-such-topic"] != errUnknownTopic {
		t.Errorf("%v", got)
	}
	if a, b := fetchOffset(c, g, subscribed), fetchOffset(c, g, other); a != 1 || b != -1 {
		t.Errorf("offsets %d and %d", a, b)
	}
	if resp := del(g + "-unknown"); resp.ErrorCode != errGroupIDNotFound {
		t.Errorf("unknown group: %+v", resp)
	}
	n := newPeer(t, srv, g+"-connect")
	n.protocolType = "connect"
	stable(t, n)
	if resp := del(g + "-connect"); resp.ErrorCode != errNonEmptyGroup {
		t.Errorf("connect group: %+v", resp)
	}
}

func metadataTooLarge(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, g, -1
	rt := kmsg.OffsetCommitRequestTopic{Topic: topic}
	// The limit of 4096 counts UTF-16 units: two for what takes four bytes here.
	for i, m := range []string{strings.Repeat("é", 4096), strings.Repeat("\U0001F600", 2049), "ok"} {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.Metadata = int32(i), 5, &m
		rt.Partitions = append(rt.Partitions, p)
	}
	req.Topics = []kmsg.OffsetCommitRequestTopic{rt}
	resp := rig.Do[*kmsg.OffsetCommitResponse](c, req)
	for i, want := range []int16{0, errMetadataTooLarge, 0} {
		if got := resp.Topics[0].Partitions[i].ErrorCode; got != want {
			t.Errorf("partition %d: code %d, want %d", i, got, want)
		}
	}
}
