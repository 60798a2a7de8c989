package compat

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// The codes that the cases name.
const (
	errNone               = 0
	errUnknownTopic       = 3
	errMetadataTooLarge   = 12
	errCoordinatorLoading = 14

	errCoordinatorNotAvailable = 15
	errNotCoordinator          = 16
	errInvalidTopic            = 17
	errIllegalGeneration       = 22
	errInconsistent            = 23
	errInvalidGroupID          = 24
	errUnknownMember           = 25
	errInvalidSession          = 26
	errRebalancing             = 27
	errUnsupportedVersion      = 35
	errTopicExists             = 36
	errInvalidRequest          = 42
	errNonEmptyGroup           = 68
	errGroupIDNotFound         = 69
	errMemberIDRequired        = 79
	errGroupMaxSize            = 81
	errFencedInstance          = 82
	errGroupSubscribed         = 86
	errUnknownTopicID          = 100
)

// peer is a group member made of raw requests on a connection of its own.
type peer struct {
	*rig.Conn
	t                  *testing.T
	group, id          string
	instance           *string
	generation         int32
	session, rebalance time.Duration
	protocolType       string
	protocols          []kmsg.JoinGroupRequestProtocol
	joinVersion        int16
}

func newPeer(t *testing.T, srv *rig.Server, group string) *peer {
	t.Helper()
	return &peer{
		Conn: rig.Dial(t, srv.Addr), t: t, group: group, generation: -1,
		session: 10 * time.Second, rebalance: 20 * time.Second, protocolType: "consumer",
		protocols: protocols("range", "m"), joinVersion: 9,
	}
}

// static makes the peer a static member.
func (p *peer) static(instance string) *peer {
	p.instance = &instance
	return p
}

// protocols makes a protocol list of name, metadata pairs.
func protocols(pairs ...string) []kmsg.JoinGroupRequestProtocol {
	var ps []kmsg.JoinGroupRequestProtocol
	for i := 0; i < len(pairs); i += 2 {
		ps = append(ps, kmsg.JoinGroupRequestProtocol{Name: pairs[i], Metadata: []byte(pairs[i+1])})
	}
	return ps
}

// sendJoin sends a JoinGroup and does not wait.
func (p *peer) sendJoin() {
	p.t.Helper()
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = p.joinVersion
	req.Group, req.MemberID, req.InstanceID = p.group, p.id, p.instance
	req.SessionTimeoutMillis = int32(p.session.Milliseconds())
	req.RebalanceTimeoutMillis = int32(p.rebalance.Milliseconds())
	req.ProtocolType, req.Protocols = p.protocolType, p.protocols
	p.Send(req)
}

// takeID does the first half of KIP-394: the peer gets an id and has not joined.
func (p *peer) takeID() *peer {
	p.t.Helper()
	p.sendJoin()
	resp := rig.Answer[*kmsg.JoinGroupResponse](p.Conn)
	p.code("JoinGroup without an id", resp.ErrorCode, errMemberIDRequired)
	p.id = resp.MemberID
	return p
}

// ask sends a JoinGroup, getting a member id first if that is the version's way.
func (p *peer) ask() *peer {
	p.t.Helper()
	if p.id == "" && p.instance == nil && p.joinVersion >= 4 {
		p.takeID()
	}
	p.sendJoin()
	return p
}

// park is ask for a join that is held: when park returns, the coordinator has it.
func (p *peer) park() {
	p.t.Helper()
	p.ask()
	p.Quiet(50 * time.Millisecond)
}

// joined waits for the answer to a JoinGroup, which must be a success.
func (p *peer) joined() *kmsg.JoinGroupResponse {
	p.t.Helper()
	resp := rig.Answer[*kmsg.JoinGroupResponse](p.Conn)
	p.code("JoinGroup", resp.ErrorCode, errNone)
	p.id, p.generation = resp.MemberID, resp.Generation
	return resp
}

// join is ask and joined.
func (p *peer) join() *kmsg.JoinGroupResponse {
	p.t.Helper()
	return p.ask().joined()
}

// joinCode sends a JoinGroup and returns the code of its answer.
func (p *peer) joinCode() int16 {
	p.t.Helper()
	p.sendJoin()
	return rig.Answer[*kmsg.JoinGroupResponse](p.Conn).ErrorCode
}

// sendSync sends a SyncGroup; assign lists member id, assignment pairs.
func (p *peer) sendSync(assign ...string) {
	p.t.Helper()
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version = 3
	req.Group, req.MemberID, req.InstanceID, req.Generation = p.group, p.id, p.instance, p.generation
	for i := 0; i < len(assign); i += 2 {
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: assign[i], MemberAssignment: []byte(assign[i+1])})
	}
	p.Send(req)
}

// synced waits for the answer to a SyncGroup and checks its code.
func (p *peer) synced(want int16) string {
	p.t.Helper()
	resp := rig.Answer[*kmsg.SyncGroupResponse](p.Conn)
	p.code("SyncGroup", resp.ErrorCode, want)
	return string(resp.MemberAssignment)
}

// sync is sendSync and synced.
func (p *peer) sync(want int16, assign ...string) string {
	p.t.Helper()
	p.sendSync(assign...)
	return p.synced(want)
}

func (p *peer) heartbeat() int16 {
	p.t.Helper()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version = 4
	req.Group, req.MemberID, req.InstanceID, req.Generation = p.group, p.id, p.instance, p.generation
	return rig.Do[*kmsg.HeartbeatResponse](p.Conn, req).ErrorCode
}

// beat sends heartbeats for a while and wants the same code each time.
func (p *peer) beat(d time.Duration, want int16) {
	p.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-tick.C {
		p.code("Heartbeat", p.heartbeat(), want)
	}
}

// leave leaves by id (and instance id, if the peer has one).
func (p *peer) leave() int16 {
	p.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version = 5
	req.Group = p.group
	req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: p.id, InstanceID: p.instance}}
	resp := rig.Do[*kmsg.LeaveGroupResponse](p.Conn, req)
	if resp.ErrorCode != 0 {
		return resp.ErrorCode
	}
	return resp.Members[0].ErrorCode
}

// commit commits one offset of partition 0 of a topic and returns its code.
func (p *peer) commit(topic string, offset int64) int16 {
	p.t.Helper()
	return commitAs(p.Conn, 8, p.group, p.id, p.instance, p.generation, topic, offset)
}

func commitAs(c *rig.Conn, version int16, group, member string, instance *string, generation int32, topic string, offset int64) int16 {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version = version
	req.Group, req.MemberID, req.InstanceID, req.Generation = group, member, instance, generation
	rp := kmsg.NewOffsetCommitRequestTopicPartition()
	rp.Offset = offset
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic, rt.Partitions = topic, []kmsg.OffsetCommitRequestTopicPartition{rp}
	req.Topics = []kmsg.OffsetCommitRequestTopic{rt}
	return rig.Do[*kmsg.OffsetCommitResponse](c, req).Topics[0].Partitions[0].ErrorCode
}

// simpleCommit commits as a tool does, without membership.
func simpleCommit(c *rig.Conn, group, topic string, offset int64) int16 {
	return commitAs(c, 8, group, "", nil, -1, topic, offset)
}

// fetchOffset returns the committed offset of partition 0 of a topic, -1 for none.
func fetchOffset(c *rig.Conn, group, topic string) int64 {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = 5
	req.Group = group
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{0}}}
	return rig.Do[*kmsg.OffsetFetchResponse](c, req).Topics[0].Partitions[0].Offset
}

// describe returns the group as DescribeGroups v5 shows it.
func describe(c *rig.Conn, group string) kmsg.DescribeGroupsResponseGroup {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version = 5
	req.Groups = []string{group}
	return rig.Do[*kmsg.DescribeGroupsResponse](c, req).Groups[0]
}

// code fails the test if a code is not the one wanted.
func (p *peer) code(what string, got, want int16) {
	p.t.Helper()
	if got != want {
		p.t.Fatalf("%s of %q: code %d, want %d", what, p.id, got, want)
	}
}

// stable joins peers one after the other into a Stable group whose leader is the first;
// each one's assignment is its position. All end with the same generation.
func stable(t *testing.T, peers ...*peer) {
	t.Helper()
	peers[0].join()
	peers[0].sync(errNone, peers[0].id, "0")
	for i := 1; i < len(peers); i++ {
		joinLast(peers[:i+1]...)
		syncAll(peers[:i+1]...)
	}
}

// joinLast lets the last peer join a Stable group of the others, which rejoin.
func joinLast(peers ...*peer) {
	last := len(peers) - 1
	peers[last].park()
	for _, p := range peers[:last] {
		p.ask()
	}
	for _, p := range peers {
		p.joined()
	}
}

// syncAll lets the first peer, the leader, assign to each its position.
func syncAll(peers ...*peer) {
	var assign []string
	for i, p := range peers {
		assign = append(assign, p.id, fmt.Sprint(i))
	}
	for _, p := range peers[1:] {
		p.sendSync()
	}
	peers[0].sendSync(assign...)
	for i, p := range peers {
		if got := p.synced(errNone); got != fmt.Sprint(i) {
			p.t.Fatalf("the assignment of %q is %q, want %d", p.id, got, i)
		}
	}
}

// memberIDs lists the ids in a leader's answer, as a set.
func memberIDs(resp *kmsg.JoinGroupResponse) map[string]string {
	ids := map[string]string{}
	for _, m := range resp.Members {
		ids[m.MemberID] = string(m.ProtocolMetadata)
	}
	return ids
}

// forRaw starts a server for raw requests: no initial delay, a sweep each second.
func forRaw(t *testing.T, env ...string) *rig.Server {
	t.Helper()
	return rig.Start(t, append([]string{
		"ROLLCALL_GROUP_INITIAL_REBALANCE_DELAY_MS=0", "ROLLCALL_OFFSETS_RETENTION_MINUTES=1",
		"ROLLCALL_OFFSETS_RETENTION_CHECK_INTERVAL_MS=1000",
	}, env...)...)
}
