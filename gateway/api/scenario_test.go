package api

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The scenarios of this file have the numbers of the conformance list that was
// checked on Apache Kafka 4.4.0; where Rollcall knowingly differs, the test says so.

func TestScenario01_FirstMember(t *testing.T) {
	scenario(t, func(w *world) {
		a := w.consumer("g")
		a.obtain()
		start := time.Now()
		resp := a.joins().after(start, 3*time.Second).(*kmsg.JoinGroupResponse)
		w.want("join", fmt.Sprint(resp.ErrorCode, resp.Generation, resp.LeaderID == a.id, resp.MemberID == a.id, len(resp.Members)), "0 1 true true 1")
		w.want("protocol", *resp.ProtocolType+" "+*resp.Protocol, "consumer range")
		w.want("metadata", resp.Members[0].ProtocolMetadata, subscription("t"))
		a.generation = 1
		w.want("sync", synced(a.syncs(a.id, "x")), "0 x")
		w.want("describe", w.describe(5, "g"), `0 Stable "consumer" "range" 1`)
	})
}

func TestScenario02_OldClientsJoinAtOnce(t *testing.T) {
	scenario(t, func(w *world) {
		a := w.consumer("g")
		a.version = 3
		resp := a.joined(a.joins())
		w.want("join", fmt.Sprint(resp.ErrorCode, resp.Generation, resp.LeaderID == a.id, strings.HasPrefix(a.id, "client-")), "0 1 true true")
	})
}

func TestScenario03_InitialDelayIsExtended(t *testing.T) {
	for _, tc := range []struct {
		second    time.Duration
		rebalance int32
		want      time.Duration
	}{{0, 60000, 6 * time.Second}, {2900 * time.Millisecond, 60000, 6 * time.Second}, {time.Second, 4000, 4 * time.Second}} {
		scenario(t, func(w *world) {
			a, b := w.consumer("g"), w.consumer("g")
			a.rebalance = tc.rebalance
			a.obtain()
			b.obtain()
			start := time.Now()
			joinA := a.joins()
			waitFor(tc.second)
			joinB := b.joins()
			joinA.after(start, tc.want)
			joinB.after(start, tc.want)
		})
	}
}

func TestScenario04_RejoinsInStable(t *testing.T) {
	scenario(t, func(w *world) {
		a, b := w.consumer("g"), w.consumer("g")
		w.stable(a, b)
		resp := b.joined(b.joins())
		w.want("an unchanged follower", fmt.Sprint(resp.ErrorCode, resp.Generation, len(resp.Members), resp.LeaderID == a.id), "0 1 0 true")
		joinA := a.joins()
		w.want("the leader is held", joinA.parked(), true)
		w.want("heartbeat of the follower", b.beats(), 27)
		joinB := b.joins()
		respA, respB := a.joined(joinA), b.joined(joinB)
		w.want("both", fmt.Sprint(respA.Generation, len(respA.Members), respB.Generation, len(respB.Members)), "2 2 2 0")
	})
}

func TestScenario05_RejoinsInCompletingRebalance(t *testing.T) {
	scenario(t, func(w *world) {
		a, b := w.consumer("g"), w.consumer("g")
		a.obtain()
		b.obtain()
		joinA, joinB := a.joins(), b.joins()
		a.joined(joinA)
		b.joined(joinB)
		respA, respB := a.joined(a.joins()), b.joined(b.joins())
		w.want("leader and follower", fmt.Sprint(respA.ErrorCode, respA.Generation, len(respA.Members), respB.ErrorCode, respB.Generation, len(respB.Members)), "0 1 2 0 1 0")
	})
}

func TestScenario06_FollowerSyncsFirst(t *testing.T) {
	scenario(t, func(w *world) {
		a, b := w.consumer("g"), w.consumer("g")
		a.obtain()
		b.obtain()
		joinA, joinB := a.joins(), b.joins()
		a.joined(joinA)
		b.joined(joinB)
		syncB := b.syncs()
		w.want("the follower is held", syncB.parked(), true)
		w.want("the leader, who leaves the follower out", synced(a.syncs(a.id, "all", "stranger", "none")), "0 all")
		w.want("the follower", synced(syncB), "0 ")
		w.want("describe", w.describe(5, "g"), `0 Stable "consumer" "range" 2`)
	})
}

// loadingLog does not let a shard load before it is told to.
type loadingLog struct {
	shard.Log
	open chan struct{}
}

func (l loadingLog) Load(ctx context.Context, n uint32, row func(key, value []byte) error, batch func(first uint64, value []byte) error) (folded, epoch uint64, err error) {
	select {
	case <-l.open:
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	return l.Log.Load(ctx, n, row, batch)
}

func TestScenario08_WhileLoading(t *testing.T) {
	scenario(t, func(w *world) {
		a := w.consumer("g")
		w.stable(a)
		w.down()
		open := make(chan struct{})
		w.log = loadingLog{w.memory, open}
		w.up()
		w.want("heartbeat", a.beats(), 0)
		w.want("sync", synced(a.syncs()), "14 ")
		w.want("join", a.joined(a.joins()).ErrorCode, 14)
		w.want("leave", a.leaves(), "14")
		w.want("commit", a.commits(8, "t:0"), "t:0=14")
		w.want("fetch", w.fetch(8, "g=t:0"), "14|")
		w.want("fetch v1", w.fetch(1, "g=t:0"), "0|t:0=-1/14")
		w.want("describe", w.describe(6, "g"), `14  "" "" 0`)
		w.want("delete", w.deleteGroup("g"), 14)
		w.want("list", w.send(5, &kmsg.ListGroupsRequest{}).response().(*kmsg.ListGroupsResponse).ErrorCode, 14)
		w.want("find", findAnswer(w.send(3, &kmsg.FindCoordinatorRequest{CoordinatorKey: "g"}).response()), "0 1 inside:1001 NONE")
		close(open)
		waitFor(time.Millisecond)
		w.want("sync once it is loaded", synced(a.syncs()), "0 for-0")
	})
}

func TestScenario09_B18_B47_OffsetCommitChecks(t *testing.T) {
	scenario(t, func(w *world) {
		as := func(groupID, id string, generation int32, version int16) string {
			return (&consumer{w: w, group: groupID, id: id, generation: generation}).commits(version, "t:0")
		}
		w.want("unknown group, generation 5, v8", as("new", "", 5, 8), "t:0=22")
		w.want("unknown group, generation 5, v9", as("new", "m", 5, 9), "t:0=69")
		w.want("unknown group, no generation", as("new", "", -1, 8), "t:0=0")
		w.want("Empty, no generation, some id", as("new", "whoever", -1, 8), "t:0=0")
		w.want("Empty, generation 0", as("new", "", 0, 8), "t:0=25")

		a, b := w.consumer("g"), w.consumer("g")
		a.obtain()
		b.obtain()
		joinA, joinB := a.joins(), b.joins()
		a.joined(joinA)
		b.joined(joinB)
		w.want("CompletingRebalance", a.commits(8, "t:0"), "t:0=27")
		w.want("CompletingRebalance, older generation", as("g", a.id, 0, 8), "t:0=22")
		w.want("CompletingRebalance, stranger", as("g", "x", 1, 8), "t:0=25")
		synced(a.syncs(a.id, "a", b.id, "b"))
		w.want("Stable", a.commits(8, "t:0,1"), "t:0=0,1=0")
		w.want("Stable, no generation", w.admin("g", "t:0"), "t:0=25")
		w.want("(a) unknown member", as("g", "x", 1, 8), "t:0=25")
		w.want("(b) older generation", as("g", a.id, 0, 8), "t:0=22")
		w.want("(c) newer generation", as("g", a.id, 2, 8), "t:0=22")
		w.want("(f) no member id", as("g", "", 1, 8), "t:0=25")
		joinA = a.joins()
		w.want("held", joinA.parked(), true)
		w.want("PreparingRebalance", b.commits(8, "t:2"), "t:2=0")
		w.want("PreparingRebalance, no generation", w.admin("g", "t:0"), "t:0=25")
		w.want("what is stored", w.fetch(7, "g=t:0,1,2"), "0|t:0=100/0,1=101/0,2=102/0")
	})
}

func TestScenario10_NothingToCommit(t *testing.T) {
	scenario(t, func(w *world) {
		a := w.consumer("g")
		w.stable(a)
		bogus := &consumer{w: w, group: "g", id: "bogus", generation: 7}
		w.want("only a topic that is not", bogus.commits(8, "nope:0"), "nope:0=3")
		w.want("nothing", bogus.commits(8, ""), "")
		w.want("something", bogus.commits(8, "t:0"), "t:0=25")
	})
}

func TestScenario11_StaticRestartInStable(t *testing.T) {
	for _, version := range []int16{8, 9} {
		scenario(t, func(w *world) {
			s, b := w.static("g", "i"), w.consumer("g")
			w.stable(s, b)
			old := s.id
			again := w.static("g", "i")
			again.version = version
			resp := again.joined(again.joins())
			w.want("generation", fmt.Sprint(resp.ErrorCode, resp.Generation, again.id != old), "0 1 true")
			if version < 9 {
				w.want("leader v8", fmt.Sprint(resp.LeaderID == old, len(resp.Members), resp.SkipAssignment), "true 0 false")
			} else {
				w.want("leader v9", fmt.Sprint(resp.LeaderID == again.id, len(resp.Members), resp.SkipAssignment), "true 2 true")
			}
			w.want("the old id with the instance", s.beatsAs(old, s.instance, 1), 82)
			w.want("the old id alone", s.beatsAs(old, nil, 1), 25)
			w.want("the new id", synced(again.syncs()), "0 for-0")
			w.want("the other", b.beats(), 0)
		})
	}
}

func TestScenario12_StaticRestartInCompletingRebalance(t *testing.T) {
	scenario(t, func(w *world) {
		s, b := w.static("g", "i"), w.consumer("g")
		b.obtain()
		joinS := s.joins()
		w.want("held", joinS.parked(), true) // so that s leads
		joinB := b.joins()
		s.joined(joinS)
		b.joined(joinB)
		syncB := b.syncs()
		w.want("the follower is held", syncB.parked(), true)
		again := w.static("g", "i")
		joinAgain := again.joins()
		w.want("the follower", synced(syncB), "27 ")
		w.want("the new process is held", joinAgain.parked(), true)
		w.want("the old id", s.beats(), 82)
		w.complete([]*consumer{again, b}, []*waiting{joinAgain, b.joins()})
		w.want("generation", again.generation, 2)
	})
}

func TestScenario13_Leave(t *testing.T) {
	scenario(t, func(w *world) {
		s, a := w.static("g", "i"), w.consumer("g")
		w.stable(s, a)
		w.want("v2, unknown", w.leave(2, "g", kmsg.LeaveGroupRequestMember{MemberID: "X"}), "25")
		w.want("the list", w.leave(5, "g",
			kmsg.LeaveGroupRequestMember{InstanceID: ptr("i")}, kmsg.LeaveGroupRequestMember{MemberID: a.id}, kmsg.LeaveGroupRequestMember{MemberID: "X"}), "0 0 0 25")
		w.want("describe", w.describe(5, "g"), `0 Empty "consumer" "" 0`)
		w.want("unknown group", w.leave(3, "nix", kmsg.LeaveGroupRequestMember{MemberID: "a"}, kmsg.LeaveGroupRequestMember{MemberID: "b"}), "0 25 25")
		w.want("unknown group, v1", w.leave(1, "nix", kmsg.LeaveGroupRequestMember{MemberID: "a"}), "25")
	})
}

func TestScenario14_LastMemberLeaves(t *testing.T) {
	scenario(t, func(w *world) {
		a := w.consumer("g")
		w.stable(a)
		w.want("leave", a.leaves(), "0 0")
		w.want("list", w.list(), "g/consumer/Empty")
		again := w.consumer("g")
		again.obtain()
		w.want("the generation goes on", again.joined(again.joins()).Generation, 3)
		w.want("leave", again.leaves(), "0 0")
		waitFor(11 * time.Minute)
		w.want("list", w.list(), "")
	})
}

func TestScenario15_DisjointProtocols(t *testing.T) {
	scenario(t, func(w *world) {
		a := w.consumer("g")
		w.stable(a)
		a.protocols = []string{"roundrobin"}
		resp := a.joined(a.joins())
		w.want("the only member", fmt.Sprint(resp.ErrorCode, resp.MemberID == a.id), "23 true")
		w.want("leave", a.leaves(), "0 0")
		a.id = ""
		a.obtain()
		w.want("a new one", a.joined(a.joins()).ErrorCode, 0)
	})
}

func TestScenario16_GroupMaxSize(t *testing.T) {
	scenario(t, func(w *world) {
		w.configured(func(c *group.Config) { c.MaxSize = 2 })
		a, b, c := w.consumer("g"), w.consumer("g"), w.consumer("g")
		w.stable(a, b)
		w.want("a third", c.joined(c.joins()).ErrorCode, 81)
		w.want("a member", a.joins().parked(), true)
	})
}

// Kafka keeps only the selected protocol of each member, so that after a restart a
// client that offers two has to rebalance. Rollcall keeps all.
func TestScenario17_RestartInStable(t *testing.T) {
	scenario(t, func(w *world) {
		a, b := w.consumer("g"), w.consumer("g")
		a.protocols = []string{"range", "cooperative-sticky"}
		b.protocols = a.protocols
		w.stable(a, b)
		w.crash()
		w.want("heartbeats", fmt.Sprint(a.beats(), b.beats()), "0 0")
		resp := b.joined(b.joins())
		w.want("an unchanged follower", fmt.Sprint(resp.ErrorCode, resp.Generation), "0 1")
		w.want("its sync", synced(b.syncs()), "0 for-1")
	})
}

// Generation 2 was formed but its assignments were not stored: after a restart the
// group is Stable at 1. Kafka would hand out 2 again; Rollcall does not.
func TestScenario18_RestartInCompletingRebalance(t *testing.T) {
	scenario(t, func(w *world) {
		a := w.consumer("g")
		w.stable(a)
		w.want("generation", a.joined(a.joins()).Generation, 2)
		w.crash()
		w.want("heartbeat of generation 2", a.beats(), 22)
		w.want("describe", w.describe(5, "g"), `0 Stable "consumer" "range" 1`)
		w.want("heartbeat of generation 1", a.beatsAs(a.id, nil, 1), 0)
		if next := a.joined(a.joins()).Generation; next <= 2 {
			t.Errorf("generation %d is given again", next)
		}
	})
}

func TestScenario19_B56_FetchWithoutOffsets(t *testing.T) {
	scenario(t, func(w *world) {
		w.want("unknown group", w.fetch(8, "nix=t:0 nope:1"), "0|t:0=-1/0 nope:1=-1/0")
		w.want("unknown group, all", w.fetch(8, "nix=*"), "0|")
		w.want("commit", w.admin("g", "t:0"), "t:0=0")
		w.want("nothing of a group", w.fetch(8, "g="), "0|")
		w.want("all of a group", w.fetch(8, "g=*"), "0|t:0=100/0")
		w.want("by id", w.fetch(10, "g=*"), "0|t:0=100/0")
		w.want("another partition", w.fetch(8, "g=t:1"), "0|t:1=-1/0")
	})
}

func TestScenario20_DescribeUnknown(t *testing.T) {
	scenario(t, func(w *world) {
		w.want("v5", w.describe(5, "nix"), `0 Dead "" "" 0`)
		w.want("v6", w.describe(6, "nix"), `69 Dead "" "" 0`)
		w.admin("simple", "t:0")
		w.want("a simple group", w.describe(6, "simple"), `0 Empty "" "" 0`)
	})
}

func TestScenario21_B93_DeleteGroups(t *testing.T) {
	scenario(t, func(w *world) {
		a := w.consumer("g")
		w.stable(a)
		a.commits(8, "t:0")
		w.want("Stable", w.deleteGroup("g"), 68)
		a.leaves()
		pending := w.consumer("g")
		pending.obtain()
		w.want("Empty, with an id handed out", w.deleteGroup("g"), 0)
		w.want("offsets", w.fetch(8, "g=t:0"), "0|t:0=-1/0")
		w.want("again", w.deleteGroup("g"), 69)
		w.want("list", w.list(), "")
		w.want("the id", pending.joined(pending.joins()).ErrorCode, 25)
		pending.id = ""
		pending.obtain()
		w.want("a new group", pending.joined(pending.joins()).Generation, 1)
	})
}

func TestScenario22_OffsetDelete(t *testing.T) {
	scenario(t, func(w *world) {
		remove := func(id, topics string) string {
			req := deleteRequest(t, topics)
			req.Group = id
			return deleteAnswer(w.send(0, req).response())
		}
		a := w.consumer("g") // subscribed to t
		w.stable(a)
		a.commits(8, "t:0 u:0")
		w.want("a consumer group", remove("g", "t:0 u:0,9 nope:0"), "0|u:9=3,0=0 nope:0=3 t:0=86")
		w.want("what is left", w.fetch(8, "g=t:0 u:0"), "0|t:0=100/0 u:0=-1/0")
		c := w.consumer("connect")
		c.kind = "connect"
		w.stable(c)
		w.want("another kind", remove("connect", "t:0"), "68|")
		w.want("unknown", remove("nix", "t:0 nope:0"), "69|")
		a.leaves()
		w.want("Empty", remove("g", "t:0"), "0|t:0=0")
		w.want("all", w.fetch(8, "g=*"), "0|")
	})
}

func TestScenario23_B48_RetentionTime(t *testing.T) {
	scenario(t, func(w *world) {
		for id, retention := range map[string]int64{"own": -1, "second": 1000, "zero": 0, "for ever": 1<<63 - 1} {
			req := commitRequest(t, "t:0")
			req.Group, req.RetentionTimeMillis = id, retention
			w.want(id, commitAnswer(w.send(3, req).response()), "t:0=0")
		}
		waitFor(11 * time.Minute)
		left := strings.Fields(strings.ReplaceAll(w.list(), "for ever", "for-ever"))
		sort.Strings(left)
		w.want("what is left", left, "[for-ever//Empty own//Empty]")
	})
}

func TestScenario25_RoundWaitsForAnID(t *testing.T) {
	for _, tc := range []struct {
		session, rebalance int32
		want               time.Duration
	}{{6000, 60000, 6 * time.Second}, {60000, 7000, 7 * time.Second}} {
		scenario(t, func(w *world) {
			b := w.consumer("g")
			b.rebalance = tc.rebalance
			w.stable(b)
			a := w.consumer("g")
			a.session = tc.session
			start := time.Now()
			a.obtain()
			resp := b.joins().after(start, tc.want).(*kmsg.JoinGroupResponse)
			w.want("generation", fmt.Sprint(resp.ErrorCode, resp.Generation, len(resp.Members)), "0 2 1")
		})
	}
}
