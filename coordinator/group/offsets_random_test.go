package group

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// offsetOracle follows what the clients of a group were told and says what its
// offsets must be. Of the machine it knows only the membership.
type offsetOracle struct {
	t       *testing.T
	s       *script
	offsets model
	// pending has what each transaction staged, written the place in the log of the
	// last write to each partition that was committed, end the end of that log.
	pending map[Transaction]map[modelKey]modelPending
	written map[modelKey]int
	end     int
	// limit is what Config.MaxMetadata is, in a script of ASCII.
	limit int
}

func newOffsetOracle(t *testing.T, s *script) *offsetOracle {
	return &offsetOracle{
		t: t, s: s, offsets: model{}, pending: map[Transaction]map[modelKey]modelPending{}, written: map[modelKey]int{},
		limit: s.cfg.MaxMetadata,
	}
}

// observe takes in one event and its answer.
func (o *offsetOracle) observe(ev Event, out *Output) {
	code, body := None, Body(nil)
	for _, r := range out.Replies {
		if r.Req == ev.Meta().Req {
			code, body = r.Code, r.Body
		}
	}
	switch ev := ev.(type) {
	case *Commit:
		expire := Time(-1)
		if ev.Retention >= 0 {
			expire = ev.Wall + Time(ev.Retention)
		}
		o.end++
		o.accepted(ev.Topics, ev.Wall, expire, code, body, func(k modelKey, p modelOffset) {
			o.offsets[k], o.written[k] = p, o.end
		})
	case *TxnCommit:
		o.end++
		o.accepted(ev.Topics, ev.Wall, -1, code, body, func(k modelKey, p modelOffset) {
			if o.pending[ev.Txn] == nil {
				o.pending[ev.Txn] = map[modelKey]modelPending{}
			}
			o.pending[ev.Txn][k] = modelPending{p, o.end}
		})
	case *Resolve:
		o.resolved(ev)
	case *DeleteOffsets:
		if code != None {
			return
		}
		for i, t := range ev.Topics {
			for j, p := range t.Partitions {
				if body.(*DeleteOffsetsReply).Codes[i][j] == None {
					k := modelKey{t.Name, p}
					delete(o.offsets, k)
					o.drop(func(other modelKey, _ modelOffset) bool { return other == k })
				}
			}
		}
	case *DeleteGroup:
		if code == None {
			clear(o.offsets)
			clear(o.pending)
		}
	case *TopicDeleted:
		gone := func(k modelKey, p modelOffset) bool {
			return k.topic == ev.Name && (p.id == ev.ID || p.id == (TopicID{}))
		}
		maps.DeleteFunc(o.offsets, gone)
		o.drop(gone)
	case *CheckTopics:
		gone := func(k modelKey, p modelOffset) bool {
			id, ok := ev.Lookup(k.topic)
			return !ok || p.id != id && p.id != (TopicID{})
		}
		maps.DeleteFunc(o.offsets, gone)
		o.drop(gone)
	case *Fetch:
		o.fetched(ev, code, body.(*FetchReply))
	}
}

// drop forgets pending offsets.
func (o *offsetOracle) drop(gone func(k modelKey, p modelOffset) bool) {
	for _, staged := range o.pending {
		maps.DeleteFunc(staged, func(k modelKey, p modelPending) bool { return gone(k, p.modelOffset) })
	}
}

// resolved does what Kafka does when it reads a marker: the later write stays.
func (o *offsetOracle) resolved(ev *Resolve) {
	for k, p := range o.pending[ev.Txn] {
		if ev.Commit && p.at > o.written[k] {
			o.offsets[k], o.written[k] = p.modelOffset, p.at
		}
	}
	delete(o.pending, ev.Txn)
}

func (o *offsetOracle) isPending(k modelKey) bool {
	for _, staged := range o.pending {
		if _, ok := staged[k]; ok {
			return true
		}
	}
	return false
}

// accepted calls store for each partition of a commit that was accepted.
func (o *offsetOracle) accepted(topics []CommitTopic, wall, expire Time, code Code, body Body, store func(k modelKey, p modelOffset)) {
	for i, t := range topics {
		for j, p := range t.Partitions {
			got := code
			if r, ok := body.(*CommitReply); ok {
				got = r.Codes[i][j]
			}
			if (got == OffsetMetadataTooLarge) != (len(p.Metadata) > o.limit) && (got == None || got == OffsetMetadataTooLarge) {
				o.t.Fatalf("metadata of %d units is answered %v", len(p.Metadata), got)
			}
			if got != None {
				continue
			}
			store(modelKey{t.Name, p.Partition}, modelOffset{OffsetsPartition{
				Partition: p.Partition, LeaderEpoch: p.LeaderEpoch, Offset: p.Offset, Commit: wall, Expire: expire, Metadata: p.Metadata,
			}, t.ID})
		}
	}
}

func (o *offsetOracle) fetched(ev *Fetch, code Code, r *FetchReply) {
	if code != None {
		o.t.Fatalf("fetch is answered %v", code)
	}
	seen := 0
	for i, t := range r.Topics {
		if ev.All && len(t.Partitions) == 0 {
			o.t.Fatalf("fetch of all answers topic %s without partitions", t.Name)
		}
		for j, p := range t.Partitions {
			seen++
			want, ok := o.offsets[modelKey{t.Name, p.Partition}]
			if !ev.All {
				asked := ev.Topics[i]
				if asked.Name != t.Name || asked.Partitions[j] != p.Partition {
					o.t.Fatalf("fetch answers %s-%d where %s-%d was asked", t.Name, p.Partition, asked.Name, asked.Partitions[j])
				}
				ok = ok && (want.id == asked.ID || want.id == TopicID{} || asked.ID == TopicID{})
			}
			if !ok {
				want = modelOffset{OffsetsPartition: OffsetsPartition{Offset: -1, LeaderEpoch: -1}}
			}
			code := None
			if ev.RequireStable && o.isPending(modelKey{t.Name, p.Partition}) {
				code, want = UnstableOffsetCommit, modelOffset{OffsetsPartition: OffsetsPartition{Offset: -1, LeaderEpoch: -1}}
			}
			if p.Code != code || p.Offset != want.Offset || p.LeaderEpoch != want.LeaderEpoch || p.Metadata != want.Metadata {
				o.t.Fatalf("fetch answers %+v, should be %v and %+v", p, code, want)
			}
		}
	}
	if ev.All && seen != len(o.offsets) {
		o.t.Fatalf("fetch of all answers %d of %d offsets", seen, len(o.offsets))
	}
}

// expire removes what section 17 of the specification lets go now, given the state
// of the group, and tells whether the group must go, too.
func (o *offsetOracle) expire(m *Machine, wall Time) (gone bool) {
	state, retention := m.state(), m.env.Config.OffsetsRetention
	for k, p := range o.offsets {
		base := p.Commit
		switch {
		case state == Empty && m.protocolType() == "":
		case state == Empty:
			base = m.live.since
		case state == Stable && m.protocolType() == "consumer":
			if subscribed, known := m.subscribedTo(k.topic); subscribed || !known {
				continue
			}
		default:
			continue
		}
		if o.isPending(k) {
			continue
		}
		if p.Expire >= 0 && wall >= p.Expire || p.Expire < 0 && wall-base >= retention {
			delete(o.offsets, k)
		}
	}
	pending := 0
	for _, staged := range o.pending {
		pending += len(staged)
	}
	return state == Empty && len(o.offsets)+pending == 0
}

type modelPending struct {
	modelOffset
	at int
}

// String renders as hardState does.
func (o *offsetOracle) String() string {
	var b strings.Builder
	b.WriteString(o.offsets.String())
	for _, txn := range slices.SortedFunc(maps.Keys(o.pending), func(a, b Transaction) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Number, b.Number))
	}) {
		var lines []string
		for k, p := range o.pending[txn] {
			place := 0
			for _, staged := range o.pending {
				if other, ok := staged[k]; ok && other.at < p.at {
					place++
				}
			}
			lines = append(lines, fmt.Sprintf("pending %q-%d offset=%d epoch=%d commit=%d metadata=%q id=%x txn=%q/%d producer=%d/%d place=%d superseded=%t\n",
				k.topic, k.partition, p.Offset, p.LeaderEpoch, p.Commit, p.Metadata, p.id, txn.ID, txn.Number, txn.ProducerID, txn.Epoch, place, o.written[k] > p.at))
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, ""))
	}
	return b.String()
}

// randomLine makes one line of a script.
func randomLine(r *rand.Rand) string {
	name := string(rune('A' + r.IntN(3)))
	partition := func() string { return fmt.Sprintf("%c-%d", 't'+rune(r.IntN(3)), r.IntN(4)) }
	ids := [...]string{"", " ids=(t:1,u:1)", " ids=(t:2)"}[r.IntN(3)]
	txn := func() string { return [...]string{"a/1", "a/2", "b/1", "c/1"}[r.IntN(4)] }
	switch r.IntN(19) {
	case 0, 1:
		topics := [...]string{"topics=(t)", "topics=(t,u)", "protocols=(range:junk)"}[r.IntN(3)]
		return "join " + name + " v=3 session=60000 rebalance=30000 " + topics
	case 2, 3:
		return "sync " + name
	case 4:
		return "heartbeat " + name
	case 5:
		return "leave " + name
	case 6, 7, 8:
		line := "commit "
		if r.IntN(2) == 0 {
			line += "- "
		} else {
			line += name + " "
		}
		for range 1 + r.IntN(3) {
			line += fmt.Sprintf("%s=(%d,%s) ", partition(), r.IntN(100), strings.Repeat("m", 1+r.IntN(5)))
		}
		if r.IntN(3) == 0 {
			line += fmt.Sprintf("retention=%d ", 5000*r.IntN(20))
		}
		return line + fmt.Sprintf("epoch=%d", r.IntN(3)-1) + ids
	case 9:
		stable := [...]string{"", "stable "}[r.IntN(2)]
		if r.IntN(2) == 0 {
			return "fetch " + stable
		}
		return "fetch " + stable + partition() + " " + partition() + ids
	case 10:
		return [...]string{"delete", "delete-offsets " + partition() + " " + partition(), "topic-deleted t id=1", "topic-deleted u id=2", "check-topics exist=(t:1,u:1)"}[r.IntN(5)]
	case 11:
		return [...]string{"crash", "checkpoint", "checkpoint", "disk low", "disk ok", "disk ok"}[r.IntN(6)]
	case 12:
		return fmt.Sprintf("wait %d", 5000*r.IntN(5)) // meets ends of retention exactly
	case 13, 14, 15:
		line := "txn-commit " + [...]string{"-", name}[r.IntN(2)] + " " + txn()
		for range 1 + r.IntN(3) {
			line += fmt.Sprintf(" %s=(%d,%s)", partition(), r.IntN(100), strings.Repeat("m", 1+r.IntN(5)))
		}
		return line + ids
	case 16, 17:
		return "resolve " + txn() + " " + [...]string{"commit", "abort"}[r.IntN(2)]
	}
	return "expire"
}

// Random life of a group: its offsets are always what the clients were told, and
// the world's own checks hold (a replica made from the records alone, a twin that
// is fed the same, invariants, and after a crash rows and records).
func TestOffsetsRandom(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newScript(t)
		s.silent = true
		o := newOffsetOracle(t, s)
		o.limit = 4
		(&command{s: s, name: "config", args: args("delay=100 retention=50000 metadata-max=4")}).run()
		s.world.observe = o.observe
		var trace []string
		for range 400 {
			line := randomLine(r)
			trace = append(trace, line)
			gone := false
			if line == "expire" {
				gone = o.expire(s.world.m, wallStart+s.world.now)
			}
			name, rest, _ := strings.Cut(line, " ")
			(&command{s: s, name: name, args: args(rest)}).run()
			_, got, _ := strings.Cut(hardState(s.world.m), "\n")
			if s.world.m.snap == nil {
				got = hardState(s.world.m)
			}
			if got != o.String() {
				t.Fatalf("seed %d:\n%s\noffsets are\n%s\nshould be\n%s", seed, strings.Join(trace, "\n"), got, o)
			}
			if gone && s.world.m.exists() {
				t.Fatalf("seed %d:\n%s\nthe group should be gone", seed, strings.Join(trace, "\n"))
			}
		}
	}
}

// args reads the arguments of a command; a list is one value in parentheses.
func args(line string) (args []datadriven.CmdArg) {
	for _, word := range strings.Fields(line) {
		a := arg(word)
		if len(a.Vals) == 1 && strings.HasPrefix(a.Vals[0], "(") {
			a.Vals = strings.Split(strings.Trim(a.Vals[0], "()"), ",")
		}
		args = append(args, a)
	}
	return args
}

// B101: assignments of any bytes and sizes reach each member as they were, before and
// after a restart from records and from rows.
func TestB101AssignmentBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	w := newWorld(Config{MaxMetadata: 4096})
	var req ReqID
	step := func(ev Event) *Reply {
		req++
		ev.Meta().Req = req
		out := w.step(t, ev)
		for i := range out.Replies {
			if out.Replies[i].Req == req {
				return &out.Replies[i]
			}
		}
		return nil
	}
	sizes := []int{0, 1, 70_000}
	var given []Assignment
	for i, size := range sizes {
		id := fmt.Sprintf("m%d", i)
		bytes := make([]byte, size)
		for j := range bytes {
			bytes[j] = byte(r.Uint32())
		}
		given = append(given, Assignment{MemberID: id, Bytes: bytes})
		step(&Join{NewID: id, SessionTimeout: 10000, RebalanceTimeout: 60000, ProtocolType: "consumer", Protocols: []Protocol{{Name: "range"}}})
	}
	for w.m.state() == PreparingRebalance {
		w.now, _ = w.m.NextDeadline()
		step(&Tick{})
	}
	step(&Sync{MemberID: "m0", Generation: 1, Assignments: given})
	check := func(when string) {
		t.Helper()
		for i, a := range given {
			reply := step(&Sync{MemberID: a.MemberID, Generation: 1})
			if reply == nil || reply.Code != None {
				t.Fatalf("%s: sync of %s is answered %+v", when, a.MemberID, reply)
			}
			if got := reply.Body.(*SyncReply).Assignment; got == nil || !slices.Equal(got, a.Bytes) {
				t.Errorf("%s: the assignment of %d bytes came back as %d (nil: %t)", when, sizes[i], len(got), got == nil)
			}
		}
	}
	check("at first")
	w.crash(t)
	check("from records")
	w.checkpoint(t)
	w.crash(t)
	check("from rows")
}
