package group

import (
	"math"
	"slices"
	"unicode/utf8"
)

// commitScratch is where the record of a commit is made.
type commitScratch struct {
	topics     []OffsetsTopic
	partitions []OffsetsPartition
}

// commitScratchMax is how many partitions the scratch space has room for; a
// larger commit allocates its own.
const commitScratchMax = 1024

// take returns empty slices with room for so many elements.
func (s *commitScratch) take(topics, partitions int) ([]OffsetsTopic, []OffsetsPartition) {
	if topics > commitScratchMax || partitions > commitScratchMax {
		return make([]OffsetsTopic, 0, topics), make([]OffsetsPartition, 0, partitions)
	}
	// What the last commit left would keep its strings alive.
	clear(s.topics)
	clear(s.partitions)
	s.topics = slices.Grow(s.topics[:0], topics)
	s.partitions = slices.Grow(s.partitions[:0], partitions)
	return s.topics, s.partitions
}

// keep remembers what was used of the slices that take returned.
func (s *commitScratch) keep(topics []OffsetsTopic, partitions []OffsetsPartition) {
	if cap(topics) == cap(s.topics) && cap(partitions) == cap(s.partitions) {
		s.topics, s.partitions = topics, partitions
	}
}

// stepCommit is OffsetCommit: all partitions that are not refused one by one are
// stored in one record.
func (m *Machine) stepCommit(now Time, ev *Commit) {
	from := m.state()
	code, rule := m.checkCommit(ev)
	if code != None {
		m.note(rule, ev.MemberID, "offset commit refused")
		m.reply(ev.Req, code, nil)
		return
	}
	if m.refuseDiskLow(&ev.Head, ev.MemberID) {
		return
	}
	if rule == O7 {
		m.renewSession(now, ev.MemberID)
	}
	total, refused := m.countCommit(ev.Topics)
	if total > refused {
		m.recordCommit(ev, total-refused)
	}
	m.keep() // O1 begins the group also if nothing is stored
	m.noteFrom(rule, from, ev.MemberID, "offset commit")
	m.replyCommit(ev.Req, ev.MemberID, ev.Topics, total, refused)
}

// refuseDiskLow refuses a commit, transactional or not, while there is no room.
func (m *Machine) refuseDiskLow(head *Head, member string) bool {
	if head.DiskLow {
		m.note(O9, member, "offset commit refused, disk almost full")
		m.reply(head.Req, CoordinatorNotAvailable, nil)
	}
	return head.DiskLow
}

// countCommit counts the partitions of a commit and those of them that are refused.
func (m *Machine) countCommit(topics []CommitTopic) (total, refused int) {
	for i := range topics {
		for j := range topics[i].Partitions {
			total++
			if m.metadataTooLarge(topics[i].Partitions[j].Metadata) {
				refused++
			}
		}
	}
	return total, refused
}

// checkCommit decides whether the request may commit at all, in Kafka's order
// (GroupCoordinatorService and ClassicGroup.validateOffsetCommit).
func (m *Machine) checkCommit(ev *Commit) (Code, Rule) {
	state := m.state()
	switch {
	case state == Dead && ev.Generation < 0:
		return None, O1
	case state == Dead && ev.GroupIDNotFound:
		return GroupIDNotFound, O2
	case state == Dead:
		return IllegalGeneration, O2
	case ev.Generation < 0 && state == Empty:
		return None, O3
	}
	if ev.Generation < 0 && ev.MemberID == "" && ev.InstanceID == nil {
		return UnknownMemberID, O5
	}
	if code := m.checkMember(ev.MemberID, ev.InstanceID, ev.Generation); code != None {
		return code, O4
	}
	if state == CompletingRebalance {
		return RebalanceInProgress, O6
	}
	return None, O7
}

// metadataTooLarge counts as Kafka does, in UTF-16 units.
func (m *Machine) metadataTooLarge(s string) bool {
	limit := m.env.Config.MaxMetadata
	if len(s) <= limit {
		return false // no string has more units than bytes
	}
	units := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		units++
		if r > 0xFFFF {
			units++
		}
	}
	return units > limit
}

// recordCommit stores the partitions that are not refused, n of them.
func (m *Machine) recordCommit(ev *Commit, n int) {
	expire := Time(-1)
	if ev.Retention != -1 {
		expire = explicitExpiry(ev.Wall, Time(ev.Retention))
		m.note(O10, ev.MemberID, "offset commit with a retention of its own")
	}
	m.env.by = committer(ev.Client, ev.MemberID, ev.Generation)
	m.record(Record{Kind: RecordOffsets, Offsets: m.commitOffsets(ev.Topics, n, expire)})
}

// commitOffsets returns the partitions of a commit that are not refused, n of them,
// in scratch space.
func (m *Machine) commitOffsets(commit []CommitTopic, n int, expire Time) []OffsetsTopic {
	topics, partitions := m.env.commit.take(len(commit), n)
	for i := range commit {
		t := &commit[i]
		first := len(partitions)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if m.metadataTooLarge(p.Metadata) {
				continue
			}
			partitions = append(partitions, OffsetsPartition{
				Partition:   p.Partition,
				LeaderEpoch: p.LeaderEpoch,
				Offset:      p.Offset,
				Commit:      m.env.wall,
				Expire:      expire,
				Metadata:    p.Metadata,
			})
		}
		if len(partitions) > first {
			topics = append(topics, OffsetsTopic{Name: t.Name, ID: t.ID, Partitions: slices.Clip(partitions[first:])})
		}
	}
	m.env.commit.keep(topics, partitions)
	return topics
}

func committer(c Client, member string, generation int32) Provenance {
	return Provenance{ClientID: c.ID, Host: c.Host, Principal: c.Principal, MemberID: member, Generation: generation}
}

// explicitExpiry adds without wrapping around. A retention into the past expires
// at once; the time -1, which means none, cannot come out.
func explicitExpiry(wall, retention Time) Time {
	if retention > 0 && wall > math.MaxInt64-retention {
		return math.MaxInt64
	}
	if retention < 0 && wall < math.MinInt64-retention {
		return 0
	}
	return max(wall+retention, 0)
}

func (m *Machine) replyCommit(req ReqID, member string, topics []CommitTopic, total, refused int) {
	switch refused {
	case 0:
		m.reply(req, None, nil)
		return
	case total:
		m.note(O8, member, "offset commit refused, metadata too large")
		m.reply(req, OffsetMetadataTooLarge, nil)
		return
	}
	m.note(O8, member, "offset commit refused in part, metadata too large")
	body := &CommitReply{Codes: make([][]Code, len(topics))}
	all := make([]Code, total)
	for i := range topics {
		partitions := topics[i].Partitions
		body.Codes[i], all = all[:len(partitions):len(partitions)], all[len(partitions):]
		for j := range partitions {
			if m.metadataTooLarge(partitions[j].Metadata) {
				body.Codes[i][j] = OffsetMetadataTooLarge
			}
		}
	}
	m.reply(req, None, body)
}
