package api

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// fetchSessionPartsMax bounds the partitions of all sessions together.
	fetchSessionPartsMax = 1_000_000
	// fetchSessionStaleMs is after how long a session that is not used may be
	// evicted, and one that is for a larger new one
	// (min.incremental.fetch.session.eviction.ms).
	fetchSessionStaleMs = 120_000

	sessionEpochInitial = 0
	sessionEpochFinal   = -1
)

// fetchSession is what is kept between the fetches of one client (KIP-227).
type fetchSession struct {
	id    int32
	epoch int32
	byID  bool // made by version 13 or later
	// busy: a fetch is under way. Meanwhile parts and order belong to it.
	busy  bool
	parts map[recordsKey]*recordsPart
	// order has the parts in the order in which they are read.
	order               []*recordsPart
	createdMs, lastUsed int64
}

// fetchSessions is the bounded set of sessions.
type fetchSessions struct {
	mu    sync.Mutex
	max   int
	byID  map[int32]*fetchSession
	parts int // of all sessions
}

func newFetchSessions(n int) *fetchSessions {
	return &fetchSessions{max: n, byID: map[int32]*fetchSession{}}
}

// recordsContext is the part of a session, or of none, in one fetch.
type recordsContext struct {
	sessions *fetchSessions
	// parts is what is fetched, in this order.
	parts []*recordsPart
	// session is the one that the fetch goes on with; nil in a full fetch.
	session *fetchSession
	// create: the client wants a session, with these parts.
	create, byID bool
	// sessionID is what the client is answered.
	sessionID int32
	// moved are parts that had records; they go to the end of the order, so that
	// with little room every partition gets its turn.
	moved []*recordsPart
}

// open finds out what a request fetches and fills in ctx, or returns the error that
// answers it.
func (s *fetchSessions) open(req *kmsg.FetchRequest, nowMs int64, ctx *recordsContext) int16 {
	ctx.sessions, ctx.byID = s, req.Version >= 13
	id, epoch := req.SessionID, req.SessionEpoch
	if req.Version < 7 {
		id, epoch = 0, sessionEpochFinal
	}
	if epoch == sessionEpochInitial || epoch == sessionEpochFinal {
		if id != 0 {
			s.remove(id)
		}
		ctx.create = epoch == sessionEpochInitial
		ctx.parts = fullParts(req)
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.byID[id]
	switch {
	case session == nil:
		return kerr.FetchSessionIDNotFound.Code
	case session.epoch != epoch || session.busy:
		return kerr.InvalidFetchSessionEpoch.Code
	case session.byID != ctx.byID:
		return kerr.FetchSessionTopicIDError.Code
	}
	before := len(session.parts)
	session.update(req)
	if s.parts += len(session.parts) - before; s.parts > fetchSessionPartsMax {
		s.drop(session)
		return kerr.FetchSessionIDNotFound.Code
	}
	ctx.parts = session.order
	if len(session.parts) == 0 {
		s.drop(session)
		return 0
	}
	if session.epoch++; session.epoch < 0 {
		session.epoch = 1
	}
	session.lastUsed, session.busy = nowMs, true
	ctx.session, ctx.sessionID = session, id
	return 0
}

// fullParts returns the partitions of a request that names all of them. Of one that
// is named twice the last counts.
func fullParts(req *kmsg.FetchRequest) []*recordsPart {
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	all, parts := make([]recordsPart, n), make([]*recordsPart, 0, n)
	seen := make(map[recordsKey]*recordsPart, n)
	for i := range req.Topics {
		t := &req.Topics[i]
		name := strings.Clone(t.Topic)
		for j := range t.Partitions {
			key := recordsKey{name: name, id: t.TopicID, index: t.Partitions[j].Partition}
			p := seen[key]
			if p == nil {
				p = &all[len(parts)]
				p.recordsKey = key
				seen[key] = p
				parts = append(parts, p)
			}
			p.ask(&t.Partitions[j])
		}
	}
	return parts
}

// ask takes over what is asked of the partition.
func (p *recordsPart) ask(rp *kmsg.FetchRequestTopicPartition) {
	p.offset, p.limit = rp.FetchOffset, rp.PartitionMaxBytes
	p.leaderEpoch, p.lastEpoch = max(rp.CurrentLeaderEpoch, -1), rp.LastFetchedEpoch
}

// update adds, changes and forgets partitions.
func (session *fetchSession) update(req *kmsg.FetchRequest) {
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			key := recordsKey{name: t.Topic, id: t.TopicID, index: t.Partitions[j].Partition}
			p := session.parts[key]
			if p == nil {
				key.name = strings.Clone(key.name)
				p = &recordsPart{recordsKey: key, sentEnd: -1, sentStart: -1}
				session.parts[key] = p
				session.order = append(session.order, p)
			}
			p.ask(&t.Partitions[j])
		}
	}
	forgot := false
	for i := range req.ForgottenTopics {
		t := &req.ForgottenTopics[i]
		for _, index := range t.Partitions {
			key := recordsKey{name: t.Topic, id: t.TopicID, index: index}
			if session.parts[key] != nil {
				delete(session.parts, key)
				forgot = true
			}
		}
	}
	if !forgot {
		return
	}
	kept := session.order[:0]
	for _, p := range session.order {
		if session.parts[p.recordsKey] == p {
			kept = append(kept, p)
		}
	}
	clear(session.order[len(kept):])
	session.order = kept
}

// omits tells whether the client of a session knows all of this already.
func (ctx *recordsContext) omits(p *recordsPart, records int) bool {
	return ctx.session != nil && p.code == 0 && records == 0 && p.end == p.sentEnd && p.start == p.sentStart
}

// sent remembers what the client is told.
func (ctx *recordsContext) sent(p *recordsPart, records int) {
	p.sentEnd, p.sentStart = p.end, p.start
	if p.code != 0 { // errors are told each time
		p.sentEnd, p.sentStart = -1, -1
	}
	if records > 0 {
		ctx.moved = append(ctx.moved, p)
	}
}

// close ends the fetch: a session that was asked for is made, one that was used is
// free for the next.
func (ctx *recordsContext) close(nowMs int64) {
	s := ctx.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.session != nil:
		ctx.session.busy = false
	case ctx.create:
		ctx.session = s.add(ctx, nowMs)
	}
	if ctx.session != nil {
		ctx.sessionID = ctx.session.id
		ctx.session.rotate(ctx.moved)
	}
}

// rotate moves parts to the end of the order.
func (session *fetchSession) rotate(moved []*recordsPart) {
	if len(moved) == 0 || len(moved) == len(session.order) {
		return
	}
	last := make(map[*recordsPart]bool, len(moved))
	for _, p := range moved {
		last[p] = true
	}
	kept := session.order[:0]
	for _, p := range session.order {
		if !last[p] {
			kept = append(kept, p)
		}
	}
	session.order = append(kept, moved...)
}

// add makes a session, if there is room or can be made; nil if not.
func (s *fetchSessions) add(ctx *recordsContext, nowMs int64) *fetchSession {
	if s.parts+len(ctx.parts) > fetchSessionPartsMax {
		return nil
	}
	if len(s.byID) >= s.max && !s.evict(len(ctx.parts), nowMs) {
		return nil
	}
	session := &fetchSession{
		epoch: 1, byID: ctx.byID, createdMs: nowMs, lastUsed: nowMs,
		parts: make(map[recordsKey]*recordsPart, len(ctx.parts)),
	}
	for _, p := range ctx.parts {
		if session.parts[p.recordsKey] == nil {
			session.order = append(session.order, p)
			session.parts[p.recordsKey] = p
		}
	}
	for session.id == 0 || s.byID[session.id] != nil {
		session.id = rand.Int32N(math.MaxInt32) + 1
	}
	s.byID[session.id] = session
	s.parts += len(session.parts)
	return session
}

// evict makes room for a session of this size: at the cost of the one that was not
// used for the longest time, if that is long, or else of a smaller one that has had
// its time.
func (s *fetchSessions) evict(size int, nowMs int64) bool {
	var oldest, smallest *fetchSession
	for _, e := range s.byID {
		if oldest == nil || e.lastUsed < oldest.lastUsed {
			oldest = e
		}
		if nowMs-e.createdMs > fetchSessionStaleMs && (smallest == nil || len(e.parts) < len(smallest.parts)) {
			smallest = e
		}
	}
	switch {
	case oldest != nil && nowMs-oldest.lastUsed > fetchSessionStaleMs:
		s.drop(oldest)
	case smallest != nil && len(smallest.parts) < size:
		s.drop(smallest)
	default:
		return false
	}
	return true
}

func (s *fetchSessions) remove(id int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := s.byID[id]; session != nil {
		s.drop(session)
	}
}

func (s *fetchSessions) drop(session *fetchSession) {
	if s.byID[session.id] == session {
		delete(s.byID, session.id)
		s.parts -= len(session.parts)
	}
}
