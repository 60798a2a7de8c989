package compat

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// ours skips a test that needs a process it may kill.
func ours(t *testing.T, srv *rig.Server) {
	t.Helper()
	if srv.External() {
		skip(t, "kills of the server", "it is not ours")
	}
}

// TestB125GroupSurvivesRestart: a Stable group of three, one static, with binary
// metadata, is the same after SIGKILL, and nobody has to rejoin.
func TestB125GroupSurvivesRestart(t *testing.T) {
	srv := forRaw(t)
	ours(t, srv)
	g, topic := unique(t, "g"), newTopic(t, srv)
	m1, m2, m3 := newPeer(t, srv, g), newPeer(t, srv, g).static("i"), newPeer(t, srv, g)
	for _, p := range []*peer{m1, m2, m3} {
		p.protocols = protocols("coop", "\x00\xff\xfe", "range", "")
	}
	stable(t, m1, m2, m3)
	m1.code("OffsetCommit", m1.commit(topic, 42), errNone)
	before := fmt.Sprintf("%+v", described(m1.Conn, g))
	for range 3 {
		srv.Kill()
		srv.Restart()
		for i, p := range []*peer{m1, m2, m3} {
			p.Conn = rig.Dial(t, srv.Addr)
			p.code("Heartbeat after the restart", p.heartbeat(), errNone)
			if got := p.sync(errNone); got != fmt.Sprint(i) {
				t.Errorf("the assignment of %q became %q", p.id, got)
			}
		}
		if after := fmt.Sprintf("%+v", described(m1.Conn, g)); after != before {
			t.Errorf("the group was\n%s\nand is\n%s", before, after)
		}
		if resp := m3.join(); resp.LeaderID != m1.id {
			t.Errorf("leader %q", resp.LeaderID)
		}
		if got := fetchOffset(m1.Conn, g, topic); got != 42 {
			t.Errorf("offset %d, want 42", got)
		}
	}
	was := m1.generation
	m1.park()
	m2.park()
	m3.join()
	m1.joined()
	m2.joined()
	if m1.generation <= was {
		t.Errorf("generation %d after %d", m1.generation, was)
	}
}

// described is describe with what pointers point to.
func described(c *rig.Conn, group string) any {
	d := describe(c, group)
	var members []string
	for _, m := range d.Members {
		instance := "-"
		if m.InstanceID != nil {
			instance = *m.InstanceID
		}
		members = append(members, fmt.Sprintf("%s %s %s %s %x %x", m.MemberID, instance, m.ClientID, m.ClientHost, m.ProtocolMetadata, m.MemberAssignment))
	}
	return []any{d.State, d.ProtocolType, d.Protocol, members}
}

// TestB32StaticRejoinSurvives: the id that a restarted static member got is durable
// before it is told.
func TestB32StaticRejoinSurvives(t *testing.T) {
	srv := forRaw(t)
	ours(t, srv)
	old := newPeer(t, srv, unique(t, "g")).static("a")
	stable(t, old)
	now := newPeer(t, srv, old.group).static("a")
	now.join()
	srv.Kill()
	srv.Restart()
	now.Conn, old.Conn = rig.Dial(t, srv.Addr), rig.Dial(t, srv.Addr)
	now.code("Heartbeat of the new id", now.heartbeat(), errNone)
	old.code("Heartbeat of the old id", old.heartbeat(), errFencedInstance)
}

// TestB126NoAcknowledgedCommitIsLost kills the server again and again under commits of
// 50 partitions; what was acknowledged is there, and all 50 are of one commit.
func TestB126NoAcknowledgedCommitIsLost(t *testing.T) {
	rounds := 10
	if *full {
		rounds = 100
	}
	srv := forRaw(t)
	ours(t, srv)
	topic := unique(t, "t")
	rig.CreateTopic(t, rig.Admin(t, srv.Addr), topic, 50)
	g := unique(t, "g")
	var sent, acked int64
	for range rounds {
		c := rig.Dial(t, srv.Addr)
		for range 1 + rand.IntN(20) {
			sent++
			if code := rig.Do[*kmsg.OffsetCommitResponse](c, commitOf50(g, topic, sent)).Topics[0].Partitions[49].ErrorCode; code != 0 {
				t.Fatalf("commit: code %d", code)
			}
			acked = sent
		}
		for range rand.IntN(4) { // some that nobody waits for
			sent++
			c.Send(commitOf50(g, topic, sent))
		}
		srv.Kill()
		srv.Restart()
		got := fetchAll(rig.Dial(t, srv.Addr), 8, g, topic, allOf50()...)
		for _, p := range got {
			if p.ErrorCode != 0 || p.Offset < acked || p.Offset > sent || p.Offset != got[0].Offset {
				t.Fatalf("after %d acknowledged and %d sent: partition %d is at %d, partition 0 at %d", acked, sent, p.Partition, p.Offset, got[0].Offset)
			}
		}
		sent = got[0].Offset
		acked = sent
	}
}

func commitOf50(group, topic string, offset int64) kmsg.Request {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, group, -1
	rt := kmsg.OffsetCommitRequestTopic{Topic: topic}
	for _, p := range allOf50() {
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset = p, offset
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = []kmsg.OffsetCommitRequestTopic{rt}
	return req
}

func allOf50() []int32 {
	ps := make([]int32, 50)
	for i := range ps {
		ps[i] = int32(i)
	}
	return ps
}

// TestB84LargeGroupLoads: a group whose snapshot is some megabytes comes back.
func TestB84LargeGroupLoads(t *testing.T) {
	srv := forRaw(t, "ROLLCALL_GROUP_INITIAL_REBALANCE_DELAY_MS=1500")
	ours(t, srv)
	g := unique(t, "g")
	const n = 2000
	peers := make([]*peer, n)
	for i := range peers {
		peers[i] = newPeer(t, srv, g)
		peers[i].session, peers[i].rebalance = 60*time.Second, 60*time.Second
		peers[i].protocols = protocols("range", strings.Repeat("m", 2048), "other", strings.Repeat("o", 2048))
		peers[i].ask()
	}
	for _, p := range peers {
		p.joined()
	}
	for _, p := range peers[1:] {
		p.sendSync()
	}
	peers[0].sync(errNone, peers[0].id, strings.Repeat("a", 1<<20))
	srv.Kill()
	srv.Restart()
	if d := describe(rig.Dial(t, srv.Addr), g); d.State != "Stable" || len(d.Members) != n {
		t.Errorf("%s with %d members", d.State, len(d.Members))
	}
}

// TestB64ExpiryDataSurvives: an explicit retention keeps its deadline over a restart.
func TestB64ExpiryDataSurvives(t *testing.T) {
	srv := forRaw(t)
	ours(t, srv)
	g, topic := unique(t, "g"), newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation, req.RetentionTimeMillis = 2, g, -1, 5000
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = 1
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	rig.Do[*kmsg.OffsetCommitResponse](c, req)
	began := time.Now()
	srv.Kill()
	srv.Restart()
	c = rig.Dial(t, srv.Addr)
	if got := fetchOffset(c, g, topic); got != 1 && time.Since(began) < 5*time.Second {
		t.Errorf("offset %d right after the restart, want 1", got)
	}
	rig.Eventually(t, 10*time.Second, "the offset expires", func() error {
		if fetchOffset(c, g, topic) != -1 {
			return rig.ErrQuiet
		}
		return nil
	})
	if d := time.Since(began); d < 5*time.Second {
		t.Errorf("the offset expired after %v", d)
	}
}

// TestB60ShardCountIsFixed: another shard count later is refused, and nothing is lost.
func TestB60ShardCountIsFixed(t *testing.T) {
	srv := forRaw(t, "ROLLCALL_OFFSETS_TOPIC_NUM_PARTITIONS=7")
	ours(t, srv)
	topic, g := newTopic(t, srv), unique(t, "g")
	c := rig.Dial(t, srv.Addr)
	for i := range 200 {
		simpleCommit(c, fmt.Sprint(g, i), topic, int64(i))
	}
	srv.Stop()
	if out := srv.MustNotStart("ROLLCALL_OFFSETS_TOPIC_NUM_PARTITIONS=8"); !strings.Contains(out, "7") || !strings.Contains(out, "8") {
		t.Errorf("the refusal does not name both numbers: %s", out)
	}
	srv.Restart()
	c = rig.Dial(t, srv.Addr)
	for i := range 200 {
		if got := fetchOffset(c, fmt.Sprint(g, i), topic); got != int64(i) {
			t.Errorf("group %d: offset %d", i, got)
		}
	}
}

// TestStopAnswersWhatIsHeld: SIGTERM answers 50 held JoinGroups with NOT_COORDINATOR,
// within the time of [rig.Server.Stop].
func TestStopAnswersWhatIsHeld(t *testing.T) {
	srv := forRaw(t)
	ours(t, srv)
	var held []*peer
	for i := range 50 {
		m, n := newPeer(t, srv, fmt.Sprint(unique(t, "g"), i)), newPeer(t, srv, "")
		n.group = m.group
		stable(t, m)
		n.ask()
		held = append(held, n)
	}
	held[49].Quiet(50 * time.Millisecond)
	srv.Stop()
	for _, n := range held {
		if resp := rig.Answer[*kmsg.JoinGroupResponse](n.Conn); resp.ErrorCode != errNotCoordinator {
			t.Errorf("a held JoinGroup is answered %d, want 16", resp.ErrorCode)
		}
	}
}

// TestB122FloodOfMemberIDs: ids that are never used neither hold up a group for long
// nor stay in memory.
func TestB122FloodOfMemberIDs(t *testing.T) {
	ids := 3000
	if *full {
		ids = 20_000
	}
	srv := forRaw(t)
	g := unique(t, "g")
	flood := newPeer(t, srv, g)
	flood.session = 30 * time.Minute
	for range ids {
		flood.sendJoin()
	}
	refused := 0
	for range ids {
		switch code := rig.Answer[*kmsg.JoinGroupResponse](flood.Conn).ErrorCode; code {
		case errMemberIDRequired:
		case errGroupMaxSize:
			refused++
		default:
			t.Fatalf("code %d", code)
		}
	}
	t.Logf("%d of %d ids were refused", refused, ids)
	m := newPeer(t, srv, g)
	m.rebalance = time.Second
	m.joinVersion = 3
	began := time.Now()
	m.join()
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("the consumer waited %v", d)
	}
}

// TestB124SeriesStayBounded: names from the network do not become metric labels.
func TestB124SeriesStayBounded(t *testing.T) {
	srv := forRaw(t)
	ours(t, srv)
	series := func() int {
		resp, err := http.Get("http://" + srv.Admin + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(body, []byte("\n"))
	}
	c := rig.Dial(t, srv.Addr)
	ask := func(n int) {
		for i := range n {
			c.ClientID = fmt.Sprint("client", i)
			fetchOffset(c, fmt.Sprint("group", rand.Uint64()), "none")
		}
	}
	ask(10)
	before := series()
	requests := 3000
	if *full {
		requests = 50_000
	}
	ask(requests)
	for range 1000 {
		resp, err := http.Get(fmt.Sprintf("http://%s/subjects/%d", srv.Admin, rand.Uint64()))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body) // so that the connection serves again
		resp.Body.Close()
	}
	if after := series(); after > before+10 {
		t.Errorf("%d lines of metrics became %d", before, after)
	}
}
