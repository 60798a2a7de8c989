package api

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestB36_OneRoundForTheWholeBatch(t *testing.T) {
	scenario(t, func(w *world) {
		a, b, dynamic, stays := w.static("g", "a"), w.static("g", "b"), w.consumer("g"), w.consumer("g")
		w.stable(stays, a, b, dynamic)
		got := w.leave(5, "g", kmsg.LeaveGroupRequestMember{InstanceID: ptr("a")}, kmsg.LeaveGroupRequestMember{MemberID: "bad", InstanceID: ptr("b")},
			kmsg.LeaveGroupRequestMember{InstanceID: ptr("zz")}, kmsg.LeaveGroupRequestMember{MemberID: dynamic.id}, kmsg.LeaveGroupRequestMember{MemberID: "nope"})
		w.want("the list", got, "0 0 82 25 0 25")
		w.want("who is left", fmt.Sprint(stays.beats(), b.beats(), a.beats(), dynamic.beats()), "27 27 25 25")
		w.complete([]*consumer{stays, b}, []*waiting{stays.joins(), b.joins()})
		w.want("generation", stays.generation, 2)
	})
}

func TestB49_B52_B57_CommitAndFetch(t *testing.T) {
	scenario(t, func(w *world) {
		put := func(version int16, offset int64, epoch int32, metadata *string) {
			req := commitRequest(t, "t:0")
			req.Group = "g"
			p := &req.Topics[0].Partitions[0]
			p.Offset, p.LeaderEpoch, p.Metadata = offset, epoch, metadata
			w.want("commit", commitAnswer(w.send(version, req).response()), "t:0=0")
		}
		get := func(version int16) string {
			resp := w.send(version, fetchRequest(t, "g=t:0")).response().(*kmsg.OffsetFetchResponse)
			if version < 8 {
				p := resp.Topics[0].Partitions[0]
				return fmt.Sprintf("%d %d %q", p.Offset, p.LeaderEpoch, *p.Metadata)
			}
			p := resp.Groups[0].Topics[0].Partitions[0]
			return fmt.Sprintf("%d %d %q", p.Offset, p.LeaderEpoch, *p.Metadata)
		}
		for _, step := range []struct {
			version  int16
			offset   int64
			epoch    int32
			metadata *string
			want     string
		}{
			{6, 100, 7, ptr("x"), `100 7 "x"`}, {6, 40, -1, ptr(""), `40 -1 ""`}, {8, 40, 9, nil, `40 9 ""`},
			{5, 40, 3, nil, `40 -1 ""`}, {10, 0, 0, ptr("y"), `0 0 "y"`}, {2, -5, 4, nil, `-5 -1 ""`},
		} {
			put(step.version, step.offset, step.epoch, step.metadata)
			for _, v := range []int16{5, 7, 8, 9, 10} {
				w.want(fmt.Sprintf("v%d after v%d", v, step.version), get(v), step.want)
			}
			w.crash()
			w.want("after a restart", get(8), step.want)
		}
	})
}

// What a group shows while it rebalances: no protocol, no metadata, but the last
// assignments.
func TestB89_DescribeWhileRebalancing(t *testing.T) {
	scenario(t, func(w *world) {
		members := func() string {
			g := w.send(5, &kmsg.DescribeGroupsRequest{Groups: []string{"g"}}).response().(*kmsg.DescribeGroupsResponse).Groups[0]
			var s []string
			for _, m := range g.Members {
				s = append(s, fmt.Sprintf("%d:%s@%s%s", len(m.ProtocolMetadata), m.MemberAssignment, m.ClientID, m.ClientHost))
			}
			return fmt.Sprintf("%s %q %s", g.State, g.Protocol, strings.Join(s, " "))
		}
		a, b := w.consumer("g"), w.consumer("g")
		w.stable(a)
		size := len(subscription("t"))
		w.want("Stable", members(), fmt.Sprintf(`Stable "range" %d:for-0@client/10.0.0.1`, size))
		b.obtain()
		joinB := b.joins()
		w.want("PreparingRebalance", members(), `PreparingRebalance "" 0:for-0@client/10.0.0.1 0:@client/10.0.0.1`)
		a.joined(a.joins())
		b.joined(joinB)
		w.want("CompletingRebalance", members(), `CompletingRebalance "" 0:for-0@client/10.0.0.1 0:@client/10.0.0.1`)
		w.want("list", w.list(), "g/consumer/CompletingRebalance")
	})
}

// B90 and B101: bytes that no client of ours could read go through untouched,
// also through a restart.
func TestB90_B101_OpaqueBytes(t *testing.T) {
	scenario(t, func(w *world) {
		junk := bytes.Repeat([]byte{0xff, 0x00, 0x80}, 24000)
		a := w.consumer("g")
		a.kind, a.protocols = "connect", []string{"p"}
		a.obtain()
		p := a.w.send(9, &kmsg.JoinGroupRequest{Group: "g", SessionTimeoutMillis: 10000, RebalanceTimeoutMillis: 10000, MemberID: a.id, ProtocolType: "connect",
			Protocols: []kmsg.JoinGroupRequestProtocol{{Name: "p", Metadata: junk}}})
		if got := a.joined(p).Members[0].ProtocolMetadata; !bytes.Equal(got, junk) {
			t.Errorf("%d bytes of metadata", len(got))
		}
		if got := synced(a.syncs(a.id, string(junk))); got != "0 "+string(junk) {
			t.Errorf("%d bytes of assignment", len(got)-2)
		}
		w.crash()
		if got := synced(a.syncs()); got != "0 "+string(junk) {
			t.Errorf("%d bytes of assignment after a restart", len(got)-2)
		}
		g := w.send(5, &kmsg.DescribeGroupsRequest{Groups: []string{"g"}}).response().(*kmsg.DescribeGroupsResponse).Groups[0]
		if g.ProtocolType != "connect" || !bytes.Equal(g.Members[0].ProtocolMetadata, junk) || !bytes.Equal(g.Members[0].MemberAssignment, junk) {
			t.Errorf("described as %s with %d and %d bytes", g.ProtocolType, len(g.Members[0].ProtocolMetadata), len(g.Members[0].MemberAssignment))
		}
	})
}

// The versions that Karapace speaks to a broker of 2.3 or later, and what it needs
// of the answers: 79 from version 4 on, the whole list to the leader, bytes as sent.
func TestKarapaceConversation(t *testing.T) {
	scenario(t, func(w *world) {
		w.client = "sr-1"
		find := findAnswer(w.send(1, &kmsg.FindCoordinatorRequest{CoordinatorKey: "schema-registry"}).response())
		w.want("FindCoordinator v1", find, "0 1 inside:1001 NONE")
		join := func(id string) *waiting {
			return w.send(5, &kmsg.JoinGroupRequest{Group: "schema-registry", SessionTimeoutMillis: 10000, RebalanceTimeoutMillis: 30000, MemberID: id,
				ProtocolType: "sr", Protocols: []kmsg.JoinGroupRequestProtocol{{Name: "v0", Metadata: []byte(`{"host":"h"}`)}}})
		}
		first := join("").response().(*kmsg.JoinGroupResponse)
		w.want("JoinGroup v5", first.ErrorCode, 79)
		resp := join(first.MemberID).response().(*kmsg.JoinGroupResponse)
		w.want("the member", fmt.Sprintf("%d %d %s %v %s", resp.ErrorCode, resp.Generation, *resp.Protocol, resp.LeaderID == resp.MemberID, resp.Members[0].ProtocolMetadata), `0 1 v0 true {"host":"h"}`)
		sync := w.send(3, &kmsg.SyncGroupRequest{Group: "schema-registry", Generation: 1, MemberID: resp.MemberID,
			GroupAssignment: []kmsg.SyncGroupRequestGroupAssignment{{MemberID: resp.MemberID, MemberAssignment: []byte(`{"error":0}`)}}})
		w.want("SyncGroup v3", synced(sync), `0 {"error":0}`)
		beat := &kmsg.HeartbeatRequest{Group: "schema-registry", Generation: 1, MemberID: resp.MemberID}
		w.want("Heartbeat v1", w.send(1, beat).response().(*kmsg.HeartbeatResponse).ErrorCode, 0)
		w.want("LeaveGroup v1", w.leave(1, "schema-registry", kmsg.LeaveGroupRequestMember{MemberID: resp.MemberID}), "0")
	})
}

// S3.7 and S3.11: the type of a group is its own, a SyncGroup that names another
// is refused, and an unknown group is 25, which makes clients join again, not 24,
// which ends them.
func TestS3_7_S3_11_ProtocolTypeAndUnknownGroups(t *testing.T) {
	scenario(t, func(w *world) {
		a := w.consumer("g")
		a.kind, a.protocols = "sr", []string{"v0"}
		a.obtain()
		resp := a.joined(a.joins())
		w.want("type and name", *resp.ProtocolType+" "+*resp.Protocol, "sr v0")
		liar := *a
		liar.kind = "consumer"
		w.want("another type", synced(liar.syncs()), "23 ")
		liar.kind, liar.protocols = "sr", []string{"v1"}
		w.want("another name", synced(liar.syncs()), "23 ")
		w.want("its own", synced(a.syncs(a.id, "x")), "0 x")
		stranger := w.consumer("nix")
		stranger.id, stranger.generation = "m", 1
		w.want("unknown group", fmt.Sprintf("%d, %s, %d", stranger.beats(), synced(stranger.syncs()), stranger.joined(stranger.joins()).ErrorCode), "25, 25 , 25")
		w.want("unknown group, leave", stranger.leaves(), "0 25")
	})
}

// A write that does not reach the disk: the reply is the same error for every partition
// after offsets.commit.timeout.ms, other groups do not wait, and the state is kept.
func TestWriteTimeout(t *testing.T) {
	scenario(t, func(w *world) {
		a, other := w.consumer("g"), w.consumer("other")
		w.stable(a)
		w.stable(other)
		w.memory.Hold()
		start := time.Now()
		req := commitRequest(t, "t:2,0,1 u:1,0")
		req.Group, req.MemberID, req.Generation = "g", a.id, a.generation
		commit := w.send(8, req)
		fetch := w.send(8, fetchRequest(t, "g=t:0"))
		w.want("another group", other.beats(), 0)
		w.want("the group waits", commit.parked() && fetch.parked(), true)
		w.want("commit", commitAnswer(commit.after(start, 5*time.Second)), "t:2=15,0=15,1=15 u:1=15,0=15")
		w.want("fetch", fetchAnswer(t, fetch.response()), "16|")
		w.memory.Release()
		w.want("it has landed", w.fetch(8, "g=t:0,1,2 u:0,1"), "0|t:0=100/0,1=101/0,2=102/0 u:0=100/0,1=101/0")
	})
}

// An orderly stop answers what is held with NOT_COORDINATOR, and joins with the
// id that the member keeps.
func TestStopAnswersWhatIsHeld(t *testing.T) {
	scenario(t, func(w *world) {
		a, b := w.consumer("g"), w.consumer("h")
		a.obtain()
		b.obtain()
		joinB := b.joins()
		c := w.consumer("h")
		c.obtain()
		joinC := c.joins()
		b.joined(joinB)
		c.joined(joinC)
		sync := c.syncs()
		joinA := a.joins()
		w.want("both are held", joinA.parked() && sync.parked(), true)
		if err := w.Groups.(*coordinator.Router).Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		resp := joinA.response().(*kmsg.JoinGroupResponse)
		w.want("join", fmt.Sprint(resp.ErrorCode, resp.MemberID == a.id, resp.Generation), "16 true -1")
		w.want("sync", synced(sync), "16 ")
		w.want("what comes later", a.beats(), 16)
	})
}

// A member that is silent is gone when its session is over, and one that beats
// stays, whatever its connection does.
func TestSessions(t *testing.T) {
	scenario(t, func(w *world) {
		a, b := w.consumer("g"), w.consumer("g")
		w.stable(a, b)
		a.keepAlive(9 * time.Second)
		w.want("both", w.describe(5, "g"), `0 Stable "consumer" "range" 2`)
		a.keepAlive(2 * time.Second)
		w.want("the silent one", fmt.Sprint(a.beats(), b.beats()), "27 25")
	})
}

// B105: ids that hold separators do not meet in the store.
func TestB105_IDsWithSeparators(t *testing.T) {
	scenario(t, func(w *world) {
		ids := []string{"", "a", "a/t", "a/t/0", "a\x00t", "a:t", "\xff", "\xff\xfe", strings.Repeat("a", 32700)}
		for i, id := range ids {
			req := commitRequest(t, "t:0")
			req.Group = id
			req.Topics[0].Partitions[0].Offset = int64(i)
			w.want("commit", commitAnswer(w.send(8, req).response()), "t:0=0")
		}
		w.crash()
		for i, id := range ids {
			req := fetchRequest(t, "g=t:0")
			req.Groups[0].Group = id
			w.want(fmt.Sprintf("group %.10q", id), fetchAnswer(t, w.send(8, req).response()), fmt.Sprintf("0|t:0=%d/0", i))
		}
		w.want("deleted", w.deleteGroup("a"), 0)
		w.want("its neighbour", w.fetch(8, "a/t=t:0"), "0|t:0=2/0")
	})
}

// What a transaction has pending is told to nobody, and who requires stable offsets is
// told so; version 7 is the first that can ask for that.
func TestB69_PendingOffsets(t *testing.T) {
	scenario(t, func(w *world) {
		txn := group.Transaction{ID: "copier", Number: 1}
		submit := func(ev group.Event) {
			answered := make(chan group.Reply, 1)
			w.Groups.Submit(t.Context(), "g", ev, sinkFunc(func(r group.Reply) { answered <- r }))
			w.want("code", (<-answered).Code, group.None)
		}
		stage := func() {
			submit(&group.TxnCommit{Txn: txn, Generation: -1, Topics: []group.CommitTopic{{
				Name: "t", ID: topicIDs["t"], Partitions: []group.CommitPartition{{Partition: 0, Offset: 10, LeaderEpoch: -1}, {Partition: 2, Offset: 10, LeaderEpoch: -1}},
			}}})
		}
		get := func(version int16, what string) string {
			req := fetchRequest(t, what)
			req.RequireStable = true
			return fetchAnswer(t, w.send(version, req).response())
		}
		w.want("commit", w.admin("g", "t:0,1"), "t:0=0,1=0")
		stage()
		for v := int16(2); v <= 9; v++ {
			listed, all := "0|t:0=100/0,1=101/0,2=-1/0", "0|t:0=100/0,1=101/0"
			w.want(fmt.Sprintf("v%d", v), w.fetch(v, "g=t:0,1,2"), listed)
			if v >= 7 {
				listed, all = "0|t:0=-1/88,1=101/0,2=-1/88", "0|t:0=-1/88,1=101/0"
			}
			w.want(fmt.Sprintf("v%d stable", v), get(v, "g=t:0,1,2"), listed)
			w.want(fmt.Sprintf("v%d stable, all", v), get(v, "g=*"), all)
		}
		w.crash()
		w.want("after a crash", get(9, "g=*"), "0|t:0=-1/88,1=101/0")
		submit(&group.Resolve{Txn: txn})
		w.want("aborted", get(9, "g=*"), "0|t:0=100/0,1=101/0")
		txn.Number++
		stage()
		submit(&group.Resolve{Txn: txn, Commit: true})
		w.want("committed", get(9, "g=*"), "0|t:0=10/0,1=101/0,2=10/0")
	})
}

// sinkFunc is a sink of a request that no handler sent.
type sinkFunc func(r group.Reply)

// Reply implements shard.Sink.
func (f sinkFunc) Reply(r group.Reply) { f(r) }
