package group

// State is the state of a group, with Kafka's names.
type State uint8

// The states of a group. Dead is what an unknown group is said to be in.
const (
	Dead State = iota
	Empty
	PreparingRebalance
	CompletingRebalance
	Stable
)

// String returns the name that goes on the wire.
func (s State) String() string {
	return [...]string{"Dead", "Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}[s]
}

// Env is what machines of one shard share: configuration and scratch space. Like
// the machines it belongs to one goroutine.
type Env struct {
	Config Config
	// reserve replaces generationReserve if it is not 0: a test that looks at every
	// state cannot afford a hundred generations in each.
	reserve int32

	// out is what the current step has produced so far. Its slices are reused by
	// the next step.
	out Output
	// wall and by belong to the event being stepped; records take them.
	wall Time
	by   Provenance
	// commit is where a commit's record is made, rows where a checkpoint's rows
	// are encoded.
	commit commitScratch
	rows   []byte
}

// Machine is one group.
type Machine struct {
	env *Env
	id  string

	// off is the hard state of the offsets; only Apply changes it.
	off offsets
	// pend is the hard state of pending offsets, nil if there are none.
	pend *pendings
	// snap is the hard state of the membership: the last snapshot, nil if there
	// is none. It is replaced, never changed. snapDirty is set when it is, and
	// cleared by a checkpoint.
	snap      *Membership
	snapDirty bool
	// live is the soft state of the membership, nil if there is none: an unknown
	// group, or one that has offsets only.
	live *membership
	// kept is soft state: the group holds nothing but exists all the same until the
	// next run of the expiry, as in Kafka. See keep.
	kept bool
}

// New returns the machine of a group that does not exist yet.
func New(env *Env, id string) *Machine { return &Machine{env: env, id: id} }

// Step decides what an event does. It changes hard state only through Apply.
func (m *Machine) Step(now Time, ev Event) Output {
	head := ev.Meta()
	m.env.begin(head)
	switch ev := ev.(type) {
	case *Heartbeat:
		m.stepHeartbeat(now, ev)
	case *Commit:
		m.stepCommit(now, ev)
	case *TxnCommit:
		m.stepTxnCommit(ev)
	case *Resolve:
		m.stepResolve(ev)
	case *Fetch:
		m.stepFetch(now, ev)
	case *Join:
		m.stepJoin(now, ev)
	case *Sync:
		m.stepSync(now, ev)
	case *Leave:
		m.stepLeave(now, ev)
	case *Tick:
		m.stepTick(now, ev)
	case *Describe:
		m.stepDescribe(ev)
	case *List:
		m.stepList(ev)
	case *DeleteOffsets:
		m.stepDeleteOffsets(now, ev)
	case *Reset:
		m.stepReset(now, ev)
	case *DeleteGroup:
		m.stepDeleteGroup(now, ev)
	case *TopicDeleted:
		m.stepTopicDeleted(ev)
	case *CheckTopics:
		m.stepCheckTopics(ev)
	case *CheckTransactions:
		m.stepCheckTransactions(ev)
	case *ExpireOffsets:
		m.stepExpireOffsets(ev)
	case *Checkpoint:
		m.stepCheckpoint()
	case *Loaded:
		m.stepLoaded(now)
	case *Lost:
		m.stepLost()
	default:
		invariant(false, "unknown event")
	}
	m.dropEmpty()
	if checkAlways {
		if err := m.Check(); err != nil {
			invariant(false, err.Error())
		}
	}
	m.env.out.Gone = !m.exists() && !m.snapDirty && !m.off.dirty && (m.pend == nil || !m.pend.dirty)
	return m.env.out
}

// dropEmpty ends a membership that never had a generation and has nothing left:
// the group has offsets only, or nothing until the expiry of offsets removes it.
func (m *Machine) dropEmpty() {
	if l := m.live; l != nil && l.state == Empty && m.snap == nil && len(l.pending) == 0 {
		m.live = nil
		m.keep()
	}
}

// begin empties the scratch space for the next step.
func (e *Env) begin(head *Head) {
	e.out = Output{
		Records: reuse(e.out.Records),
		Replies: reuse(e.out.Replies),
		Notes:   reuse(e.out.Notes),
		Rows:    reuse(e.out.Rows),
	}
	e.wall = head.Wall
	e.by = Provenance{}
	if e.rows = e.rows[:0]; cap(e.rows) > rowScratchMax {
		e.rows = nil
	}
}

// scratchMax is the number of replies, notes or records whose space is kept for
// later steps: a round of a large group should not stay in memory for ever.
const scratchMax = 1024

// reuse returns the space of a slice without what was in it.
func reuse[T any](s []T) []T {
	if cap(s) > scratchMax {
		return nil
	}
	clear(s)
	return s[:0]
}

// reply answers a request. Zero is nobody's request.
func (m *Machine) reply(req ReqID, code Code, body Body) {
	if req != 0 {
		m.env.out.Replies = append(m.env.out.Replies, Reply{Req: req, Code: code, Body: body})
	}
}

// note says that a rule acted and left the group in the state it was in.
func (m *Machine) note(rule Rule, member, reason string) {
	s := m.state()
	m.noteFrom(rule, s, member, reason)
}

// noteFrom says that a rule acted and took the group from the given state to the
// one it is in now.
func (m *Machine) noteFrom(rule Rule, from State, member, reason string) {
	n := Note{Rule: rule, From: from, To: m.state(), Member: member, Reason: reason}
	if m.live != nil {
		n.Generation = m.live.generation
	}
	m.env.out.Notes = append(m.env.out.Notes, n)
}

// record applies a record and hands it out. Wall and By are those of the event.
func (m *Machine) record(rec Record) {
	rec.Wall, rec.By = m.env.wall, m.env.by
	m.env.out.Records = append(m.env.out.Records, rec)
	m.Apply(&m.env.out.Records[len(m.env.out.Records)-1])
}

// Apply changes hard state as the record says.
func (m *Machine) Apply(rec *Record) {
	switch rec.Kind {
	case RecordOffsets:
		m.applyOffsets(rec)
	case RecordOffsetsDeleted:
		m.applyOffsetsDeleted(rec)
	case RecordMembership:
		m.applyMembership(rec)
	case RecordGroupDeleted:
		m.applyGroupDeleted()
	case RecordPending:
		m.applyPending(rec)
	case RecordResolved:
		m.applyResolved(rec)
	case RecordPendingDeleted:
		m.applyPendingDeleted(rec)
	default:
		invariant(false, "unknown record kind")
	}
}

func (m *Machine) applyMembership(rec *Record) {
	m.snap = rec.Membership
	m.snapDirty = true
}

func (m *Machine) applyGroupDeleted() {
	m.snap = nil
	m.snapDirty = true
	m.off.clear()
	if m.pend != nil {
		m.pend.clear()
	}
}

// invariant panics if a condition that only a bug can break does not hold.
func invariant(ok bool, what string) {
	if !ok {
		panic("coordinator/group: " + what)
	}
}
