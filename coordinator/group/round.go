package group

// generationReserve is how many generations a snapshot reserves beyond its own.
const generationReserve int32 = 100

// absentRetryMin is how long a join phase that only waits for absent static members
// goes on at least, in milliseconds. Without it a rebalance timeout of 0 would make
// a busy loop, as in Kafka.
const absentRetryMin Time = 100

// startRound begins a join phase. It is the only way into PreparingRebalance, and
// it alone clears assignments: nothing of an older generation can be served once
// it ran (design rule 4). The request of member, if any, is already parked.
func (m *Machine) startRound(now Time, member, reason string) {
	l := m.live
	from := l.state
	l.forgotten = from == CompletingRebalance
	for _, x := range l.members {
		x.assignment = nil
		l.settleSync(x)
		if x.syncing {
			m.releaseSync(x, RebalanceInProgress)
			l.arm(x, now, x.sessionTimeout)
		}
	}
	m.transition(PreparingRebalance)
	m.noteFrom(R1, from, member, reason)
	if l.initial = from == Empty; l.initial {
		l.grew = false
		l.window = m.env.Config.InitialRebalanceDelay
		l.budget = max(l.rebalanceTimeout()-l.window, 0)
		l.armJoin(now + l.window)
		return
	}
	if l.everybodyIn() {
		m.completeJoin(now)
	} else {
		l.armJoin(now + l.rebalanceTimeout())
	}
}

// because adds a client's own words to a reason.
func because(reason, words string) string {
	if words == "" {
		return reason
	}
	return reason + ": " + words
}

// everybodyIn tells whether the join phase has nobody left to wait for.
func (l *membership) everybodyIn() bool {
	return l.joining == len(l.members) && len(l.pending) == 0
}

// maybeComplete completes the join phase if there is one and everybody is in. The
// initial delay is not cut short.
func (m *Machine) maybeComplete(now Time) {
	l := m.live
	if l.state == PreparingRebalance && !l.initial && l.everybodyIn() {
		m.completeJoin(now)
	}
}

// endWindow is the end of a window of the initial delay: another one begins if
// somebody came during this one and the first member's rebalance timeout is not
// used up (KAFKA-4925).
func (m *Machine) endWindow(now Time) {
	l := m.live
	if !l.grew || l.budget == 0 {
		m.completeJoin(now)
		return
	}
	l.grew = false
	last := l.window
	l.window = min(m.env.Config.InitialRebalanceDelay, l.budget)
	l.budget = max(l.budget-last, 0)
	l.armJoin(now + l.window)
	m.note(R2, "", "members came during the initial delay, it is extended")
}

// completeJoin ends the join phase: those that joined, and absent static members,
// make up the next generation.
func (m *Machine) completeJoin(now Time) {
	l := m.live
	l.joinDeadline = never
	m.dropAbsent()
	if !m.electLeader() {
		// Only static members are left, and none of them is here.
		l.armJoin(now + max(l.rebalanceTimeout(), absentRetryMin))
		m.note(R6, "", "only absent static members, the join phase goes on")
		return
	}
	l.initial = false
	m.nextGeneration()
	if len(l.members) == 0 {
		l.protocol = nil
		l.subscribe()
		m.transition(Empty)
		m.noteFrom(R4, PreparingRebalance, "", "no members left")
		m.snapshot()
		return
	}
	l.protocol = l.vote()
	l.subscribe()
	m.transition(CompletingRebalance)
	m.noteFrom(R3, PreparingRebalance, l.leader.id, "generation formed")
	m.answerJoins(now)
	l.armSync(now + l.rebalanceTimeout())
}

// dropAbsent removes the dynamic members that did not join. Static members keep
// their place.
func (m *Machine) dropAbsent() {
	l := m.live
	kept := l.members[:0]
	led := l.leader
	for _, x := range l.members {
		switch {
		case x.joining:
		case x.instance == nil:
			m.note(R5, x.id, "member did not rejoin in time")
			l.forget(x)
			if x == led {
				l.leader = nil
			}
			continue
		default:
			m.note(R9, x.id, "absent static member keeps its place")
		}
		kept = append(kept, x)
	}
	clear(l.members[len(kept):])
	l.members = kept
}

// electLeader makes sure that the leader is a member that joined. It returns
// false if there are members but none that joined.
func (m *Machine) electLeader() bool {
	l := m.live
	if l.leader != nil && l.leader.joining || len(l.members) == 0 {
		return true
	}
	for _, x := range l.members {
		if x.joining {
			l.leader = x
			m.note(R10, x.id, "new leader")
			return true
		}
	}
	if l.leader == nil {
		l.leader = l.members[0]
	}
	return false
}

// nextGeneration takes the next generation, and sees to it that none is used
// again after a crash (design rule 10): those up to the snapshot's ceiling may
// have been used by a predecessor, and the ceiling is raised before this process
// passes it.
func (m *Machine) nextGeneration() {
	l := m.live
	next := generationAfter(l.generation)
	if l.recovered {
		l.recovered = false
		next = generationAfter(max(l.generation, m.snap.Ceiling))
		m.note(R8, "", "first generation after a restart")
	}
	l.generation = next
	if m.snap != nil && next > m.snap.Ceiling && len(l.members) > 0 {
		raised := *m.snap
		raised.Ceiling = m.ceiling(next)
		m.record(Record{Kind: RecordMembership, Membership: &raised})
		m.note(R7, "", "generation ceiling raised")
	}
}

// ceiling is what a snapshot reserves from a generation on.
func (m *Machine) ceiling(generation int32) int32 {
	reserve := generationReserve
	if m.env.reserve > 0 {
		reserve = m.env.reserve
	}
	return generationAfter(generation + reserve - 1)
}

// answerJoins answers every parked JoinGroup with the new generation.
func (m *Machine) answerJoins(now Time) {
	l := m.live
	replies := make([]JoinReply, l.joining)
	l.joining = 0
	l.unsynced = len(l.members)
	for _, x := range l.members {
		x.isNew = false
		x.unsynced = true
		if x.joining {
			r := &replies[0]
			replies = replies[1:]
			m.fillJoinReply(r, x, x == l.leader)
			m.reply(x.joinReq, None, r)
			x.joining = false
		}
		l.arm(x, now, x.sessionTimeout)
	}
}
