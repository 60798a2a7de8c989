package group

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"testing"
)

// wallStart is the wall time at which the clock of a world is 0.
const wallStart Time = 1_700_000_000_000

func mapKeys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

// world drives one machine and watches it: every step is checked, stepped by a
// twin as well, and replayed into a replica from its records.
type world struct {
	env     *Env
	m       *Machine
	twin    *Machine
	replica *Machine
	check   *checker
	now     Time
	records []byte // encoded, as in the change log
	// stored are the rows of the checkpoints so far, which have the records before
	// folded.
	stored rowStore
	folded int
	// observe, if set, sees each step.
	observe func(ev Event, out *Output)
}

func newWorld(cfg Config) *world {
	w := &world{env: &Env{Config: cfg}, check: newChecker(), stored: rowStore{}}
	w.m = New(w.env, "g")
	w.twin = New(&Env{Config: cfg}, "g")
	w.replica = New(&Env{Config: cfg}, "g")
	return w
}

// step gives an event to the machine and fails the test if anything is wrong.
func (w *world) step(t testing.TB, ev Event) Output {
	t.Helper()
	out, err := w.tryStep(ev)
	if err != nil {
		t.Fatalf("%T at %d: %v", ev, w.now, err)
	}
	return out
}

func (w *world) tryStep(ev Event) (Output, error) {
	ev.Meta().Wall = wallStart + w.now
	out := w.m.Step(w.now, ev)
	w.twin.env.Config, w.twin.env.reserve = w.env.Config, w.env.reserve
	if other := w.twin.Step(w.now, ev); !reflect.DeepEqual(out, other) {
		return out, fmt.Errorf("same input, different output:\n%+v\n%+v", out, other)
	}
	from := len(w.records)
	for i := range out.Records {
		w.records = AppendRecord(w.records, "g", &out.Records[i])
	}
	if err := replay(w.records[from:], w.replica); err != nil {
		return out, err
	}
	if err := w.m.Check(); err != nil {
		return out, err
	}
	if err := sameHardState(w.m, w.replica); err != nil {
		return out, err
	}
	if w.observe != nil {
		w.observe(ev, &out)
	}
	return out, w.check.step(w.m, ev, &out)
}

// replay applies encoded records to machines.
func replay(records []byte, machines ...*Machine) error {
	for len(records) > 0 {
		_, rec, rest, err := DecodeRecord(records)
		if err != nil {
			return err
		}
		for _, m := range machines {
			m.Apply(&rec)
		}
		records = rest
	}
	return nil
}

// sameHardState compares what survives a restart.
func sameHardState(a, b *Machine) error {
	if is, want := hardState(a), hardState(b); is != want {
		return fmt.Errorf("hard state is not what replay makes of the records:\n%s\n%s", is, want)
	}
	return nil
}

// checkpoint takes the changed rows and returns their keys.
func (w *world) checkpoint(t testing.TB) []Row {
	t.Helper()
	rows := cloneRows(w.step(t, &Checkpoint{}).Rows)
	w.stored.put(rows)
	w.folded = len(w.records)
	return rows
}

// crash loses everything but the rows of the last checkpoint and the records since
// and loads them. The replica goes on from the records alone.
func (w *world) crash(t testing.TB) Output {
	t.Helper()
	*w.env = Env{Config: w.env.Config, reserve: w.env.reserve}
	twin := *w.env
	w.m, w.twin = New(w.env, "g"), New(&twin, "g")
	if err := w.stored.restore(w.m, w.twin); err != nil {
		t.Fatal(err)
	}
	if err := replay(w.records[w.folded:], w.m, w.twin); err != nil {
		t.Fatal(err)
	}
	w.check.crash()
	return w.step(t, &Loaded{})
}

// checker watches events and outputs and knows the protocol's promises, but none
// of the machine's ways. It is what scripts, the exploration and the fuzzer share.
type checker struct {
	open map[ReqID]Event
	// seen has the round in which each member got a generation; the same member
	// must never get the same generation in two rounds.
	seen   map[memberGeneration]int
	rounds int
	// live is the current round, durable the last one that records tell of.
	live, durable round
}

type memberGeneration struct {
	id         string
	generation int32
}

// round is a generation as the leader was told of it.
type round struct {
	number     int
	generation int32
	leader     string
	members    map[string]bool
	assigned   map[string]string
	// instances has the members behind instance ids, who may change their ids.
	instances map[string]string
	// server: assigned by the coordinator.
	server bool
}

// replace notes that a static member goes on under a new id without a new round.
func (r *round) replace(instance string, j *JoinReply) error {
	old, ok := r.instances[instance]
	if !ok {
		return fmt.Errorf("member %s replaces nobody", j.MemberID)
	}
	delete(r.members, old)
	r.members[j.MemberID] = true
	r.assigned[j.MemberID] = r.assigned[old]
	delete(r.assigned, old)
	r.instances[instance] = j.MemberID
	if old == r.leader {
		r.leader = j.MemberID
	}
	if leads := j.MemberID == r.leader; leads != (len(j.Members) > 0) && j.SkipAssignment || j.SkipAssignment && !leads {
		return fmt.Errorf("member %s is told to skip the assignment of leader %s", j.MemberID, r.leader)
	}
	return nil
}

func newChecker() *checker {
	return &checker{open: map[ReqID]Event{}, seen: map[memberGeneration]int{}}
}

func (r round) clone() round {
	r.members, r.assigned, r.instances = maps.Clone(r.members), maps.Clone(r.assigned), maps.Clone(r.instances)
	return r
}

func (k *checker) crash() {
	clear(k.open)
	k.live = k.durable.clone()
}

// step looks at one step.
func (k *checker) step(m *Machine, ev Event, out *Output) error {
	if req := ev.Meta().Req; req != 0 {
		k.open[req] = ev
	}
	if err := k.formed(out); err != nil {
		return err
	}
	k.assignments(ev, out)
	for i := range out.Replies {
		if err := k.reply(&out.Replies[i], ev); err != nil {
			return err
		}
	}
	if len(k.open) > 0 {
		if _, ok := m.NextDeadline(); !ok {
			return fmt.Errorf("%d requests wait without a deadline", len(k.open))
		}
	}
	if _, lost := ev.(*Lost); lost && len(k.open) > 0 {
		return fmt.Errorf("%d requests still wait after Lost", len(k.open))
	}
	if m.state() == Stable {
		for _, x := range m.live.members {
			if !k.live.members[x.id] {
				return fmt.Errorf("member %s of a Stable group is not in the leader's list", x.id)
			}
		}
	}
	for i := range out.Records {
		switch out.Records[i].Kind {
		case RecordMembership:
			if out.Records[i].Membership.Generation == k.live.generation {
				k.durable = k.live.clone()
			} else if len(out.Records[i].Membership.Members) == 0 {
				k.durable = round{generation: out.Records[i].Membership.Generation}
			}
		case RecordGroupDeleted:
			k.live, k.durable = round{}, round{}
		}
	}
	return nil
}

// formed notices a new generation: what all its members are told at once.
func (k *checker) formed(out *Output) error {
	began := false
	for _, n := range out.Notes {
		began = began || n.From == PreparingRebalance && n.To == CompletingRebalance
	}
	if !began {
		return nil
	}
	k.rounds++
	r := round{number: k.rounds, members: map[string]bool{}, instances: map[string]string{}}
	var told []*JoinReply
	var members []JoinMember
	for i := range out.Replies {
		j, ok := out.Replies[i].Body.(*JoinReply)
		if !ok || out.Replies[i].Code != None {
			continue
		}
		told = append(told, j)
		if len(j.Members) > 0 {
			if r.leader != "" {
				return fmt.Errorf("generation %d has leaders %s and %s", j.Generation, r.leader, j.MemberID)
			}
			r.leader, r.generation, members = j.MemberID, j.Generation, j.Members
			for _, x := range j.Members {
				if r.members[x.MemberID] {
					return fmt.Errorf("the leader is told of %s twice", x.MemberID)
				}
				r.members[x.MemberID] = true
				if x.InstanceID != nil {
					r.instances[*x.InstanceID] = x.MemberID
				}
				at := memberGeneration{x.MemberID, j.Generation}
				if _, used := k.seen[at]; used {
					return fmt.Errorf("member %s gets generation %d again", x.MemberID, j.Generation)
				}
				k.seen[at] = r.number
			}
		}
	}
	if r.leader == "" {
		return errors.New("a generation without a leader")
	}
	for _, x := range members {
		joined := slices.ContainsFunc(told, func(j *JoinReply) bool { return j.MemberID == x.MemberID })
		if x.InstanceID == nil && !joined {
			return fmt.Errorf("member %s is in the generation and did not join", x.MemberID)
		}
	}
	for _, j := range told {
		if j.Leader != r.leader || j.Generation != r.generation || !r.members[j.MemberID] || j.ProtocolName == nil {
			return fmt.Errorf("member %s is told something else than the leader", j.MemberID)
		}
	}
	if r.generation <= k.live.generation {
		return fmt.Errorf("generation %d after %d", r.generation, k.live.generation)
	}
	k.live = r
	return nil
}

// assignments notices what the leader hands out.
func (k *checker) assignments(ev Event, out *Output) {
	s, ok := ev.(*Sync)
	if !ok {
		return
	}
	for _, n := range out.Notes {
		if n.From == CompletingRebalance && n.To == Stable {
			k.live.assigned = map[string]string{}
			k.live.server = n.Rule == S9
			for _, a := range s.Assignments {
				k.live.assigned[a.MemberID] = string(a.Bytes)
			}
		}
	}
}

// reply checks one answer.
func (k *checker) reply(r *Reply, now Event) error {
	ev, ok := k.open[r.Req]
	if !ok {
		return fmt.Errorf("request %d is answered twice or was never asked", r.Req)
	}
	delete(k.open, r.Req)
	switch ev := ev.(type) {
	case *Join:
		j, ok := r.Body.(*JoinReply)
		switch {
		case !ok:
			return fmt.Errorf("a join is answered with %T", r.Body)
		case r.Code != None && r.Code != CoordinatorNotAvailable && (j.Generation != -1 || j.Leader != "" || j.ProtocolName != nil || j.Members != nil):
			return fmt.Errorf("a refused join tells more than the error: %+v", j)
		case r.Code == None && ev == now && ev.MemberID == "" && ev.InstanceID != nil && j.Generation == k.live.generation && !k.live.members[j.MemberID]:
			return k.live.replace(*ev.InstanceID, j)
		case r.Code == None && !k.live.members[j.MemberID]:
			return fmt.Errorf("member %s joins a generation that it is not in", j.MemberID)
		}
	case *Sync:
		s, ok := r.Body.(*SyncReply)
		if !ok {
			return fmt.Errorf("a sync is answered with %T", r.Body)
		}
		if r.Code != None {
			if s.ProtocolName != nil || s.ProtocolType != nil || s.Assignment != nil {
				return errors.New("a refused sync tells more than the error")
			}
			return nil
		}
		if ev.Generation != k.live.generation || !k.live.members[ev.MemberID] {
			return fmt.Errorf("member %s syncs generation %d, which is not its", ev.MemberID, ev.Generation)
		}
		if want := k.live.assigned[ev.MemberID]; !k.live.server && want != string(s.Assignment) {
			return fmt.Errorf("member %s gets %q, the leader gave it %q", ev.MemberID, s.Assignment, want)
		}
	}
	return nil
}
