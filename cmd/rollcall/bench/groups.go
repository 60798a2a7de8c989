package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// How long a member that is not heard stays: long enough for a slow server, and for
// many groups to be made one after the other.
const (
	sessionShort = 60 * time.Second
	sessionLong  = 5 * time.Minute
)

// Sizes in bytes of what members hand in and get.
const (
	metadataSize   = 100
	assignmentSize = 50
)

// member joins one group, over a connection that others may use before or after.
type member struct {
	*conn
	group, id  string
	generation int32
	session    time.Duration
}

func (m *member) joinRequest() *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = m.group, m.id, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(m.session.Milliseconds()), int32(sessionShort.Milliseconds())
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: make([]byte, metadataSize)}}
	return req
}

// join goes through JoinGroup and SyncGroup until the member is in a Stable group.
func (m *member) join(ctx context.Context) error {
	for {
		var joined *kmsg.JoinGroupResponse
		err := retry(ctx, func() error {
			resp, err := m.do(m.joinRequest())
			if err != nil {
				return err
			}
			joined = resp.(*kmsg.JoinGroupResponse)
			return codeError(joined.ErrorCode)
		})
		if errors.Is(err, kerr.MemberIDRequired) {
			m.id = joined.MemberID
			continue
		}
		if err != nil {
			return fmt.Errorf("JoinGroup: %w", err)
		}
		m.id, m.generation = joined.MemberID, joined.Generation
		err = m.sync(joined)
		if !errors.Is(err, kerr.RebalanceInProgress) {
			return err
		}
	}
}

// sync hands in assignments, if the member leads, and waits for its own.
func (m *member) sync(joined *kmsg.JoinGroupResponse) error {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = m.group, m.id, m.generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), joined.Protocol
	for _, other := range joined.Members {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = other.MemberID, make([]byte, assignmentSize)
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	resp, err := m.do(req)
	if err != nil {
		return err
	}
	if err := codeError(resp.(*kmsg.SyncGroupResponse).ErrorCode); err != nil {
		return fmt.Errorf("SyncGroup: %w", err)
	}
	return nil
}

func (m *member) heartbeatRequest() *kmsg.HeartbeatRequest {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = m.group, m.id, m.generation
	return req
}

// leave makes room for the deletion of the group.
func (m *member) leave() error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.group, m.id
	one := kmsg.NewLeaveGroupRequestMember()
	one.MemberID = m.id
	req.Members = []kmsg.LeaveGroupRequestMember{one}
	resp, err := m.do(req)
	if err != nil {
		return err
	}
	if err := codeError(resp.(*kmsg.LeaveGroupResponse).ErrorCode); err != nil {
		return fmt.Errorf("LeaveGroup: %w", err)
	}
	return nil
}

// gathering is a group that is being formed: it is complete when all of its members
// have synced in the same generation.
type gathering struct {
	size int

	mu          sync.Mutex
	generations map[int]int32
}

func (g *gathering) synced(member int, generation int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.generations[member] = generation
}

func (g *gathering) complete() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, generation := range g.generations {
		if generation != g.generations[0] {
			return false
		}
	}
	return len(g.generations) == g.size
}

// gatherPause is between the heartbeats of a member whose group is not complete.
const gatherPause = 10 * time.Millisecond

// gather takes part in the group until it is complete, as a client does: a heartbeat
// tells it when to join again.
func (m *member) gather(ctx context.Context, g *gathering, index int) error {
	if err := m.join(ctx); err != nil {
		return err
	}
	for g.synced(index, m.generation); !g.complete(); {
		if err := pause(ctx, gatherPause); err != nil {
			return err
		}
		resp, err := m.do(m.heartbeatRequest())
		if err != nil {
			return err
		}
		err = codeError(resp.(*kmsg.HeartbeatResponse).ErrorCode)
		if errors.Is(err, kerr.RebalanceInProgress) {
			err = m.join(ctx)
			g.synced(index, m.generation)
		}
		if err != nil {
			return fmt.Errorf("while the group forms: %w", err)
		}
	}
	return nil
}

// formGroups forms groups of members that come all at once. The latency of a member
// is until its group is complete.
func formGroups(ctx context.Context, s *server, j Join) (sample, error) {
	s.joins++
	groups := make([]string, j.Members)
	gs := make([]*gathering, j.Groups)
	for i := range groups {
		groups[i] = s.group(fmt.Sprintf("join-%d", s.joins), i%j.Groups)
		if i < j.Groups {
			gs[i] = &gathering{generations: map[int]int32{}}
		}
		gs[i%j.Groups].size++
	}
	conns, closeAll, err := s.connect(ctx, groups)
	if err != nil {
		return sample{}, err
	}
	defer closeAll()
	members := make([]*member, j.Members)
	latencies := make([]time.Duration, j.Members)
	before, began := s.meter(), time.Now()
	err = inParallel(j.Members, func(i int) error {
		members[i] = &member{conn: conns[i], group: groups[i], session: sessionShort}
		err := members[i].gather(ctx, gs[i%j.Groups], i/j.Groups)
		latencies[i] = time.Since(began)
		return err
	})()
	if err != nil {
		return sample{}, err
	}
	took := time.Since(began)
	result := sample{perSecond: float64(j.Members) / took.Seconds(), latency: &histogram{}, cpu: before.used(float64(j.Members))}
	for _, d := range latencies {
		result.latency.add(d)
	}
	return result, inParallel(j.Members, func(i int) error { return members[i].leave() })()
}
