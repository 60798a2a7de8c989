package group

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// xworld is a state of the exploration: one machine, and what an onlooker has to
// remember to judge it. There are no clients in it. Whatever a client could send,
// if it were told all or nothing, at once or late, once or many times, may come
// next: that takes in every lost answer and every duplicated or late request, in
// any number, and none of them is part of a state. Nor is time: it stands still,
// and any armed timer may fire next, whatever the others say.
type xworld struct {
	m *Machine
	// now is 0, but for probes.
	now     Time
	crashes int
	// told has the highest generation that each id was told, as long as the id is
	// a member's or may become one again by a crash.
	told []xtold
	// list are the members that the leader of the present generation was told of,
	// durable those of the generation that the snapshot has.
	list, durable []string
	open          []ReqID // not answered
	lastReq       ReqID
	names         int // given to dynamic members
	statics       int // ids given to the static member
}

type xtold struct {
	id         string
	generation int32
}

// xreserve is how many generations a snapshot reserves here.
const xreserve int32 = 2

// xinstance is the instance id of the static member, whose ids begin with S.
var xinstance = "s"

func isStatic(id string) bool { return id[0] == 'S' }

// clone copies a world; what is never changed is shared.
func (w *xworld) clone(env *Env) *xworld {
	c := *w
	m := *w.m
	c.m = &m
	m.env = env
	if l := w.m.live; l != nil {
		live := *l
		m.live = &live
		live.members = make([]*member, len(l.members), len(l.members)+1)
		block := make([]member, len(l.members))
		for i, x := range l.members {
			block[i] = *x
			live.members[i] = &block[i]
			if x == l.leader {
				live.leader = &block[i]
			}
		}
		live.protocols.list = slices.Clone(l.protocols.list)
		live.pending = maps.Clone(l.pending)
	}
	c.told = slices.Clone(w.told)
	c.open = slices.Clone(w.open)
	return &c
}

// ask gives a request to the machine and returns its code, or parked.
func (w *xworld) ask(ev Event) (Code, error) {
	w.lastReq++
	ev.Meta().Req = w.lastReq
	w.open = append(w.open, w.lastReq)
	return w.step(ev)
}

// parked stands for the code of a request that is not answered yet.
const parked Code = -999

// step gives an event to the machine and checks what comes of it.
func (w *xworld) step(ev Event) (Code, error) {
	was := w.m.snap
	out := w.m.Step(w.now, ev)
	if err := w.follow(was, &out); err != nil {
		return 0, err
	}
	code := parked
	for i := range out.Replies {
		r := &out.Replies[i]
		at := slices.Index(w.open, r.Req)
		if at < 0 {
			return 0, fmt.Errorf("request %d is answered twice", r.Req)
		}
		w.open = slices.Delete(w.open, at, at+1)
		if err := w.answer(r); err != nil {
			return 0, err
		}
		if r.Req == ev.Meta().Req {
			code = r.Code
		}
	}
	w.told = slices.DeleteFunc(w.told, func(t xtold) bool { return !w.alive(t.id) })
	return code, w.verify()
}

// alive tells whether an id is a member's, or will be after a crash.
func (w *xworld) alive(id string) bool {
	if w.m.live != nil && w.m.live.find(id) != nil {
		return true
	}
	return w.m.snap != nil && slices.ContainsFunc(w.m.snap.Members, func(x MemberSnapshot) bool { return x.MemberID == id })
}

// follow keeps the books and holds records against hard state.
func (w *xworld) follow(was *Membership, out *Output) error {
	for _, n := range out.Notes {
		switch {
		case n.From == PreparingRebalance && n.To == CompletingRebalance:
			if err := w.formed(out); err != nil {
				return err
			}
		case n.Rule == J20:
			w.renamed(n.Member)
		}
	}
	if len(out.Records) == 0 {
		if w.m.snap != was {
			return errors.New("hard state changed without a record")
		}
		return nil
	}
	replica := &Machine{env: &Env{}, id: "g", snap: was}
	for i := range out.Records {
		if err := replay(AppendRecord(nil, "g", &out.Records[i]), replica); err != nil {
			return err
		}
		switch snap := replica.snap; {
		case snap == nil || len(snap.Members) == 0:
			w.durable = nil
		case snap.Generation == w.m.live.generation:
			w.durable = w.list
		}
	}
	if (replica.snap == nil) != (w.m.snap == nil) ||
		replica.snap != nil && !bytes.Equal(appendMembership(nil, replica.snap), appendMembership(nil, w.m.snap)) {
		return errors.New("hard state is not what replay makes of the records")
	}
	return nil
}

// formed looks at the answers that a new generation gives: one leader, who is told
// of every member once, and a generation that none of them ever had.
func (w *xworld) formed(out *Output) error {
	var leader *JoinReply
	for i := range out.Replies {
		j, ok := out.Replies[i].Body.(*JoinReply)
		if !ok || out.Replies[i].Code != None {
			continue
		}
		if len(j.Members) > 0 {
			if leader != nil {
				return fmt.Errorf("leaders %s and %s in one generation", leader.MemberID, j.MemberID)
			}
			leader = j
		}
	}
	if leader == nil {
		return errors.New("a generation without a leader")
	}
	w.list = nil
	for _, x := range leader.Members {
		if slices.Contains(w.list, x.MemberID) {
			return fmt.Errorf("the leader is told of %s twice", x.MemberID)
		}
		w.list = append(w.list, x.MemberID)
		at := slices.IndexFunc(w.told, func(t xtold) bool { return t.id == x.MemberID })
		switch {
		case at < 0:
			w.told = append(w.told, xtold{x.MemberID, leader.Generation})
		case w.told[at].generation >= leader.Generation:
			return fmt.Errorf("member %s gets generation %d, and had %d before", x.MemberID, leader.Generation, w.told[at].generation)
		default:
			w.told[at].generation = leader.Generation
		}
	}
	answered := map[string]bool{}
	for i := range out.Replies {
		j, ok := out.Replies[i].Body.(*JoinReply)
		if ok && out.Replies[i].Code == None {
			answered[j.MemberID] = true
		}
		if ok && out.Replies[i].Code == None &&
			(j.Leader != leader.MemberID || j.Generation != leader.Generation || !slices.Contains(w.list, j.MemberID)) {
			return fmt.Errorf("member %s is told something else than the leader", j.MemberID)
		}
	}
	for _, id := range w.list {
		if !answered[id] && !isStatic(id) {
			return fmt.Errorf("member %s is in the generation and did not join", id)
		}
	}
	return nil
}

// renamed notes that the static member goes on under a new id without a round.
func (w *xworld) renamed(id string) {
	w.list = slices.Clone(w.list)
	for i := range w.list {
		if isStatic(w.list[i]) {
			w.list[i] = id
		}
	}
	w.told = append(w.told, xtold{id, w.m.live.generation})
}

// answer looks at one answer.
func (w *xworld) answer(r *Reply) error {
	switch body := r.Body.(type) {
	case *JoinReply:
		if r.Code == None && (body.Generation != w.m.live.generation || w.m.live.find(body.MemberID) == nil) {
			return fmt.Errorf("member %s joins generation %d", body.MemberID, body.Generation)
		}
		if r.Code != None && (body.Generation != -1 || body.Leader != "" || len(body.Members) > 0) {
			return fmt.Errorf("a refused join tells more than the error: %+v", body)
		}
	case *SyncReply:
		if (r.Code == None) != (body.ProtocolName != nil) || r.Code != None && body.Assignment != nil {
			return fmt.Errorf("sync answered with code %d and %q", r.Code, body.Assignment)
		}
		if r.Code == None && w.m.state() != Stable {
			return fmt.Errorf("an assignment is handed out in state %v", w.m.state())
		}
	}
	return nil
}

// assignedTo tells whether an assignment is a member's of a generation; a static
// member may have got it under an older id.
func assignedTo(bytes []byte, id string, generation int32) bool {
	to, g, _ := strings.Cut(string(bytes), "@")
	return g == strconv.Itoa(int(generation)) && (to == id || isStatic(to) && isStatic(id))
}

// crash loses everything but the snapshot.
func (w *xworld) crash(env *Env) error {
	snap := w.m.snap
	w.m = New(env, "g")
	if snap != nil {
		if err := replay(AppendRecord(nil, "g", &Record{Kind: RecordMembership, Membership: snap}), w.m); err != nil {
			return err
		}
	}
	w.crashes++
	w.list, w.open = w.durable, nil
	_, err := w.step(&Loaded{})
	return err
}

// verify checks a state by itself, apart from how it came about.
func (w *xworld) verify() error {
	if err := w.m.Check(); err != nil {
		return err
	}
	held := 0
	if l := w.m.live; l != nil {
		for _, x := range l.members {
			if x.joining {
				held++
			}
			if x.syncing {
				held++
			}
			if l.state != Stable {
				continue
			}
			if !slices.Contains(w.list, x.id) {
				return fmt.Errorf("member %s of a Stable group is not in the leader's list", x.id)
			}
			if !assignedTo(x.assignment, x.id, l.generation) {
				return fmt.Errorf("member %s of a Stable group has assignment %q, generation %d", x.id, x.assignment, l.generation)
			}
		}
	}
	if held != len(w.open) {
		return fmt.Errorf("%d requests are open, %d are parked", len(w.open), held)
	}
	if _, ok := w.m.NextDeadline(); held > 0 && !ok {
		return errors.New("a request is parked without a deadline")
	}
	return nil
}
