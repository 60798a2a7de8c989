package group

import "slices"

// never is a deadline that is not armed.
const never Time = 1<<63 - 1

// newMemberTimeout is how long a member that never was in a generation may stay
// parked, in milliseconds (Kafka's NEW_MEMBER_JOIN_TIMEOUT_MS, not configurable).
const newMemberTimeout int32 = 5 * 60 * 1000

// indexMin is the number of members from which on they are found through maps; a
// smaller group is searched, which is as fast and takes no memory.
const indexMin = 9

// membership is the soft state of a group's membership. Only Step changes it;
// nothing of it survives a restart but what [Machine.snap] has.
type membership struct {
	state State
	// grew: a member was added since the last window of the initial delay began.
	grew bool
	// initial: the join phase began from Empty, so it runs in windows of
	// group.initial.rebalance.delay.ms and joins do not end it early.
	initial bool
	// recovered: made from a snapshot with members; the next join phase passes the
	// snapshot's ceiling, because generations above the snapshot's may be in use.
	recovered bool
	// forgotten: the assignments of the last snapshot are no longer shown, since a
	// round that had begun after it was given up.
	forgotten bool
	// topicsKnown: topics holds what the members subscribed to when the generation
	// was formed or loaded; they are sorted.
	topicsKnown bool
	generation  int32
	// joining counts the members with a parked JoinGroup, unsynced those that owe
	// the generation a SyncGroup.
	joining, unsynced int
	// since is the wall time at which state was entered, 0 if not known.
	since Time
	// protocolType is nil until the first member is added and stays when the group
	// becomes Empty. protocol is the selected one, nil while there is none. The
	// strings are never changed: replies point to them.
	protocolType, protocol *string
	// leader is nil exactly if there are no members.
	leader *member
	// members are in the order in which they joined the group.
	members []*member
	// byID and byInstance index members once there are indexMin of them.
	byID, byInstance map[string]*member
	// protocols counts for each protocol name the members that offer it.
	protocols tally
	// pending are the ids handed out with MEMBER_ID_REQUIRED that have not joined,
	// each with the time at which it is forgotten; nil if there are none.
	pending map[string]Time
	topics  []string

	// joinDeadline ends the join phase (or a window of the initial delay), and
	// syncDeadline evicts those that did not sync; never if not armed.
	joinDeadline, syncDeadline Time
	// window is the length of the current window of the initial delay, budget what
	// is left for later ones.
	window, budget Time
	// bound is a lower bound of all deadlines.
	bound Time
}

// member is one member. A member has a parked join only in PreparingRebalance
// and a parked sync only in CompletingRebalance.
type member struct {
	id       string
	instance *string
	// stored is the id that the last snapshot has for the member, if it was replaced
	// since then.
	stored string
	// clientID and clientHost are those of the member's first join.
	clientID, clientHost             string
	sessionTimeout, rebalanceTimeout int32
	// protocols is replaced, never changed: replies and snapshots point to it.
	protocols []Protocol
	// assignment is that of the current generation, set in Stable only.
	assignment []byte
	// heard is when the session timer was armed last, for armed milliseconds.
	heard Time
	armed int32
	// isNew: the member was never in a generation, and its session timer runs
	// although its join is parked.
	isNew bool
	// unsynced: the member owes this generation a SyncGroup.
	unsynced bool
	// joining and syncing: joinReq or syncReq is parked.
	joining, syncing bool
	joinReq, syncReq ReqID
}

// sessionDeadline is when the member expires; a parked request of a member that
// is not new holds the timer.
func (x *member) sessionDeadline() Time {
	if (x.joining || x.syncing) && !x.isNew {
		return never
	}
	return x.heard + Time(x.armed)
}

// exists tells whether the group is known.
func (m *Machine) exists() bool {
	return m.live != nil || m.snap != nil || !m.off.empty() || !m.pend.empty() || m.kept
}

// state is the state of the group: Dead if it is unknown, Empty if it has
// offsets only.
func (m *Machine) state() State {
	switch {
	case m.live != nil:
		return m.live.state
	case m.exists():
		return Empty
	}
	return Dead
}

// protocolType is the group's protocol type, "" if it never had a member.
func (m *Machine) protocolType() string {
	if m.live == nil || m.live.protocolType == nil {
		return ""
	}
	return *m.live.protocolType
}

// emptySince is the wall time at which the group became Empty, false if it is
// not Empty or the time is not known.
func (m *Machine) emptySince() (Time, bool) {
	if m.live == nil || m.live.state != Empty || m.live.since == 0 {
		return 0, false
	}
	return m.live.since, true
}

// checkMember says whether a request of a member is the current one's: none,
// UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION, in Kafka's order.
func (m *Machine) checkMember(memberID string, instanceID *string, generation int32) Code {
	_, code := m.current(memberID, instanceID)
	if code == None && generation != m.live.generation {
		return IllegalGeneration
	}
	return code
}

// current returns the member of a request, or UNKNOWN_MEMBER_ID or
// FENCED_INSTANCE_ID (Kafka's ClassicGroup.validateMember).
func (m *Machine) current(memberID string, instanceID *string) (*member, Code) {
	if m.live == nil {
		return nil, UnknownMemberID
	}
	if instanceID != nil {
		switch x := m.live.findInstance(*instanceID); {
		case x == nil:
			return nil, UnknownMemberID
		case x.id != memberID:
			return nil, FencedInstanceID
		}
	}
	x := m.live.find(memberID)
	if x == nil {
		return nil, UnknownMemberID
	}
	return x, None
}

// renewSession re-arms the session timer of a member that was heard.
func (m *Machine) renewSession(now Time, memberID string) {
	if x := m.live.find(memberID); x != nil {
		m.live.arm(x, now, x.sessionTimeout)
	}
}

// subscribedTo tells whether the members subscribe to a topic, as far as that is
// known: it never is for protocol types other than "consumer".
func (m *Machine) subscribedTo(topic string) (subscribed, known bool) {
	if m.live == nil || !m.live.topicsKnown {
		return false, false
	}
	_, found := slices.BinarySearch(m.live.topics, topic)
	return found, true
}

// deleteGroup removes the group with all it has, ids handed out included. It must
// be Empty.
func (m *Machine) deleteGroup() {
	if m.snap != nil || !m.off.empty() || !m.pend.empty() {
		m.record(Record{Kind: RecordGroupDeleted})
	}
	m.live = nil
	m.kept = false
}

// open returns the membership and begins it if there is none. One that nothing
// comes of is dropped at the end of the step.
func (m *Machine) open() *membership {
	if m.live == nil {
		m.live = &membership{state: Empty, joinDeadline: never, syncDeadline: never, bound: never}
	}
	return m.live
}

// legal lists the states that may follow each state. Stable is entered without a
// predecessor only by [Loaded].
var legal = [...][]State{
	Empty:               {PreparingRebalance},
	PreparingRebalance:  {CompletingRebalance, Empty},
	CompletingRebalance: {Stable, PreparingRebalance},
	Stable:              {PreparingRebalance},
}

// transition changes the state of the group.
func (m *Machine) transition(to State) {
	l := m.live
	invariant(slices.Contains(legal[l.state], to), "illegal transition from "+l.state.String()+" to "+to.String())
	l.state, l.since = to, m.env.wall
}

// find returns a member by its id, nil if there is none.
func (l *membership) find(id string) *member {
	if l.byID != nil {
		return l.byID[id]
	}
	for _, x := range l.members {
		if x.id == id {
			return x
		}
	}
	return nil
}

// findInstance returns a member by its instance id, nil if there is none.
func (l *membership) findInstance(instance string) *member {
	if l.byID != nil {
		return l.byInstance[instance]
	}
	for _, x := range l.members {
		if x.instance != nil && *x.instance == instance {
			return x
		}
	}
	return nil
}

// insert adds a member. The first one sets the group's protocol type and leads.
func (l *membership) insert(x *member, protocolType string) {
	if len(l.members) == 0 && (l.protocolType == nil || *l.protocolType != protocolType) {
		l.protocolType = &protocolType
	}
	if l.leader == nil {
		l.leader = x
	}
	l.members = append(l.members, x)
	l.protocols.add(x.protocols)
	if l.byID != nil {
		l.index(x)
	} else if len(l.members) >= indexMin {
		l.byID = make(map[string]*member, 2*indexMin)
		for _, x := range l.members {
			l.index(x)
		}
	}
}

func (l *membership) index(x *member) {
	l.byID[x.id] = x
	if x.instance != nil {
		if l.byInstance == nil {
			l.byInstance = make(map[string]*member)
		}
		l.byInstance[*x.instance] = x
	}
}

// remove takes a member out of the group; its requests must have been answered.
// If it led, the next in line leads until the join phase ends.
func (l *membership) remove(x *member) {
	i := slices.Index(l.members, x)
	l.members = slices.Delete(l.members, i, i+1)
	l.forget(x)
	if l.leader == x {
		l.leader = nil
		if len(l.members) > 0 {
			l.leader = l.members[0]
		}
	}
}

// forget removes the traces of a member that was taken off the list.
func (l *membership) forget(x *member) {
	l.protocols.remove(x.protocols)
	if l.byID != nil {
		delete(l.byID, x.id)
		if x.instance != nil {
			delete(l.byInstance, *x.instance)
		}
	}
	if x.joining {
		l.joining--
	}
	l.settleSync(x)
}

// settleSync notes that a member owes no SyncGroup any more; the last one ends
// the sync timer.
func (l *membership) settleSync(x *member) {
	if !x.unsynced {
		return
	}
	x.unsynced = false
	if l.unsynced--; l.unsynced == 0 {
		l.syncDeadline = never
	}
}

// rename gives a static member a new id.
func (l *membership) rename(x *member, id string) {
	if l.byID != nil {
		delete(l.byID, x.id)
		l.byID[id] = x
	}
	if x.stored == "" {
		x.stored = x.id
	}
	x.id = id
}

// update takes over what a rejoining member may change.
func (l *membership) update(x *member, ev *Join) {
	l.protocols.remove(x.protocols)
	x.protocols = ev.Protocols
	l.protocols.add(x.protocols)
	x.sessionTimeout, x.rebalanceTimeout = ev.SessionTimeout, ev.RebalanceTimeout
}

// takePending forgets an id that was handed out and tells whether there was one.
func (l *membership) takePending(id string) bool {
	if _, ok := l.pending[id]; !ok {
		return false
	}
	delete(l.pending, id)
	if len(l.pending) == 0 {
		l.pending = nil
	}
	return true
}

// rebalanceTimeout is the longest of the members', 0 without members.
func (l *membership) rebalanceTimeout() Time {
	longest := int32(0)
	for _, x := range l.members {
		longest = max(longest, x.rebalanceTimeout)
	}
	return Time(longest)
}
