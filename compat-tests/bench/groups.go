package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// member joins one group over one connection and can be part of a larger one.
type member struct {
	*conn
	group, id  string
	generation int32
}

func (m *member) joinRequest() *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID = 5, m.group, m.id
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis, req.ProtocolType = 30_000, 60_000, "consumer"
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: make([]byte, 100)}}
	return req
}

// join goes through JoinGroup and SyncGroup until the member is in a Stable group.
func (m *member) join() error {
	const memberIDRequired, rebalancing = 79, 27
	for {
		resp, err := m.do(m.joinRequest())
		if err != nil {
			return err
		}
		j := resp.(*kmsg.JoinGroupResponse)
		m.id = j.MemberID
		if j.ErrorCode == memberIDRequired {
			continue
		}
		if j.ErrorCode != 0 {
			return fmt.Errorf("JoinGroup: code %d", j.ErrorCode)
		}
		m.generation = j.Generation
		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Version, sync.Group, sync.MemberID, sync.Generation = 3, m.group, m.id, m.generation
		for _, jm := range j.Members {
			sync.GroupAssignment = append(sync.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: jm.MemberID, MemberAssignment: make([]byte, 50)})
		}
		if resp, err = m.do(sync); err != nil {
			return err
		}
		switch code := resp.(*kmsg.SyncGroupResponse).ErrorCode; code {
		case 0:
			return nil
		case rebalancing:
		default:
			return fmt.Errorf("SyncGroup: code %d", code)
		}
	}
}

// gathering is a group that is being formed: it is done when every member has synced
// in the same generation.
type gathering struct {
	name string
	size int

	mu          sync.Mutex
	generations map[int]int32
}

func (g *gathering) synced(member int, generation int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.generations[member] = generation
}

func (g *gathering) done() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, gen := range g.generations {
		if gen != g.generations[0] {
			return false
		}
	}
	return len(g.generations) == g.size
}

// gather takes part in the group until it is complete, as a client does: a heartbeat
// tells when to rejoin.
func (m *member) gather(g *gathering, index int) error {
	const rebalancing = 27
	if err := m.join(); err != nil {
		return err
	}
	for g.synced(index, m.generation); !g.done(); time.Sleep(10 * time.Millisecond) {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Version, req.Group, req.MemberID, req.Generation = 3, m.group, m.id, m.generation
		resp, err := m.do(req)
		if err != nil {
			return err
		}
		switch code := resp.(*kmsg.HeartbeatResponse).ErrorCode; code {
		case 0:
		case rebalancing:
			if err := m.join(); err != nil {
				return err
			}
			g.synced(index, m.generation)
		default:
			return fmt.Errorf("heartbeat: code %d", code)
		}
	}
	return nil
}

// joinStorm forms groups of members all at once; its latency is until all are Stable
// with all their members.
func joinStorm(t target, members, groups int) (result, error) {
	conns, closeAll, err := dialMany(t.addr, members)
	if err != nil {
		return result{}, err
	}
	defer closeAll()
	errs := make([]error, members)
	gs := make([]*gathering, groups)
	before, began := cpuTime(t.pid), time.Now()
	for i := range gs {
		gs[i] = &gathering{name: fmt.Sprintf("storm-%d-%d", began.UnixNano(), i), size: members / groups, generations: map[int]int32{}}
	}
	var wg sync.WaitGroup
	for i, c := range conns {
		g := gs[i%groups]
		m := member{conn: c, group: g.name}
		wg.Go(func() { errs[i] = m.gather(g, i/groups) })
	}
	wg.Wait()
	took := time.Since(began)
	return result{perSecond: float64(members) / took.Seconds(), p50: took, p99: took, cpu: (cpuTime(t.pid) - before) / time.Duration(members)}, errors.Join(errs...)
}

// heartbeats of members that have a group each.
func heartbeats(t target, n int, d time.Duration) (result, error) {
	conns, closeAll, err := dialMany(t.addr, n)
	if err != nil {
		return result{}, err
	}
	defer closeAll()
	frames := make([][]byte, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() {
			m := member{conn: c, group: fmt.Sprintf("beat-%d-%d", time.Now().UnixNano(), i)}
			errs[i] = m.join()
			req := kmsg.NewPtrHeartbeatRequest()
			req.Version, req.Group, req.MemberID, req.Generation = 3, m.group, m.id, m.generation
			frames[i] = encode(req, 1)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return result{}, err
	}
	return closedLoop(t, frames, conns, 1, d, func(b []byte) error {
		if code := binary.BigEndian.Uint16(b[len(b)-2:]); code != 0 {
			return fmt.Errorf("heartbeat: code %d", code)
		}
		return nil
	})
}
