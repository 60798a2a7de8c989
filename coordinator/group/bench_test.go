package group

import (
	"fmt"
	"strconv"
	"testing"
)

// benchGroup is a Stable group of n members; every tenth is static.
func benchGroup(tb testing.TB, n int) (*Machine, []string) {
	m := New(&Env{Config: Config{InitialRebalanceDelay: 3000}}, "g")
	ids := make([]string, n)
	for i := range ids {
		ids[i] = "client-" + strconv.Itoa(i)
		m.Step(0, benchJoin(i, "", ids[i]))
	}
	for m.state() == PreparingRebalance {
		at, _ := m.NextDeadline()
		m.Step(at, &Tick{})
	}
	benchSync(m, ids)
	if m.state() != Stable || len(m.live.members) != n {
		tb.Fatalf("%v with %d members", m.state(), len(m.live.members))
	}
	return m, ids
}

func benchJoin(i int, id, newID string) *Join {
	j := &Join{
		Head: Head{Req: ReqID(i + 1)}, MemberID: id, NewID: newID, SessionTimeout: 45000, RebalanceTimeout: 300000,
		ProtocolType: "consumer",
		Protocols:    []Protocol{{"range", subscriptionBytes([]string{"t"})}, {"cooperative-sticky", subscriptionBytes([]string{"t"})}},
	}
	if i%10 == 0 {
		instance := "instance-" + strconv.Itoa(i)
		j.InstanceID = &instance
	}
	return j
}

// benchSync lets everybody sync, the leader in the middle.
func benchSync(m *Machine, ids []string) {
	leader := m.live.leader.id
	s := &Sync{Head: Head{Req: 1}, MemberID: leader, Generation: m.live.generation}
	for _, id := range ids {
		s.Assignments = append(s.Assignments, Assignment{id, make([]byte, 30)})
	}
	for i, id := range ids {
		if i == len(ids)/2 {
			m.Step(0, s)
		}
		if id != leader {
			m.Step(0, &Sync{Head: Head{Req: ReqID(i + 2)}, MemberID: id, Generation: m.live.generation})
		}
	}
}

// A heartbeat is what a coordinator does most. It allocates nothing.
func BenchmarkHeartbeat(b *testing.B) {
	for _, n := range []int{1, 8, 1000} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			m, ids := benchGroup(b, n)
			ev := &Heartbeat{Head: Head{Req: 1}, Generation: m.live.generation}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				ev.MemberID = ids[i%n]
				m.Step(Time(i), ev)
			}
		})
	}
}

func TestHeartbeatAllocatesNothing(t *testing.T) {
	m, ids := benchGroup(t, 20)
	ev := &Heartbeat{Head: Head{Req: 1}, MemberID: ids[7], Generation: m.live.generation}
	if allocs := testing.AllocsPerRun(1000, func() { m.Step(0, ev) }); allocs > 0 && !checkAlways {
		t.Errorf("%v allocations", allocs)
	}
}

// A round of a group of n: everybody rejoins and syncs. The time per member should
// not depend on n.
func BenchmarkJoinRound(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			m, ids := benchGroup(b, n)
			b.ReportAllocs()
			for b.Loop() {
				for i, id := range ids {
					m.Step(0, benchJoin(i, id, ""))
				}
				if m.state() != CompletingRebalance {
					b.Fatal(m.state())
				}
				benchSync(m, ids)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/member")
		})
	}
}

// A group of n from nothing to Stable and, by expiry of all at once, to Empty.
func BenchmarkGroupLife(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m, _ := benchGroup(b, n)
				at, _ := m.NextDeadline()
				for m.state() != Empty {
					m.Step(max(at, 1<<40), &Tick{})
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/member")
		})
	}
}
