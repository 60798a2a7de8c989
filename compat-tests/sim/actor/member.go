package actor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-mq/rollcall/compat-tests/sim/history"
	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// Static is the instance id of static members.
const Static = "static"

// member is a consumer of the classic protocol that gives up what it has before it
// joins anew.
type member struct {
	client
	id         string
	instance   *string
	session    int32
	generation int32
	members    []group.JoinMember // what the leader was told
	joined     int64              // when it asked to join
	owned      []history.Slot
}

// Consumer is a member that lives, dies and comes back. Static members have an
// instance id.
func Consumer(w World, name, groupID string, instance *string) {
	m := &member{client: client{World: w, name: name, group: groupID}, instance: instance}
	m.session = int32((6000 + w.Rand().IntN(6000)) * w.Pace())
	m.nap(0, 5000)
	for !w.Over() {
		if m.join() && m.sync() {
			m.work()
		}
	}
	m.hangUp()
}

// joinPatience is how long a member waits for a rebalance to end. Some clients wait
// for less than the rebalance may take.
func (m *member) joinPatience() time.Duration {
	if m.chance(5) {
		return time.Duration(m.Pace()) * 3 * time.Second
	}
	return time.Duration(m.Pace()) * 30 * time.Second
}

// join asks to take part in the next generation, and tells whether it does.
func (m *member) join() bool {
	m.owned = nil
	m.joined = m.History().Now()
	metadata := "v1"
	if m.chance(5) {
		metadata = "v2" // it subscribes to something else
	}
	r, ok := m.do(&group.Join{
		MemberID: m.id, InstanceID: m.instance, RequireMemberID: m.chance(80),
		SessionTimeout: m.session, RebalanceTimeout: m.session + int32(4000*m.Pace()),
		ProtocolType: "consumer", Protocols: []group.Protocol{{Name: "range", Metadata: []byte(metadata)}},
	}, nil, m.joinPatience())
	if !ok {
		return false
	}
	body, _ := r.Body.(*group.JoinReply)
	switch r.Code {
	case group.None:
		m.id, m.generation, m.members = body.MemberID, body.Generation, nil
		if body.Leader == m.id {
			m.members = body.Members
			m.lead()
		}
		return true
	case group.MemberIDRequired:
		m.id = body.MemberID
		return false
	case group.FencedInstanceID:
		m.nap(5000, 20_000) // another process has taken its place; it tries later
		m.id = ""
	default:
		m.refused(r.Code)
	}
	return false
}

// lead writes down whom the member leads. Older versions of the protocol do not tell
// that a member is static, but its id begins with the instance id.
func (m *member) lead() {
	l := history.Lead{Group: m.group, Member: m.id, Generation: m.generation, Joined: m.joined}
	for _, x := range m.members {
		if x.InstanceID == nil && !strings.HasPrefix(x.MemberID, Static+"-") {
			l.Members = append(l.Members, x.MemberID)
		}
	}
	m.History().Lead(l)
}

// refused does what a client does after an error.
func (m *member) refused(code group.Code) {
	switch code {
	case group.UnknownMemberID, group.FencedInstanceID:
		m.id = ""
		m.owned = nil
	case group.IllegalGeneration, group.RebalanceInProgress:
		m.owned = nil
	default:
		m.nap(50, 1000)
	}
}

// sync asks for the assignment, as the leader with one for everybody, and tells
// whether the member has one.
func (m *member) sync() bool {
	if m.chance(5) {
		m.nap(1000, 15_000) // it takes its time, or dies
	}
	ev := &group.Sync{MemberID: m.id, InstanceID: m.instance, Generation: m.generation}
	if len(m.members) > 0 {
		ev.Assignments = m.assign()
	}
	again := *ev
	r, ok := m.do(ev, nil, m.joinPatience())
	if !ok && m.chance(60) { // It asks again, maybe while the first one is still held.
		r, ok = m.do(&again, nil, m.joinPatience())
	}
	switch {
	case !ok:
		return false
	case r.Code != group.None:
		m.refused(r.Code)
		return false
	}
	body := r.Body.(*group.SyncReply)
	if len(body.Assignment) == 0 {
		return true // The leader has left it out.
	}
	c := history.Claim{Group: m.group, Member: m.id, Owner: m.id, Generation: m.generation, Joined: m.joined}
	if m.instance != nil {
		c.Owner = *m.instance
	}
	var generation int32
	var err error
	if c.Round, generation, c.Slots, err = parse(string(body.Assignment)); err != nil || generation != m.generation {
		m.History().Problem("group %s: %s asked for its assignment in generation %d and got %q", m.group, m.id, m.generation, body.Assignment)
		return false
	}
	m.History().Claim(c)
	m.owned = c.Slots
	return true
}

// assign deals the slots out. It may forget a member, and sometimes finds nothing
// for one.
func (m *member) assign() (all []group.Assignment) {
	round := fmt.Sprintf("%s@%d#%d", m.id, m.generation, m.History().Now())
	n := len(m.members)
	for i, to := range m.members {
		if n > 1 && m.chance(3) {
			continue
		}
		text := fmt.Sprintf("%s %d", round, m.generation)
		for j := i; j < len(Slots); j += n {
			text += fmt.Sprintf(" %s/%d", Slots[j].Topic, Slots[j].Partition)
		}
		all = append(all, group.Assignment{MemberID: to.MemberID, Bytes: []byte(text)})
	}
	return all
}

// parse reads an assignment.
func parse(text string) (round string, generation int32, slots []history.Slot, err error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return "", 0, nil, fmt.Errorf("%q has no round", text)
	}
	g, err := strconv.Atoi(words[1])
	if err != nil {
		return "", 0, nil, err
	}
	for _, w := range words[2:] {
		topic, partition, _ := strings.Cut(w, "/")
		p, err := strconv.Atoi(partition)
		if err != nil {
			return "", 0, nil, err
		}
		slots = append(slots, history.Slot{Topic: topic, Partition: int32(p)})
	}
	return words[0], int32(g), slots, nil
}

// work is the life of a member between two rebalances. It begins where the one
// before it has stopped.
func (m *member) work() {
	if len(m.owned) > 0 && !m.fetch(m.owned) && m.chance(50) {
		return
	}
	for !m.Over() {
		m.nap(200, 2500)
		var code group.Code
		ok := true
		switch p := m.Rand().IntN(100); {
		case p < 45 && len(m.owned) > 0:
			code, ok = m.burst(m, m.owned)
		case p < 50 && len(m.owned) > 0:
			m.fetch(m.owned)
		case p < 53:
			m.nap(10_000, 30_000) // It hangs, and does not know that time has passed.
			if len(m.owned) > 0 {
				code, ok = m.burst(m, m.owned)
			}
		case p < 55:
			m.leave()
			return
		case p < 56: // Its process is killed and started again.
			m.hangUp()
			m.id = ""
			m.nap(100, 8000)
			return
		case p < 57:
			m.hangUp()
		default:
			var r group.Reply
			r, ok = m.do(&group.Heartbeat{MemberID: m.id, InstanceID: m.instance, Generation: m.generation}, nil, requestTimeout)
			code = r.Code
		}
		switch code {
		case group.RebalanceInProgress, group.IllegalGeneration, group.UnknownMemberID, group.FencedInstanceID:
			if !ok {
				continue
			}
			m.refused(code)
			return
		}
	}
}

// leave leaves the group, and comes back later.
func (m *member) leave() {
	id := m.id
	m.owned, m.id = nil, ""
	m.do(&group.Leave{Members: []group.LeaveMember{{MemberID: id, InstanceID: m.instance}}}, nil, requestTimeout)
	m.nap(0, 10_000)
}
