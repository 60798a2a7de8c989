package api

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// world is the group handlers over the real coordinator, whose log is in memory
// and whose time is the bubble's. Requests go in and come out as bytes.
type world struct {
	t *testing.T
	*server
	cfg    group.Config
	log    shard.Log
	memory *shardtest.Log
	cancel context.CancelFunc
	ended  chan error
}

// scenario runs f in a synctest bubble with a coordinator of Kafka's defaults.
func scenario(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, server: newServer(), memory: shardtest.NewLog()}
		w.log = w.memory
		w.Random = nil
		w.cfg = group.Config{
			InitialRebalanceDelay: 3000, MaxSize: math.MaxInt32, MaxMetadata: 4096,
			OffsetsRetention: group.Time((7 * 24 * time.Hour).Milliseconds()), PendingMax: 1000,
		}
		w.up()
		f(w)
		w.down()
	})
}

// up starts a coordinator on what the log has.
func (w *world) up() {
	ctx, cancel := context.WithCancel(context.Background())
	router := coordinator.NewRouter(shard.Config{Group: w.cfg}, 4, w.log)
	w.Groups, w.cancel, w.ended = router, cancel, make(chan error, 1)
	go func() { w.ended <- router.Run(ctx, nil) }()
	synctest.Wait()
}

// down ends the coordinator without saying good-bye.
func (w *world) down() {
	w.cancel()
	<-w.ended
}

// crash loses what only the process knew, and starts another one.
func (w *world) crash() {
	w.down()
	w.memory = w.memory.Crash(0)
	w.log = w.memory
	w.up()
}

// configured restarts an empty world with another configuration.
func (w *world) configured(change func(c *group.Config)) {
	w.down()
	change(&w.cfg)
	w.up()
}

// waiting is a request that may not be answered yet.
type waiting struct {
	w     *world
	call  *Call
	ready chan struct{}
}

func (w *world) send(version int16, req kmsg.Request) *waiting {
	w.t.Helper()
	p := &waiting{w: w, ready: make(chan struct{})}
	req.SetVersion(version)
	frame := req.AppendTo(nil)
	decoded := kmsg.RequestForKey(req.Key())
	decoded.SetVersion(version)
	if err := decoded.ReadFrom(frame); err != nil {
		w.t.Fatal(err)
	}
	p.call = newCall(w.session, req.Key(), version, w.client, decoded, func() { close(p.ready) })
	w.table.entry(req.Key()).Handle(p.call)
	for i := range frame {
		frame[i] = 0xee
	}
	return p
}

// parked tells whether the request is still held when nothing else moves.
func (p *waiting) parked() bool {
	synctest.Wait()
	return !p.call.Ready()
}

// response waits for the answer, up to an hour of the bubble's time.
func (p *waiting) response() kmsg.Response {
	p.w.t.Helper()
	if !p.call.Ready() {
		select {
		case <-p.ready:
		case <-time.After(time.Hour):
			p.w.t.Fatalf("%T is not answered within an hour", p.call.Msg)
		}
	}
	return finish(p.w.t, p.call)
}

// after fails unless the answer comes at that time after start, to 10 ms.
func (p *waiting) after(start time.Time, want time.Duration) kmsg.Response {
	p.w.t.Helper()
	resp := p.response()
	if got := time.Since(start); got < want || got > want+10*time.Millisecond {
		p.w.t.Errorf("%T is answered after %v, want %v", p.call.Msg, got, want)
	}
	return resp
}

func (w *world) want(what string, got, want any) {
	w.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// consumer is one member as its client sees it.
type consumer struct {
	w                  *world
	group, id          string
	instance           *string
	version            int16 // of JoinGroup
	generation         int32
	session, rebalance int32
	kind               string
	protocols          []string
}

func (w *world) consumer(groupID string) *consumer {
	return &consumer{w: w, group: groupID, version: 9, session: 10000, rebalance: 60000, kind: "consumer", protocols: []string{"range"}}
}

func (w *world) static(groupID, instance string) *consumer {
	c := w.consumer(groupID)
	c.instance = &instance
	return c
}

func (c *consumer) joins() *waiting {
	c.w.t.Helper()
	req := &kmsg.JoinGroupRequest{
		Group: c.group, SessionTimeoutMillis: c.session, RebalanceTimeoutMillis: c.rebalance, MemberID: c.id, InstanceID: c.instance, ProtocolType: c.kind,
	}
	for _, p := range c.protocols {
		req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: p, Metadata: subscription("t")})
	}
	return c.w.send(c.version, req)
}

// joined takes the answer to a join.
func (c *consumer) joined(p *waiting) *kmsg.JoinGroupResponse {
	c.w.t.Helper()
	resp := p.response().(*kmsg.JoinGroupResponse)
	if resp.ErrorCode == 0 || resp.ErrorCode == 79 {
		c.id = resp.MemberID
	}
	if resp.ErrorCode == 0 {
		c.generation = resp.Generation
	}
	return resp
}

// obtain gets a member id without joining.
func (c *consumer) obtain() {
	c.w.t.Helper()
	if resp := c.joined(c.joins()); resp.ErrorCode != 79 {
		c.w.t.Fatalf("a first join is answered %d, want 79", resp.ErrorCode)
	}
}

// subscription is a version 0 ConsumerProtocolSubscription to one topic.
func subscription(topic string) []byte {
	m := &kmsg.ConsumerMemberMetadata{Topics: []string{topic}}
	return m.AppendTo(nil)
}

func (c *consumer) syncs(assignments ...string) *waiting {
	c.w.t.Helper()
	kind, name := c.kind, c.protocols[0]
	req := &kmsg.SyncGroupRequest{Group: c.group, Generation: c.generation, MemberID: c.id, InstanceID: c.instance, ProtocolType: &kind, Protocol: &name}
	for i := 0; i < len(assignments); i += 2 {
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: assignments[i], MemberAssignment: []byte(assignments[i+1])})
	}
	return c.w.send(5, req)
}

func synced(p *waiting) string {
	p.w.t.Helper()
	resp := p.response().(*kmsg.SyncGroupResponse)
	return fmt.Sprintf("%d %s", resp.ErrorCode, resp.MemberAssignment)
}

func (c *consumer) beats() int16 {
	c.w.t.Helper()
	return c.beatsAs(c.id, c.instance, c.generation)
}

func (c *consumer) beatsAs(id string, instance *string, generation int32) int16 {
	c.w.t.Helper()
	req := &kmsg.HeartbeatRequest{Group: c.group, Generation: generation, MemberID: id, InstanceID: instance}
	return c.w.send(4, req).response().(*kmsg.HeartbeatResponse).ErrorCode
}

// keepAlive sends a heartbeat every third of the session for so long.
func (c *consumer) keepAlive(d time.Duration) {
	step := time.Duration(c.session) * time.Millisecond / 3
	for ; d > 0; d -= step {
		waitFor(min(step, d))
		c.beats()
	}
}

// waitFor lets the time of the bubble pass.
func waitFor(d time.Duration) { time.Sleep(d) }

func (c *consumer) leaves() string {
	c.w.t.Helper()
	return c.w.leave(3, c.group, kmsg.LeaveGroupRequestMember{MemberID: c.id})
}

// leave returns the code of the whole and those of the members.
func (w *world) leave(version int16, groupID string, members ...kmsg.LeaveGroupRequestMember) string {
	w.t.Helper()
	req := &kmsg.LeaveGroupRequest{Group: groupID, Members: members}
	if version < 3 {
		req.MemberID = members[0].MemberID
	}
	resp := w.send(version, req).response().(*kmsg.LeaveGroupResponse)
	s := fmt.Sprint(resp.ErrorCode)
	for _, m := range resp.Members {
		s += fmt.Sprintf(" %d", m.ErrorCode)
	}
	return s
}

func (c *consumer) commits(version int16, topics string) string {
	c.w.t.Helper()
	req := commitRequest(c.w.t, topics)
	req.Group, req.MemberID, req.InstanceID, req.Generation = c.group, c.id, c.instance, c.generation
	return commitAnswer(c.w.send(version, req).response())
}

// admin commits as a tool does: without a member.
func (w *world) admin(groupID, topics string) string {
	w.t.Helper()
	return (&consumer{w: w, group: groupID, generation: -1}).commits(8, topics)
}

func (w *world) fetch(version int16, what string) string {
	w.t.Helper()
	return fetchAnswer(w.t, w.send(version, fetchRequest(w.t, what)).response())
}

// describe returns "code state type protocol" and the number of members.
func (w *world) describe(version int16, groupID string) string {
	w.t.Helper()
	g := w.send(version, &kmsg.DescribeGroupsRequest{Groups: []string{groupID}}).response().(*kmsg.DescribeGroupsResponse).Groups[0]
	return fmt.Sprintf("%d %s %q %q %d", g.ErrorCode, g.State, g.ProtocolType, g.Protocol, len(g.Members))
}

func (w *world) deleteGroup(id string) int16 {
	w.t.Helper()
	return w.send(2, &kmsg.DeleteGroupsRequest{Groups: []string{id}}).response().(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode
}

func (w *world) list() string {
	w.t.Helper()
	var s []string
	for _, g := range w.send(5, &kmsg.ListGroupsRequest{}).response().(*kmsg.ListGroupsResponse).Groups {
		s = append(s, g.Group+"/"+g.ProtocolType+"/"+g.GroupState)
	}
	return strings.Join(s, " ")
}

// stable makes a group Stable of members that have no id yet; the first leads.
// Everybody's assignment is "for-" and its place.
func (w *world) stable(members ...*consumer) {
	w.t.Helper()
	joins := make([]*waiting, len(members))
	for i, c := range members {
		if c.instance == nil && c.version >= 4 {
			c.obtain()
		}
		joins[i] = c.joins()
		synctest.Wait()
	}
	w.complete(members, joins)
}

// complete takes the answers to the joins and syncs everybody.
func (w *world) complete(members []*consumer, joins []*waiting) {
	w.t.Helper()
	var assignments []string
	leader := -1
	for i, c := range members {
		resp := c.joined(joins[i])
		if resp.ErrorCode != 0 {
			w.t.Fatalf("member %d: join is answered %d", i, resp.ErrorCode)
		}
		if resp.LeaderID == c.id {
			leader = i
		}
		assignments = append(assignments, c.id, fmt.Sprintf("for-%d", i))
	}
	if leader < 0 {
		w.t.Fatal("nobody leads")
	}
	w.want("the leader's sync", synced(members[leader].syncs(assignments...)), fmt.Sprintf("0 for-%d", leader))
	for i, c := range members {
		w.want("a sync", synced(c.syncs()), fmt.Sprintf("0 for-%d", i))
	}
}
