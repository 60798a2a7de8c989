package group

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"
)

func arg(word string) datadriven.CmdArg {
	if key, value, ok := strings.Cut(word, "="); ok {
		return datadriven.CmdArg{Key: key, Vals: []string{value}}
	}
	return datadriven.CmdArg{Key: word}
}

// step gives an event to the machine and prints what comes of it. kind is "" for
// events that want no answer.
func (s *script) step(ev Event, x *client, kind string) {
	head := ev.Meta()
	head.DiskLow = s.diskLow
	if kind != "" {
		s.lastReq++
		head.Req = s.lastReq
		s.waiting[head.Req] = request{x, kind}
	}
	s.print(ev, s.world.step(s.t, ev))
	if r, ok := s.waiting[head.Req]; ok && kind != "" {
		s.printf("parked %s\n", r)
	}
	s.printState()
}

// stepTick is a step of wait, which prints only what happens.
func (s *script) stepTick(ev *Tick, after Time) {
	out := s.world.step(s.t, ev)
	if len(out.Notes) > 0 {
		s.printf("after %d\n", after)
		s.print(ev, out)
	}
}

func (r request) String() string {
	if r.client == nil {
		return r.kind
	}
	return r.client.name + " " + r.kind
}

func (s *script) print(ev Event, out Output) {
	for _, n := range out.Notes {
		s.printf("note %v", n.Rule)
		if n.Member != "" {
			s.printf(" %s", n.Member)
		}
		s.printf(": %s", n.Reason)
		if n.From != n.To {
			s.printf(" (%v -> %v)", n.From, n.To)
		}
		s.printf("\n")
	}
	for i := range out.Records {
		s.printf("record %s\n", formatRecord(&out.Records[i]))
	}
	for _, r := range out.Replies {
		req, ok := s.waiting[r.Req]
		if !ok {
			s.t.Fatalf("reply to request %d, which does not wait", r.Req)
		}
		delete(s.waiting, r.Req)
		s.printf("reply %s: %s%s\n", req, codeName(r.Code), formatBody(r.Body))
		if req.client != nil {
			req.client.learn(r)
		}
	}
	if _, lost := ev.(*Lost); lost {
		s.waiting = map[ReqID]request{}
	}
}

// learn is what the client makes of a reply.
func (x *client) learn(r Reply) {
	j, ok := r.Body.(*JoinReply)
	switch {
	case ok && r.Code == None:
		if j.MemberID != x.id && x.id != "" {
			x.old = x.id
		}
		x.id, x.generation, x.told = j.MemberID, j.Generation, j.Members
		if j.SkipAssignment {
			x.told = nil
		}
	case ok && r.Code == MemberIDRequired:
		x.id = j.MemberID
	case r.Code == UnknownMemberID && ok:
		x.old, x.id = x.id, ""
	}
}

func (s *script) printState() {
	m := s.world.m
	s.printf("state %v", m.state())
	if l := m.live; l != nil {
		s.printf(" gen=%d", l.generation)
		if len(l.pending) > 0 {
			s.printf(" pending=%d", len(l.pending))
		}
		if l.joinDeadline != never {
			s.printf(" join=%+d", l.joinDeadline-s.world.now)
		}
		if l.syncDeadline != never {
			s.printf(" sync=%+d", l.syncDeadline-s.world.now)
		}
		if next := l.earliest(); next != never {
			s.printf(" next=%+d", next-s.world.now)
		}
	}
	s.printf("\n")
}

func (s *script) printMembers() {
	l := s.world.m.live
	if l == nil {
		s.printf("none\n")
		return
	}
	for _, x := range l.members {
		s.printf("%s", x.id)
		if x.instance != nil {
			s.printf(" instance=%s", *x.instance)
		}
		if x == l.leader {
			s.printf(" leader")
		}
		for _, f := range []struct {
			word string
			is   bool
		}{{" joining", x.joining}, {" syncing", x.syncing}, {" new", x.isNew}, {" unsynced", x.unsynced}} {
			if f.is {
				s.printf("%s", f.word)
			}
		}
		if at := x.sessionDeadline(); at == never {
			s.printf(" session=held")
		} else {
			s.printf(" session=%+d", at-s.world.now)
		}
		s.printf("\n")
	}
	for _, id := range sortedIDs(l.pending) {
		s.printf("%s pending=%+d\n", id, l.pending[id]-s.world.now)
	}
}

// crash loses everything but the records.
func (s *script) crash() {
	for _, req := range slices.Sorted(mapKeys(s.waiting)) {
		s.printf("lost %s\n", s.waiting[req])
	}
	s.waiting = map[ReqID]request{}
	s.print(nil, s.world.crash(s.t))
	s.printState()
}

func formatRecord(rec *Record) string {
	var b strings.Builder
	switch rec.Kind {
	case RecordMembership:
		m := rec.Membership
		fmt.Fprintf(&b, "membership gen=%d ceiling=%d type=%s", m.Generation, m.Ceiling, m.ProtocolType)
		if m.Protocol != nil {
			fmt.Fprintf(&b, " protocol=%s leader=%s", *m.Protocol, m.Leader)
		}
		for _, x := range m.Members {
			fmt.Fprintf(&b, " %s=%s", x.MemberID, x.Assignment)
		}
	case RecordGroupDeleted:
		b.WriteString("group deleted")
	case RecordResolved:
		fmt.Fprintf(&b, "resolved %s commit=%t", formatTxn(&rec.Txn), rec.Commit)
	default:
		b.WriteString(map[RecordKind]string{
			RecordOffsets: "offsets", RecordOffsetsDeleted: "offsets deleted",
			RecordPending: "pending " + formatTxn(&rec.Txn), RecordPendingDeleted: "pending deleted " + formatTxn(&rec.Txn),
		}[rec.Kind])
		for _, t := range rec.Offsets {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, " %s-%d", t.Name, p.Partition)
				if rec.Kind == RecordOffsets || rec.Kind == RecordPending {
					formatOffset(&b, p, rec.Wall)
				}
			}
		}
	}
	if rec.By.MemberID != "" || rec.By.ClientID != "" {
		fmt.Fprintf(&b, " by %s", rec.By.ClientID)
	}
	return b.String()
}

func formatBody(body Body) string {
	var b strings.Builder
	switch r := body.(type) {
	case nil:
	case *JoinReply:
		if r.Generation >= 0 {
			fmt.Fprintf(&b, " gen=%d", r.Generation)
		}
		if r.ProtocolType != nil {
			fmt.Fprintf(&b, " type=%s", *r.ProtocolType)
		}
		if r.ProtocolName != nil {
			fmt.Fprintf(&b, " protocol=%s", *r.ProtocolName)
		}
		if r.Leader != "" {
			fmt.Fprintf(&b, " leader=%s", r.Leader)
		}
		fmt.Fprintf(&b, " id=%s", strconv.Quote(r.MemberID))
		for _, x := range r.Members {
			fmt.Fprintf(&b, " %s", x.MemberID)
			if x.InstanceID != nil {
				fmt.Fprintf(&b, "/%s", *x.InstanceID)
			}
			fmt.Fprintf(&b, ":%s", printable(x.Metadata))
		}
		if r.SkipAssignment {
			b.WriteString(" skip")
		}
	case *SyncReply:
		if r.ProtocolName != nil {
			fmt.Fprintf(&b, " type=%s protocol=%s", *r.ProtocolType, *r.ProtocolName)
		}
		fmt.Fprintf(&b, " %q", r.Assignment)
	case *LeaveReply:
		for _, c := range r.Codes {
			fmt.Fprintf(&b, " %s", codeName(c))
		}
	case *CommitReply:
		for _, t := range r.Codes {
			for _, c := range t {
				fmt.Fprintf(&b, " %s", codeName(c))
			}
		}
	case *FetchReply:
		formatFetch(&b, r)
	case *DeleteOffsetsReply:
		for _, t := range r.Codes {
			for _, c := range t {
				fmt.Fprintf(&b, " %s", codeName(c))
			}
		}
	case *DescribeReply:
		fmt.Fprintf(&b, " %v type=%q protocol=%q", r.State, r.ProtocolType, r.Protocol)
		for _, x := range r.Members {
			fmt.Fprintf(&b, " %s:%s=%s", x.MemberID, printable(x.Metadata), x.Assignment)
		}
	case *ListReply:
		fmt.Fprintf(&b, " %s %v type=%q", r.GroupID, r.State, r.ProtocolType)
	default:
		fmt.Fprintf(&b, " %T", r)
	}
	return b.String()
}

// printable shows metadata that is text, and the size of what is not.
func printable(b []byte) string {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return fmt.Sprintf("<%d bytes>", len(b))
		}
	}
	return string(b)
}
