package group

import (
	"flag"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

var exploreAll = flag.Bool("explore", false, "explore to the full bounds, which takes minutes")

// exploration is a breadth-first search over the real machine.
type exploration struct {
	lim xlimits
	// spoil, if set, breaks the machine after each action.
	spoil func(*xworld)
	nodes []xnode
	seen  map[fingerprint]struct{}

	transitions, depth int
	// failure is the first that was found at the lowest depth, and where.
	failure error
	failed  uint32
}

// xnode is a state that was reached: from which one, and by which of its actions.
type xnode struct {
	parent uint32
	action uint8
}

type xstate struct {
	node  uint32
	world *xworld
}

// xfound is what one action of one state leads to.
type xfound struct {
	parent uint32
	action uint8
	print  fingerprint
	world  *xworld
	err    error
}

func (e *exploration) env() *Env {
	return &Env{reserve: xreserve, Config: Config{InitialRebalanceDelay: 3000, PendingMax: e.lim.pending, MaxSize: e.lim.maxSize}}
}

// run searches until there is nothing new, or until something is wrong.
func (e *exploration) run() {
	root := &xworld{m: New(e.env(), "g")}
	var p printer
	e.seen = map[fingerprint]struct{}{p.print(root, e.lim): {}}
	e.nodes = []xnode{{}}
	for frontier := []xstate{{0, root}}; len(frontier) > 0 && e.failure == nil; e.depth++ {
		frontier = e.level(frontier)
	}
}

// level takes every action of every state of a level. Workers share it, but what they
// find is taken in the order of the states, so that every run is the same.
func (e *exploration) level(frontier []xstate) []xstate {
	const chunk = 64
	type result struct {
		at    int
		found []xfound
	}
	starts := make(chan int)
	results := make(chan result)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			var p printer
			env := e.env()
			for at := range starts {
				var found []xfound
				for _, s := range frontier[at:min(at+chunk, len(frontier))] {
					found = e.expand(s, env, &p, found)
				}
				results <- result{at, found}
			}
		})
	}
	go func() {
		for at := 0; at < len(frontier); at += chunk {
			starts <- at
		}
		close(starts)
		workers.Wait()
		close(results)
	}()
	var next []xstate
	early := map[int][]xfound{}
	due := 0
	for r := range results {
		early[r.at] = r.found
		for found, ok := early[due]; ok; found, ok = early[due] {
			delete(early, due)
			next = e.take(found, next)
			due += chunk
		}
	}
	return next
}

// expand probes a state and takes each of its actions.
func (e *exploration) expand(s xstate, env *Env, p *printer, found []xfound) []xfound {
	if err := try(func() error { return s.world.probe(env) }); err != nil {
		return append(found, xfound{parent: s.node, action: noAction, err: err})
	}
	actions := s.world.actions(e.lim)
	for i, a := range actions {
		w := s.world.clone(env)
		f := xfound{parent: s.node, action: uint8(i), world: w}
		if f.err = try(func() error { return w.do(a, env) }); f.err == nil {
			if e.spoil != nil {
				e.spoil(w)
			}
			f.print = p.print(w, e.lim)
		}
		found = append(found, f)
	}
	return found
}

// noAction marks what was found by looking at a state.
const noAction = 255

// try turns a broken invariant into an error.
func try(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// take keeps what is new.
func (e *exploration) take(found []xfound, next []xstate) []xstate {
	for _, f := range found {
		e.transitions++
		if _, old := e.seen[f.print]; old && f.err == nil {
			continue
		}
		node := f.parent
		if f.action != noAction {
			node = uint32(len(e.nodes))
			e.nodes = append(e.nodes, xnode{f.parent, f.action})
		}
		if f.err != nil {
			if e.failure == nil {
				e.failure, e.failed = f.err, node
			}
			continue
		}
		e.seen[f.print] = struct{}{}
		next = append(next, xstate{node, f.world})
	}
	return next
}

// walk takes the shortest way to a state and returns it as a script, and the state.
func (e *exploration) walk(node uint32) (string, *xworld) {
	var indexes []uint8
	for ; node != 0; node = e.nodes[node].parent {
		indexes = append(indexes, e.nodes[node].action)
	}
	slices.Reverse(indexes)
	env := e.env()
	w := &xworld{m: New(env, "g")}
	lines := []string{fmt.Sprintf("config delay=3000 pending-max=%d max-size=%d reserve=%d", e.lim.pending, e.lim.maxSize, xreserve)}
	for _, i := range indexes {
		a := w.actions(e.lim)[i]
		lines = append(lines, a.script(w))
		if err := try(func() error { return w.do(a, env) }); err != nil {
			break
		}
		if e.spoil != nil {
			e.spoil(w)
		}
	}
	return strings.Join(lines, "\n") + "\n----\n", w
}

// TestExplore looks at every state that a small group can get into, by every order
// of requests, timeouts and crashes, until there is no new one. In each state
// everything that anybody could send comes, in time, late or repeatedly, and each
// armed timer fires, whatever the others say.
func TestExplore(t *testing.T) {
	bounds := []xlimits{{members: 3, pending: 1}, {members: 2, crashes: 1}, {members: 3, pending: 1, maxSize: 2}}
	if *exploreAll {
		bounds = []xlimits{
			{members: 3, pending: 2, crashes: 1},
			{members: 2, pending: 1, crashes: 3},
			{members: 4, pending: 1},
			{members: 3, pending: 1, crashes: 1, maxSize: 2},
		}
	} else {
		t.Log("smaller bounds, since the full ones take minutes: make explore")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	for _, lim := range bounds {
		t.Run(fmt.Sprintf("members=%d,pending=%d,crashes=%d,size=%d", lim.members, lim.pending, lim.crashes, lim.maxSize), func(t *testing.T) {
			start := time.Now()
			e := &exploration{lim: lim}
			e.run()
			if e.failure != nil {
				script, _ := e.walk(e.failed)
				t.Fatalf("%v, after\n%s", e.failure, script)
			}
			t.Logf("%v: a fixed point of %d states, %d transitions, at most %d steps from the start, in %v",
				lim, len(e.nodes), e.transitions, e.depth-1, time.Since(start).Round(time.Millisecond))
		})
	}
}

// What the exploration is there to find, it finds: each of these makes the machine
// forget something that only an unlucky order of events asks for.
func TestExploreFindsSeededBug(t *testing.T) {
	for _, bug := range []struct {
		name  string
		spoil func(*xworld)
		want  string // part of the failure
		steps int    // the length of the shortest way there
	}{
		{"generation used again after a crash", forgetRecovery, "and had 2 before", 6},
		{"late joiner slips into the round", letIn, "is not in the leader's list", 4},
		{"assignments outlive their round", keepAssignments, "has an assignment outside Stable", 4},
	} {
		t.Run(bug.name, func(t *testing.T) {
			e := &exploration{lim: xlimits{members: 2, pending: 1, crashes: 1}, spoil: bug.spoil}
			e.run()
			if e.failure == nil {
				t.Fatalf("not found in %d states", len(e.nodes))
			}
			script, _ := e.walk(e.failed)
			if steps := strings.Count(script, "\n") - strings.Count(script, "restart") - 2; !strings.Contains(e.failure.Error(), bug.want) || steps > bug.steps {
				t.Errorf("found %v in %d steps, want %q in %d", e.failure, steps, bug.want, bug.steps)
			}
			t.Logf("%v, after\n%s", e.failure, script)
		})
	}
}

// forgetRecovery lets the next generation be the one after the snapshot's.
func forgetRecovery(w *xworld) {
	if w.m.live != nil {
		w.m.live.recovered = false
	}
}

// letIn takes a late joiner into the generation that the leader is working on.
func letIn(w *xworld) {
	l := w.m.live
	if l == nil || l.state != PreparingRebalance || !l.forgotten || l.joining != 1 {
		return
	}
	x := l.members[len(l.members)-1]
	if !x.isNew {
		return
	}
	w.open = slices.DeleteFunc(w.open, func(req ReqID) bool { return req == x.joinReq })
	l.state, l.joinDeadline, l.joining = CompletingRebalance, never, 0
	x.joining, x.isNew = false, false
	for _, x := range l.members {
		x.unsynced = true
	}
	l.unsynced = len(l.members)
	l.armSync(6000)
}

// keepAssignments does not clear them when a round begins.
func keepAssignments(w *xworld) {
	if w.m.live == nil || w.m.snap == nil || w.m.live.state != PreparingRebalance {
		return
	}
	for i := range w.m.snap.Members {
		if x := w.m.live.find(w.m.snap.Members[i].MemberID); x != nil {
			x.assignment = w.m.snap.Members[i].Assignment
		}
	}
}

// The way to a state, run as a script, leads to that state.
func TestExploreTraceIsAScript(t *testing.T) {
	e := &exploration{lim: xlimits{members: 3, pending: 1, crashes: 1}}
	root := &xworld{m: New(e.env(), "g")}
	e.seen, e.nodes = map[fingerprint]struct{}{}, []xnode{{}}
	frontier := []xstate{{0, root}}
	for range 9 {
		frontier = e.level(frontier)
	}
	for i := 0; i < len(frontier); i += 1 + len(frontier)/200 {
		script, w := e.walk(frontier[i].node)
		s := newScript(t)
		datadriven.RunTestFromString(t, script, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			s.directive(d)
			return ""
		})
		want, got := *w.m.live, *s.world.m.live
		if got.state != want.state || got.generation != want.generation || !slices.EqualFunc(got.members, want.members, sameMember) ||
			len(got.pending) != len(want.pending) || got.budget != want.budget || got.leader.name() != want.leader.name() ||
			(s.world.m.snap == nil) != (w.m.snap == nil) {
			t.Fatalf("the script leads to another state:\n%s", script)
		}
	}
}

func (x *member) name() string {
	if x == nil {
		return ""
	}
	return x.id
}

func sameMember(a, b *member) bool {
	return a.id == b.id && a.joining == b.joining && a.syncing == b.syncing && a.isNew == b.isNew && a.unsynced == b.unsynced
}

// probe asks what does not lead to another state.
func (w *xworld) probe(env *Env) error {
	c := w.clone(env)
	if err := c.probeHeartbeats(); err != nil {
		return err
	}
	if err := c.probeSyncs(); err != nil {
		return err
	}
	if err := w.clone(env).probePartial(); err != nil {
		return err
	}
	if err := w.clone(env).probeLowDisk(); err != nil {
		return err
	}
	if err := w.probeTwice(env); err != nil {
		return err
	}
	c = w.clone(env)
	if _, err := c.step(&Lost{}); err != nil {
		return err
	}
	if len(c.open) > 0 {
		return fmt.Errorf("%d requests are still open when the shard is lost", len(c.open))
	}
	return nil
}

// xprobes are the generations that may come with a request, from the present one.
func (w *xworld) xprobes() []int32 {
	if w.m.live == nil {
		return []int32{-1, 0, 1}
	}
	g := w.m.live.generation
	return []int32{-1, g - 1, g, g + 1}
}

// xask is who may ask: every member, with and without the instance id, and some that
// are none.
func (w *xworld) xask() []LeaveMember {
	who := []LeaveMember{{MemberID: "M0-1"}, {MemberID: "S-0"}, {MemberID: "S-0", InstanceID: &xinstance}, {InstanceID: &xinstance}, {}}
	if w.m.live != nil {
		for _, x := range w.m.live.members {
			who = append(who, LeaveMember{MemberID: x.id}, LeaveMember{MemberID: x.id, InstanceID: &xinstance})
		}
		for _, id := range sortedIDs(w.m.live.pending) {
			who = append(who, LeaveMember{MemberID: id})
		}
	}
	return who
}

// refusal is the table of design rule 5, after Kafka's checks of the member: none if
// the request is the present generation's.
func (w *xworld) refusal(id string, instance *string, generation int32) Code {
	var same, static *member
	state, current := w.m.state(), int32(0)
	if l := w.m.live; l != nil {
		current = l.generation
		for _, x := range l.members {
			if x.id == id {
				same = x
			}
			if x.instance != nil {
				static = x
			}
		}
	}
	switch {
	case instance != nil && static == nil:
		return UnknownMemberID
	case instance != nil && static != same:
		return FencedInstanceID
	case same == nil:
		return UnknownMemberID
	case generation == current:
		return None
	case generation >= 0 && generation < current && (state == PreparingRebalance || state == CompletingRebalance):
		return RebalanceInProgress
	}
	return IllegalGeneration
}

// probeHeartbeats asks with every id and generation. The session is renewed by the
// present generation only.
func (w *xworld) probeHeartbeats() error {
	for _, who := range w.xask() {
		for _, generation := range w.xprobes() {
			want := w.refusal(who.MemberID, who.InstanceID, generation)
			renews := want == None
			if renews && w.m.state() == PreparingRebalance {
				want = RebalanceInProgress
			}
			w.now++
			code, err := w.ask(&Heartbeat{MemberID: who.MemberID, InstanceID: who.InstanceID, Generation: generation})
			if err != nil || code != want {
				return fmt.Errorf("heartbeat of %q at %d is answered %d (%v), want %d", who.MemberID, generation, code, err, want)
			}
			if l := w.m.live; l != nil && l.find(who.MemberID) != nil && (l.find(who.MemberID).heard == w.now) != renews {
				return fmt.Errorf("heartbeat of %q at %d is answered %d, session renewed: %v", who.MemberID, generation, code, !renews)
			}
		}
	}
	return nil
}

// probeSyncs asks with every generation but the present one: whatever is refused
// changes nothing.
func (w *xworld) probeSyncs() error {
	for _, who := range w.xask() {
		for _, generation := range w.xprobes() {
			want := w.refusal(who.MemberID, who.InstanceID, generation)
			if want == None {
				continue
			}
			code, err := w.ask(&Sync{
				MemberID: who.MemberID, InstanceID: who.InstanceID, Generation: generation,
				Assignments: []Assignment{{"M1-1", []byte("stale")}},
			})
			if err != nil || code != want {
				return fmt.Errorf("sync of %q at %d is answered %d (%v), want %d", who.MemberID, generation, code, err, want)
			}
		}
	}
	return nil
}

// probePartial: a leader that leaves everybody out leaves them with nothing, and the
// group is Stable all the same.
func (w *xworld) probePartial() error {
	l := w.m.live
	if l == nil || l.state != CompletingRebalance {
		return nil
	}
	generation := l.generation
	out := w.m.Step(0, &Sync{Head: Head{Req: 1}, MemberID: l.leader.id, InstanceID: l.leader.instance, Generation: generation})
	for i := range out.Replies {
		if s, ok := out.Replies[i].Body.(*SyncReply); !ok || out.Replies[i].Code != None || len(s.Assignment) > 0 {
			return fmt.Errorf("a leader that assigns nothing: %+v", out.Replies[i])
		}
	}
	if l.state != Stable || l.generation != generation {
		return fmt.Errorf("a leader that assigns nothing leaves the group in %v at %d, was %d", l.state, l.generation, generation)
	}
	return w.m.Check()
}

// probeLowDisk: what would store something is refused and changes nothing.
func (w *xworld) probeLowDisk() error {
	l := w.m.live
	if l == nil {
		return nil
	}
	var ev Event
	switch {
	case l.state == CompletingRebalance:
		ev = w.syncOf(l.leader)
	case l.state == Stable && l.findInstance(xinstance) != nil && w.m.env.Config.MaxSize == 0:
		j := w.join("", false)
		j.NewID, j.InstanceID = "S-low", &xinstance
		ev = j
	default:
		return nil
	}
	var p printer
	before := p.print(w, xlimits{crashes: 1})
	ev.Meta().Req, ev.Meta().DiskLow = 1, true
	out := w.m.Step(0, ev)
	if len(out.Replies) != 1 || out.Replies[0].Code != CoordinatorNotAvailable || len(out.Records) > 0 || p.print(w, xlimits{crashes: 1}) != before {
		return fmt.Errorf("%T while the disk is low: %+v", ev, out)
	}
	return nil
}

// probeTwice: the same input gives the same output.
func (w *xworld) probeTwice(env *Env) error {
	if w.m.live == nil {
		return nil
	}
	first, second := w.clone(env), w.clone(&Env{reserve: env.reserve, Config: env.Config})
	leave := &Leave{Head: Head{Req: 1}}
	for _, x := range w.m.live.members {
		leave.Members = append(leave.Members, LeaveMember{MemberID: x.id})
	}
	one, two := first.m.Step(0, leave), second.m.Step(0, leave)
	for _, out := range []*Output{&one, &two} {
		// Scratch space may be empty or nil.
		out.Records, out.Notes, out.Rows = append([]Record{}, out.Records...), append([]Note{}, out.Notes...), nil
	}
	if !reflect.DeepEqual(one, two) {
		return fmt.Errorf("same input, different output:\n%+v\n%+v", one, two)
	}
	return nil
}
