package group

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// fuzzer turns bytes into requests, time and restarts. Its clients are careless:
// they send what they were told, what they were told before, and what they never
// were told.
type fuzzer struct {
	w     *world
	bytes []byte
	trace []string
	names int
	req   ReqID
	// ids and generations that were ever told, the latest last.
	ids         []string
	generations []int32
	lists       map[int32][]JoinMember
}

// next returns a number below n.
func (f *fuzzer) next(n int) int {
	if len(f.bytes) == 0 {
		return 0
	}
	b := f.bytes[0]
	f.bytes = f.bytes[1:]
	return int(b) % n
}

// id picks an id: mostly a member's, else one of the latest.
func (f *fuzzer) id() string {
	if l := f.w.m.live; l != nil && len(l.members) > 0 && f.next(4) != 0 {
		return l.members[f.next(len(l.members))].id
	}
	if len(f.ids) == 0 || f.next(16) == 0 {
		return "nobody"
	}
	return f.ids[max(len(f.ids)-1-f.next(8), 0)]
}

func (f *fuzzer) generation() int32 {
	if l := f.w.m.live; l != nil && f.next(4) != 0 {
		return l.generation
	}
	if f.next(8) == 0 {
		return int32(f.next(4)) - 1
	}
	return f.generations[max(len(f.generations)-1-f.next(8)/3, 0)]
}

// instance is that of a static id, most of the time.
func (f *fuzzer) instance(id string) *string {
	name, _, static := strings.Cut(id, "/")
	if static != (f.next(16) != 0) {
		return nil
	}
	return &name
}

// step gives one event to the machine and learns from the answers.
func (f *fuzzer) step(t *testing.T, ev Event) {
	if _, tick := ev.(*Tick); !tick {
		f.req++
		ev.Meta().Req = f.req
	}
	ev.Meta().DiskLow = f.next(32) == 31
	f.trace = append(f.trace, fmt.Sprintf("%d: %T%+v", f.w.now, ev, ev))
	out, err := f.w.tryStep(ev)
	if err != nil {
		t.Fatalf("%v, after\n%s", err, strings.Join(f.trace, "\n"))
	}
	for _, r := range out.Replies {
		j, ok := r.Body.(*JoinReply)
		if !ok {
			continue
		}
		if j.MemberID != "" && r.Code != UnknownMemberID && r.Code != FencedInstanceID {
			f.ids = append(f.ids, j.MemberID)
		}
		if r.Code == None {
			f.generations = append(f.generations, j.Generation)
			if len(j.Members) > 0 {
				f.lists[j.Generation] = j.Members
			}
		}
	}
}

var fuzzProtocols = [][]Protocol{
	{{"range", []byte("r")}, {"roundrobin", []byte("rr")}},
	{{"roundrobin", subscriptionBytes([]string{"t"})}, {"range", subscriptionBytes([]string{"t", "u"})}},
	{{"range", []byte("r2")}, {"range", []byte("twice")}},
	{{"sticky", nil}, {"roundrobin", nil}},
}

func (f *fuzzer) join() *Join {
	f.names++
	j := &Join{
		Client: Client{ID: "c"}, NewID: "m" + strconv.Itoa(f.names), RequireMemberID: f.next(2) == 0, CanSkipAssignment: f.next(2) == 0,
		SessionTimeout: int32(1+f.next(4)) * 5000, RebalanceTimeout: int32(f.next(5)) * 6000,
		ProtocolType: "consumer", Protocols: fuzzProtocols[f.next(64)/16],
	}
	switch f.next(16) {
	case 0:
		j.ProtocolType = "connect"
	case 1:
		j.Protocols = nil
	}
	switch f.next(8) {
	case 0:
	case 1:
		name := string("ab"[f.next(2)])
		j.InstanceID, j.NewID = &name, name+"/"+strconv.Itoa(f.names)
	default:
		j.MemberID = f.id()
		j.InstanceID = f.instance(j.MemberID)
		if l := f.w.m.live; l != nil && f.next(2) == 0 {
			if x := l.find(j.MemberID); x != nil {
				j.Protocols = x.protocols
			}
		}
	}
	return j
}

func (f *fuzzer) sync() *Sync {
	s := &Sync{Client: Client{ID: "c"}, MemberID: f.id(), Generation: f.generation()}
	s.InstanceID = f.instance(s.MemberID)
	for _, x := range f.lists[s.Generation] {
		if f.next(8) != 0 {
			s.Assignments = append(s.Assignments, Assignment{x.MemberID, fmt.Appendf(nil, "%s@%d", x.MemberID, s.Generation)})
		}
	}
	return s
}

func (f *fuzzer) leave() *Leave {
	v := &Leave{Client: Client{ID: "c"}}
	for range f.next(16) / 6 {
		item := LeaveMember{MemberID: f.id()}
		item.InstanceID = f.instance(item.MemberID)
		if f.next(4) == 0 {
			item.MemberID = ""
		}
		v.Members = append(v.Members, item)
	}
	return v
}

func (f *fuzzer) commit() *Commit {
	c := &Commit{
		MemberID: f.id(), Generation: f.generation(), Retention: -1,
		Topics: []CommitTopic{{Name: string("tu"[f.next(2)]), Partitions: []CommitPartition{{Offset: int64(f.next(100)), LeaderEpoch: -1}}}},
	}
	c.InstanceID = f.instance(c.MemberID)
	return c
}

// transaction stages an offset in one of four transactions, or ends one.
func (f *fuzzer) transaction(t *testing.T) {
	txn := Transaction{ID: string("xy"[f.next(2)]), Number: int64(f.next(2))}
	if f.next(3) == 0 {
		f.step(t, &Resolve{Txn: txn, Commit: f.next(2) == 0})
		return
	}
	c := f.commit()
	f.step(t, &TxnCommit{MemberID: c.MemberID, InstanceID: c.InstanceID, Generation: c.Generation, Txn: txn, Topics: c.Topics})
}

// wait lets time pass, deadline by deadline.
func (f *fuzzer) wait(t *testing.T) {
	end := f.w.now + Time(f.next(8)*f.next(8))*200
	for range 1000 {
		at, ok := f.w.m.NextDeadline()
		if !ok || at > end {
			f.w.now = end
			return
		}
		f.w.now = max(f.w.now, at)
		f.step(t, &Tick{Late: Time(f.next(32) / 31 * 2000)})
	}
	t.Fatalf("a deadline that does not pass, after\n%s", strings.Join(f.trace, "\n"))
}

func (f *fuzzer) run(t *testing.T) {
	for len(f.bytes) > 0 && len(f.trace) < 2000 {
		switch f.next(22) {
		case 0, 1, 2, 3, 4, 5:
			f.step(t, f.join())
		case 6, 7, 8, 9:
			f.step(t, f.sync())
		case 10:
			h := &Heartbeat{MemberID: f.id(), Generation: f.generation()}
			h.InstanceID = f.instance(h.MemberID)
			f.step(t, h)
		case 11:
			f.step(t, f.leave())
		case 12:
			if f.next(2) == 0 {
				f.step(t, f.commit())
			} else {
				f.transaction(t)
			}
		case 13:
			f.step(t, &Describe{})
		case 14:
			if f.next(4) == 0 {
				f.more(t)
			}
		default:
			f.wait(t)
		}
	}
}

// more is what happens seldom.
func (f *fuzzer) more(t *testing.T) {
	switch f.next(6) {
	case 0:
		f.trace = append(f.trace, "crash")
		f.w.crash(t)
	case 1:
		f.trace = append(f.trace, "checkpoint")
		f.w.checkpoint(t)
	case 2:
		f.step(t, &ExpireOffsets{})
	case 3:
		f.step(t, &DeleteGroup{})
	case 4:
		f.step(t, &Fetch{All: true, RequireStable: true})
	case 5:
		f.step(t, &List{})
	}
}

func newFuzzer(bytes []byte) *fuzzer {
	return &fuzzer{
		w: newWorld(Config{
			InitialRebalanceDelay: 3000, MaxSize: 5, PendingMax: 3, MaxMetadata: 100, OffsetsRetention: 20000,
		}),
		bytes: bytes, generations: []int32{0}, lists: map[int32][]JoinMember{},
	}
}

// Whatever comes in whatever order, the invariants hold, each request is answered
// once, nobody gets what is another generation's, the same input gives the same
// output, and the records make the same hard state.
func FuzzMachine(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(randomBytes(seed, 300))
	}
	f.Fuzz(func(t *testing.T, bytes []byte) { newFuzzer(bytes).run(t) })
}

func randomBytes(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, seed))
	bytes := make([]byte, n)
	for i := range bytes {
		bytes[i] = byte(r.Uint32())
	}
	return bytes
}

// The same with bytes at random; `-run TestMachineRandom/seed=N` repeats one.
func TestMachineRandom(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { newFuzzer(randomBytes(seed, 4000)).run(t) })
	}
}
