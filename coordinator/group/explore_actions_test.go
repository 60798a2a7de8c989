package group

import (
	"fmt"
	"slices"
	"strconv"
)

// xaction is one thing that can happen next.
type xaction struct {
	kind xkind
	id   string // the member or pending id concerned
}

type xkind uint8

const (
	xnew       xkind = iota // a dynamic member, without the handshake
	xhandshake              // a dynamic member asks for an id
	xpendingIn              // an id handed out joins
	xstatic                 // the static member joins without an id
	xrejoin                 // a member joins again, unchanged
	xchanged                // a member joins again with other metadata
	xsync                   // a member syncs the present generation
	xleave                  // a member leaves, or an id is given back
	xkick                   // the static member is removed by its instance id
	xsession                // a session timer fires
	xpending                // the timer of an id handed out fires
	xjoinTimer              // the join timer fires
	xsyncTimer              // the sync timer fires
	xcrash                  // all is lost but the records
	xexpire                 // the expiry of offsets runs
)

// xlimits are the bounds of an exploration.
type xlimits struct {
	members, pending, crashes int
	// maxSize is group.max.size, 0 for none.
	maxSize int
}

func (lim xlimits) String() string {
	s := fmt.Sprintf("%d members, one of them static, %d pending ids, %d crashes, any number of lost, late and duplicated requests",
		lim.members, lim.pending, lim.crashes)
	if lim.maxSize > 0 {
		s += ", group.max.size " + strconv.Itoa(lim.maxSize)
	}
	return s
}

// actions lists what can happen next.
func (w *xworld) actions(lim xlimits) []xaction {
	var dst []xaction
	add := func(kind xkind, id string) { dst = append(dst, xaction{kind, id}) }
	l := w.m.live
	members := 0
	if l != nil {
		members = len(l.members)
	}
	static := l != nil && l.findInstance(xinstance) != nil
	if members < lim.members-1 || members < lim.members && static {
		add(xnew, "")
	}
	if static || members < lim.members {
		add(xstatic, "")
	}
	if l == nil || len(l.pending) < lim.pending {
		add(xhandshake, "")
	}
	if w.crashes < lim.crashes {
		add(xcrash, "")
	}
	if w.m.state() == Empty {
		add(xexpire, "")
	}
	if l == nil {
		return dst
	}
	// Ids handed out are all alike.
	if ids := sortedIDs(l.pending); len(ids) > 0 {
		if members < lim.members-1 || members < lim.members && static {
			add(xpendingIn, ids[0])
		}
		add(xleave, ids[0])
		add(xpending, ids[0])
	}
	for _, x := range l.members {
		add(xrejoin, x.id)
		add(xchanged, x.id)
		add(xsync, x.id)
		add(xleave, x.id)
		if x.sessionDeadline() != never {
			add(xsession, x.id)
		}
		if x.instance != nil {
			add(xkick, "")
		}
	}
	if l.joinDeadline != never {
		add(xjoinTimer, "")
	}
	if l.syncDeadline != never {
		add(xsyncTimer, "")
	}
	return dst
}

// xoffers are what members offer, at first and changed.
var xoffers = [2][]Protocol{{{"range", []byte("m")}}, {{"range", []byte("M")}}}

// join is a JoinGroup.
func (w *xworld) join(id string, changed bool) *Join {
	j := &Join{
		MemberID: id, CanSkipAssignment: true, SessionTimeout: 10000, RebalanceTimeout: 6000,
		ProtocolType: "consumer", Protocols: xoffers[0],
	}
	if w.m.live != nil {
		if x := w.m.live.find(id); x != nil {
			j.Protocols = x.protocols
			if changed {
				j.Protocols = xoffers[1-slices.IndexFunc(xoffers[:], func(p []Protocol) bool { return sameProtocols(p, x.protocols) })]
			}
			j.InstanceID = x.instance
		}
	}
	return j
}

// newID names a dynamic member that nobody knows yet.
func (w *xworld) newID() string {
	w.names++
	return "M" + strconv.Itoa(w.names) + "-1"
}

// syncOf is the SyncGroup of a member. The leader assigns to all that it was told of.
func (w *xworld) syncOf(x *member) *Sync {
	l := w.m.live
	s := &Sync{MemberID: x.id, InstanceID: x.instance, Generation: l.generation}
	if x == l.leader {
		for _, id := range w.list {
			s.Assignments = append(s.Assignments, Assignment{id, fmt.Appendf(nil, "%s@%d", id, l.generation)})
		}
	}
	return s
}

// do carries out an action.
func (w *xworld) do(a xaction, env *Env) error {
	l := w.m.live
	var ev Event
	switch a.kind {
	case xnew, xhandshake:
		j := w.join("", false)
		j.NewID, j.RequireMemberID = w.newID(), a.kind == xhandshake
		ev = j
	case xpendingIn, xrejoin, xchanged:
		ev = w.join(a.id, a.kind == xchanged)
		if isStatic(a.id) {
			w.statics++ // a script names each join of a client
		}
	case xstatic:
		w.statics++
		j := w.join("", false)
		j.NewID, j.RequireMemberID, j.InstanceID = "S-"+strconv.Itoa(w.statics), true, &xinstance
		ev = j
	case xsync:
		ev = w.syncOf(l.find(a.id))
	case xleave:
		item := LeaveMember{MemberID: a.id}
		if isStatic(a.id) {
			item.InstanceID = &xinstance
		}
		ev = &Leave{Members: []LeaveMember{item}}
	case xkick:
		ev = &Leave{Members: []LeaveMember{{InstanceID: &xinstance}}}
	case xcrash:
		return w.crash(env)
	case xexpire:
		_, err := w.step(&ExpireOffsets{})
		return err
	default:
		w.m.dueNow(timerOf[a.kind], a.id, 0)
		_, err := w.step(&Tick{})
		return err
	}
	_, err := w.ask(ev)
	return err
}

var timerOf = map[xkind]int{xsession: sessionTimer, xpending: pendingTimer, xjoinTimer: joinTimer, xsyncTimer: syncTimer}

// dueNow moves one deadline to now, past all others.
func (m *Machine) dueNow(kind int, id string, now Time) {
	l := m.live
	switch kind {
	case sessionTimer:
		x := l.find(id)
		x.heard = now - Time(x.armed)
	case pendingTimer:
		l.pending[id] = now
	case joinTimer:
		l.joinDeadline = now
	case syncTimer:
		l.syncDeadline = now
	}
	l.bound = now
}

// script is the action as a line of a script, told before it is carried out.
func (a xaction) script(w *xworld) string {
	name := func(id string) string {
		if isStatic(id) {
			return "S id=" + id
		}
		return id[:len(id)-2] + " id=" + id // without -1
	}
	switch a.kind {
	case xnew:
		return fmt.Sprintf("join M%d v=3 rebalance=6000", w.names+1)
	case xhandshake:
		return fmt.Sprintf("join M%d v=9 rebalance=6000", w.names+1)
	case xpendingIn, xrejoin:
		return "join " + name(a.id)
	case xstatic:
		return "restart S\njoin S v=9 instance=s rebalance=6000"
	case xchanged:
		return "join " + name(a.id) + " flip=metadata"
	case xsync:
		return fmt.Sprintf("sync %s gen=%d", name(a.id), w.m.live.generation)
	case xleave:
		if isStatic(a.id) {
			return "leave pair=(" + a.id + ",s)"
		}
		return "leave id=" + a.id
	case xkick:
		return "leave instance=s"
	case xsession:
		return "timer session=" + a.id
	case xpending:
		return "timer pending=" + a.id
	case xjoinTimer:
		return "timer phase=join"
	case xsyncTimer:
		return "timer phase=sync"
	case xcrash:
		return "crash"
	case xexpire:
		return "expire"
	}
	panic("unknown action")
}
