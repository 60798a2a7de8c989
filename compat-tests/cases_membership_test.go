package compat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// wireCase is one scenario from public bug reports, played in raw requests.
type wireCase struct {
	name string
	play func(t *testing.T, srv *rig.Server, group string)
}

// play runs cases side by side, each with a group id of its own.
func play(t *testing.T, srv *rig.Server, cases []wireCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.play(t, srv, unique(t, "g"))
		})
	}
}

func TestMembershipCases(t *testing.T) {
	play(t, forRaw(t), []wireCase{
		{"B01 late joiner", lateJoiner},
		{"B02 parked sync is released", parkedSync},
		{"B04 one client id, two members", oneClientID},
		{"B05 unchanged rejoin", unchangedRejoin},
		{"B06 repeated sync", repeatedSync},
		{"B07 leader never syncs", leaderNeverSyncs},
		{"B09 member lost in a rebalance", memberLost},
		{"B10 pending member", pendingMember},
		{"B12 JoinGroup v0", joinV0},
		{"B20 commits are heartbeats", commitsAreHeartbeats},
		{"B21 heartbeat while syncing", heartbeatWhileSyncing},
		{"B23 timers of the removed", removedTimers},
		{"B24 expiry on time", expiryOnTime},
		{"B28 static join while syncing", staticWhileSyncing},
		{"B30 who is fenced", whoIsFenced},
		{"B31 static leader restarts", staticLeaderRestarts},
		{"B34 new timeouts of a static member", staticTimeouts},
		{"B36 leave by instance id", leaveByInstance},
		{"B38 static ids are unique", staticIDsUnique},
		{"B40 newest metadata", newestMetadata},
		{"B44 leave in batches", leaveInBatches},
		{"B165 slow member keeps its place", slowMember},
	})
}

func lateJoiner(t *testing.T, srv *rig.Server, g string) {
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	m1.join()
	m2.park()
	if got := m1.sync(errRebalancing, m1.id, "all"); got != "" {
		t.Errorf("a refused SyncGroup carries %q", got)
	}
	m1.code("Heartbeat", m1.heartbeat(), errRebalancing)
	m1.ask()
	resp := m1.joined()
	m2.joined()
	if m1.generation != 2 || m2.generation != 2 || len(resp.Members) != 2 {
		t.Errorf("generations %d and %d with %d members, want 2, 2, 2", m1.generation, m2.generation, len(resp.Members))
	}
	syncAll(m1, m2)
}

func parkedSync(t *testing.T, srv *rig.Server, g string) {
	m1, m2, m3 := newPeer(t, srv, g), newPeer(t, srv, g), newPeer(t, srv, g)
	stable(t, m1, m2)
	m2.protocols = protocols("range", "changed")
	m2.park()
	m1.join()
	m2.joined()
	m2.sendSync()
	m2.Quiet(100 * time.Millisecond)
	m3.park()
	m2.synced(errRebalancing)
	id := m2.id
	m2.ask()
	m1.ask()
	for _, p := range []*peer{m1, m2, m3} {
		p.joined()
	}
	if m2.id != id {
		t.Errorf("the follower became %q", m2.id)
	}
	syncAll(m1, m2, m3)
}

func oneClientID(t *testing.T, srv *rig.Server, g string) {
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	m1.joinVersion, m2.joinVersion = 3, 3
	m1.rebalance, m2.rebalance = 3*time.Second, 3*time.Second
	m1.ClientID, m2.ClientID = "sarama", "sarama"
	m1.join()
	m2.park()
	m1.ask()
	resp := m1.joined()
	m2.joined()
	if m1.id == m2.id || len(resp.Members) != 2 {
		t.Errorf("members %v", memberIDs(resp))
	}
	other := *m1
	other.group, other.id = g+"-other", ""
	other.join()
	if other.id == m1.id {
		t.Errorf("two groups share the member id %q", m1.id)
	}
	again := *m1
	again.id = ""
	again.park() // its connection belongs to it now: m1 cannot rejoin, and is dropped
	m2.ask()
	again.joined()
	resp = m2.joined()
	if _, there := memberIDs(resp)[again.id]; !there || again.id == m1.id || len(resp.Members) != 2 {
		t.Errorf("one connection, two joins: %q after %q, members %v", again.id, m1.id, memberIDs(resp))
	}
}

func unchangedRejoin(t *testing.T, srv *rig.Server, g string) {
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	stable(t, m1, m2)
	was := m1.generation
	resp := m2.join()
	if m2.generation != was || resp.LeaderID != m1.id || len(resp.Members) != 0 {
		t.Errorf("unchanged follower: generation %d, leader %q, %d members", m2.generation, resp.LeaderID, len(resp.Members))
	}
	m1.code("Heartbeat", m1.heartbeat(), errNone)
	m1.park()
	m2.code("Heartbeat", m2.heartbeat(), errRebalancing)
	m2.join()
	m1.joined()
	if again := m1.join(); m1.generation != was+1 || len(again.Members) != 2 {
		t.Errorf("the leader's repeat while syncing: generation %d, %d members", m1.generation, len(again.Members))
	}
	syncAll(m1, m2)
	m2.protocols = protocols("range", "changed")
	m2.park()
	m1.code("Heartbeat", m1.heartbeat(), errRebalancing)
}

func repeatedSync(t *testing.T, srv *rig.Server, g string) {
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	stable(t, m1, m2)
	m2.Close()
	m2.Conn = rig.Dial(t, srv.Addr)
	for range 2 {
		if got := m2.sync(errNone); got != "1" {
			t.Errorf("the repeated SyncGroup gives %q", got)
		}
	}
	if got := m1.sync(errNone, m1.id, "x", m2.id, "y"); got != "0" {
		t.Errorf("a second assignment by the leader gives %q", got)
	}
	if got := m2.sync(errNone); got != "1" {
		t.Errorf("a second assignment by the leader changed the follower's to %q", got)
	}
}

func leaderNeverSyncs(t *testing.T, srv *rig.Server, g string) {
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	m1.rebalance, m2.rebalance = time.Second, time.Second
	stable(t, m1, m2)
	m2.protocols = protocols("range", "changed")
	m2.park()
	m1.join()
	m2.joined()
	m2.sendSync()
	began := time.Now()
	m1.beat(800*time.Millisecond, errNone)
	m2.synced(errRebalancing)
	if d := time.Since(began); d < 900*time.Millisecond || d > 3*time.Second {
		t.Errorf("the leader was removed after %v, want 1s", d)
	}
	m1.code("Heartbeat", m1.heartbeat(), errUnknownMember)
}

func memberLost(t *testing.T, srv *rig.Server, g string) {
	for _, leaves := range []bool{true, false} {
		m1, m2, m3, m4 := newPeer(t, srv, g), newPeer(t, srv, g), newPeer(t, srv, g), newPeer(t, srv, g)
		m3.session = time.Second
		stable(t, m1, m2, m3)
		m4.park()
		m1.park()
		m2.park()
		began := time.Now()
		if leaves {
			m3.code("LeaveGroup", m3.leave(), errNone)
		}
		resp := m1.joined()
		m2.joined()
		m4.joined()
		if d := time.Since(began); len(resp.Members) != 3 || d > 3*time.Second {
			t.Errorf("leaves %v: the round ended after %v with %d members", leaves, d, len(resp.Members))
		}
		for _, p := range []*peer{m1, m2, m4} {
			p.leave()
		}
	}
}

func pendingMember(t *testing.T, srv *rig.Server, g string) {
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	stable(t, m1)
	p := newPeer(t, srv, g)
	p.session = 1500 * time.Millisecond
	p.takeID()
	began := time.Now()
	p.code("Heartbeat of a pending id", p.heartbeat(), errUnknownMember)
	p.sync(errUnknownMember)
	m2.park()
	m1.ask()
	m1.Quiet(500 * time.Millisecond)
	m1.joined()
	if d := time.Since(began); d < 1300*time.Millisecond || d > 3*time.Second {
		t.Errorf("the round waited %v for the pending id, want 1.5s", d)
	}
	m2.joined()
	syncAll(m1, m2)
	p2 := newPeer(t, srv, g).takeID()
	m1.park()
	m2.park()
	p2.code("LeaveGroup of a pending id", p2.leave(), errNone)
	m1.joined()
	m2.joined()
}

func joinV0(t *testing.T, srv *rig.Server, g string) {
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	m1.joinVersion, m2.joinVersion = 0, 0
	m1.session, m2.session = 3*time.Second, 3*time.Second
	m1.join()
	m1.sync(errNone, m1.id, "0")
	m2.park()
	m1.beat(500*time.Millisecond, errRebalancing)
	id := m1.id
	m1.join()
	m2.joined()
	if m1.id != id || m1.generation != m2.generation {
		t.Errorf("m1 is %q at %d, m2 at %d", m1.id, m1.generation, m2.generation)
	}
}

func commitsAreHeartbeats(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	m1 := newPeer(t, srv, g)
	m1.session = 800 * time.Millisecond
	stable(t, m1)
	commits := func(what string) {
		t.Helper()
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for n := range int64(12) {
			m1.code(what, m1.commit(topic, n), errNone)
			<-tick.C
		}
	}
	commits("OffsetCommit in Stable")
	m2 := newPeer(t, srv, g)
	m2.park()
	commits("OffsetCommit in PreparingRebalance")
	m1.join()
	m2.joined()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	rig.Eventually(t, 4*time.Second, "refused commits do not renew the session", func() error {
		<-tick.C
		if m1.commit(topic, 5) == errUnknownMember {
			return nil
		}
		return rig.ErrQuiet
	})
}

func heartbeatWhileSyncing(t *testing.T, srv *rig.Server, g string) {
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	m2.session = 500 * time.Millisecond
	stable(t, m1, m2)
	m1.park()
	m2.beat(1200*time.Millisecond, errRebalancing)
	m2.join()
	m1.joined()
	m2.beat(1200*time.Millisecond, errNone)
	syncAll(m1, m2)
}

func removedTimers(t *testing.T, srv *rig.Server, g string) {
	m1, m2, m3 := newPeer(t, srv, g), newPeer(t, srv, g), newPeer(t, srv, g)
	for _, p := range []*peer{m1, m2, m3} {
		p.rebalance = time.Second
	}
	m2.session = 2500 * time.Millisecond
	stable(t, m1, m2)
	was := m1.generation
	m3.park()
	m1.ask()
	m1.joined()
	m3.joined()
	syncAll(m1, m3)
	m1.beat(2500*time.Millisecond, errNone)
	if m1.generation != was+1 {
		t.Errorf("generation %d, want %d", m1.generation, was+1)
	}
	m2.code("Heartbeat", m2.heartbeat(), errUnknownMember)
}

func expiryOnTime(t *testing.T, srv *rig.Server, g string) {
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	m1.session, m2.session = time.Second, time.Second
	stable(t, m1, m2)
	began := time.Now()
	m1.Close()
	c := rig.Dial(t, srv.Addr)
	rig.Eventually(t, 5*time.Second, "both members are gone", func() error {
		if s := describe(c, g).State; s != "Empty" && s != "Dead" {
			return rig.ErrQuiet
		}
		return nil
	})
	if d := time.Since(began); d < 800*time.Millisecond || d > 2*time.Second {
		t.Errorf("the members expired after %v, want 1s", d)
	}
	m3 := newPeer(t, srv, g)
	began = time.Now()
	m3.join()
	if d := time.Since(began); d > time.Second {
		t.Errorf("a join after the expiry took %v", d)
	}
}

func staticWhileSyncing(t *testing.T, srv *rig.Server, g string) {
	s1, s2 := newPeer(t, srv, g).static("a"), newPeer(t, srv, g).static("b")
	stable(t, s1, s2)
	s1.park()
	s2.join()
	s1.joined()
	old := s2.id
	again := newPeer(t, srv, g).static("b")
	again.park()
	s1.sync(errRebalancing, s1.id, "0", old, "1")
	resp := s1.join()
	again.joined()
	if _, there := memberIDs(resp)[again.id]; !there || again.id == old {
		t.Errorf("the next generation lists %v, not %q", memberIDs(resp), again.id)
	}
}

func whoIsFenced(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	old := newPeer(t, srv, g).static("a")
	stable(t, old)
	now := newPeer(t, srv, g).static("a")
	now.join()
	if now.generation != old.generation || now.id == old.id {
		t.Errorf("the new one is %q at %d, the old one %q at %d", now.id, now.generation, old.id, old.generation)
	}
	old.code("Heartbeat", old.heartbeat(), errFencedInstance)
	old.code("OffsetCommit", old.commit(topic, 1), errFencedInstance)
	old.sync(errFencedInstance)
	old.code("LeaveGroup", old.leave(), errFencedInstance)
	old.code("JoinGroup", old.joinCode(), errFencedInstance)
	old.instance = nil
	old.code("Heartbeat without the instance id", old.heartbeat(), errUnknownMember)
	if got := now.sync(errNone); got != "0" {
		t.Errorf("the new one gets %q", got)
	}
	now.code("Heartbeat", now.heartbeat(), errNone)
}

func staticLeaderRestarts(t *testing.T, srv *rig.Server, g string) {
	s1, s2 := newPeer(t, srv, g).static("a"), newPeer(t, srv, g).static("b")
	stable(t, s1, s2)
	was, old := s1.generation, s1.id
	v8 := newPeer(t, srv, g).static("a")
	v8.joinVersion = 8
	if resp := v8.join(); resp.LeaderID != old || len(resp.Members) != 0 || resp.Generation != was {
		t.Errorf("v8: leader %q, %d members, generation %d", resp.LeaderID, len(resp.Members), resp.Generation)
	}
	v9 := newPeer(t, srv, g).static("a")
	if resp := v9.join(); resp.LeaderID != v9.id || len(resp.Members) != 2 || !resp.SkipAssignment || resp.Generation != was {
		t.Errorf("v9: leader %q of %q, %d members, skip %v, generation %d", resp.LeaderID, v9.id, len(resp.Members), resp.SkipAssignment, resp.Generation)
	}
	if got := v9.sync(errNone); got != "0" {
		t.Errorf("the restarted leader gets %q", got)
	}
	s2.code("Heartbeat", s2.heartbeat(), errNone)
}

func staticTimeouts(t *testing.T, srv *rig.Server, g string) {
	s1 := newPeer(t, srv, g).static("a")
	s1.session, s1.rebalance = 600*time.Millisecond, 600*time.Millisecond
	stable(t, s1)
	again := newPeer(t, srv, g).static("a")
	again.session, again.rebalance = 10*time.Second, 10*time.Second
	again.join()
	again.sync(errNone)
	again.code("Heartbeat", again.heartbeat(), errNone)
	m := newPeer(t, srv, g)
	m.Quiet(1500 * time.Millisecond)
	again.code("Heartbeat after the old session timeout", again.heartbeat(), errNone)
	m.ask()
	m.Quiet(1500 * time.Millisecond)
	again.join()
	m.joined()
}

func leaveByInstance(t *testing.T, srv *rig.Server, g string) {
	for _, version := range []int16{3, 4, 5} {
		g := fmt.Sprint(g, version)
		a, b, m := newPeer(t, srv, g).static("a"), newPeer(t, srv, g).static("b"), newPeer(t, srv, g)
		stable(t, a, b, m)
		was := b.generation
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Version, req.Group = version, g
		member := func(id string, instance *string) {
			req.Members = append(req.Members, kmsg.LeaveGroupRequestMember{MemberID: id, InstanceID: instance})
		}
		zz := "zz"
		member("", a.instance)
		member("bad", b.instance)
		member("", &zz)
		member(m.id, nil)
		member("nope", nil)
		resp := rig.Do[*kmsg.LeaveGroupResponse](rig.Dial(t, srv.Addr), req)
		want := []int16{errNone, errFencedInstance, errUnknownMember, errNone, errUnknownMember}
		if resp.ErrorCode != errNone || len(resp.Members) != len(want) {
			t.Fatalf("v%d: code %d with %d members", version, resp.ErrorCode, len(resp.Members))
		}
		for i, got := range resp.Members {
			asked := req.Members[i]
			if got.ErrorCode != want[i] || got.MemberID != asked.MemberID {
				t.Errorf("v%d, member %d: code %d of %q, want %d of %q", version, i, got.ErrorCode, got.MemberID, want[i], asked.MemberID)
			}
			if (got.InstanceID == nil) != (asked.InstanceID == nil) || got.InstanceID != nil && *got.InstanceID != *asked.InstanceID {
				t.Errorf("v%d, member %d: the instance id is not echoed", version, i)
			}
		}
		b.join()
		if b.generation != was+1 {
			t.Errorf("v%d: the batch made generation %d, want %d", version, b.generation, was+1)
		}
	}
}

func staticIDsUnique(t *testing.T, srv *rig.Server, g string) {
	seen := map[string]bool{}
	first := newPeer(t, srv, g).static("a")
	stable(t, first)
	seen[first.id] = true
	for range 3 {
		p := newPeer(t, srv, g).static("a")
		p.join()
		if seen[p.id] || !strings.HasPrefix(p.id, "a-") {
			t.Errorf("member id %q", p.id)
		}
		seen[p.id] = true
	}
}

func newestMetadata(t *testing.T, srv *rig.Server, g string) {
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	m1.protocols = protocols("coop", "A1", "range", "other")
	m2.protocols = protocols("coop", "A2", "range", "other")
	stable(t, m1, m2)
	m2.protocols = protocols("coop", "A2'", "range", "other")
	m2.park()
	second := *m2
	second.Conn = rig.Dial(t, srv.Addr)
	second.protocols = protocols("coop", "", "range", "other")
	second.park()
	resp := m1.join()
	ids := memberIDs(resp)
	if got, there := ids[m2.id]; !there || got != "" || ids[m1.id] != "A1" || *resp.Protocol != "coop" {
		t.Errorf("the leader sees %q under %q", ids, *resp.Protocol)
	}
	for _, m := range resp.Members {
		if m.ProtocolMetadata == nil {
			t.Errorf("the empty metadata of %q became null", m.MemberID)
		}
	}
}

func leaveInBatches(t *testing.T, srv *rig.Server, g string) {
	for _, version := range []int16{0, 2, 3, 4, 5} {
		m1, m2, m3 := newPeer(t, srv, g), newPeer(t, srv, g), newPeer(t, srv, g)
		stable(t, m1, m2, m3)
		was := m1.generation
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Version, req.Group = version, g
		if version < 3 {
			req.MemberID = m2.id
			if resp := rig.Do[*kmsg.LeaveGroupResponse](m2.Conn, req); resp.ErrorCode != 0 {
				t.Errorf("v%d: code %d", version, resp.ErrorCode)
			}
			m3.leave()
		} else {
			reason := "the consumer is being closed"
			req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: m2.id, Reason: &reason}, {MemberID: m3.id}}
			resp := rig.Do[*kmsg.LeaveGroupResponse](m2.Conn, req)
			if len(resp.Members) != 2 || resp.ErrorCode != 0 || resp.Members[0].ErrorCode != 0 || resp.Members[1].ErrorCode != 0 {
				t.Errorf("v%d: %+v", version, resp)
			}
		}
		if resp := m1.join(); len(resp.Members) != 1 || m1.generation != was+1 {
			t.Errorf("v%d: generation %d with %d members, want %d with 1", version, m1.generation, len(resp.Members), was+1)
		}
		m1.leave()
	}
}

func slowMember(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	m1, m2 := newPeer(t, srv, g), newPeer(t, srv, g)
	stable(t, m1, m2)
	m1.protocols = protocols("range", "once")
	m1.park()
	m2.join()
	m1.joined()
	m1.sync(errNone, m1.id, "0", m2.id, "1")
	m1.protocols = protocols("range", "twice")
	m1.park()
	m2.sync(errRebalancing)
	m2.code("OffsetCommit of the round that ends", m2.commit(topic, 7), errNone)
	id, was := m2.id, m2.generation
	m2.join()
	resp := m1.joined()
	if m2.id != id || m2.generation != was+1 || memberIDs(resp)[m1.id] != "twice" {
		t.Errorf("m2 is %q at %d; the leader sees %v", m2.id, m2.generation, memberIDs(resp))
	}
}
