package shard_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// ledger remembers replies in the order in which they leave.
type ledger struct {
	mu   sync.Mutex
	left []*answer
}

// answer is the sink of one request.
type answer struct {
	to    string
	book  *ledger
	reply group.Reply
	times int
}

// Reply implements shard.Sink.
func (a *answer) Reply(r group.Reply) {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	a.reply = r
	a.times++
	a.book.left = append(a.book.left, a)
}

// came tells how often the reply has come.
func (a *answer) came() int {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	return a.times
}

// code returns the code of the reply that must have come once.
func (a *answer) code(t *testing.T) group.Code {
	t.Helper()
	if n := a.came(); n != 1 {
		t.Fatalf("%s: %d replies, want 1", a.to, n)
	}
	return a.reply.Code
}

// offset returns the single offset that a fetch got, -1 for none.
func (a *answer) offset(t *testing.T) int64 {
	t.Helper()
	if code := a.code(t); code != group.None {
		t.Fatalf("%s: code %d", a.to, code)
	}
	return a.reply.Body.(*group.FetchReply).Topics[0].Partitions[0].Offset
}

// order returns what the answers that have left were to.
func (l *ledger) order() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var to []string
	for _, a := range l.left {
		to = append(to, a.to)
	}
	return to
}

// wantOrder fails unless exactly these answers have left, in this order.
func (l *ledger) wantOrder(t *testing.T, want ...string) {
	t.Helper()
	if got := l.order(); !slices.Equal(got, want) {
		t.Fatalf("left: %q, want %q", got, want)
	}
}

// rig is a shard that runs in a bubble of virtual time.
type rig struct {
	t     *testing.T
	log   *shardtest.Log
	shard *shard.Shard
	book  ledger
	ended chan error
}

// config is the configuration of tests; some change it.
func config() shard.Config {
	return shard.Config{Group: group.Config{
		MaxSize: 1 << 30, MaxMetadata: 4096, OffsetsRetention: 7 * 24 * 3_600_000, PendingMax: 1 << 20,
	}}
}

// run loads a shard and lets it run until the end of the test.
func run(t *testing.T, log *shardtest.Log, cfg shard.Config) *rig {
	r := load(t, log, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	r.ended = make(chan error, 1)
	go func() { r.ended <- r.shard.Run(ctx) }()
	t.Cleanup(cancel)
	return r
}

// load loads a shard and lets the test do its turns.
func load(t *testing.T, log *shardtest.Log, cfg shard.Config) *rig {
	t.Helper()
	r := &rig{t: t, log: log, shard: shard.New(cfg, 0, log)}
	if err := r.shard.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// submit gives an event to the shard and waits until it has done what it can.
func (r *rig) submit(to, id string, ev group.Event) *answer {
	a := r.send(to, id, ev)
	synctest.Wait()
	return a
}

// send gives an event to the shard.
func (r *rig) send(to, id string, ev group.Event) *answer {
	a := &answer{to: to, book: &r.book}
	r.shard.Submit(r.t.Context(), id, ev, a)
	return a
}

// commit is an OffsetCommit without a member.
func commit(offset int64) *group.Commit {
	return &group.Commit{
		Client: group.Client{ID: "c", Host: "/127.0.0.1", Principal: "User:ANONYMOUS"}, Generation: -1, Retention: -1,
		Topics: []group.CommitTopic{{Name: "t", Partitions: []group.CommitPartition{{Offset: offset, LeaderEpoch: -1}}}},
	}
}

// fetch is an OffsetFetch of what commit commits.
func fetch() *group.Fetch {
	return &group.Fetch{Topics: []group.FetchTopic{{Name: "t", Partitions: []int32{0}}}}
}

// pass lets virtual time pass; it works in a bubble only.
func (r *rig) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// render prints a reply's body with what its pointers point to.
func render(body group.Body) string {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// turns does turns until there is nothing to do, or waits for Run to have done so.
func (r *rig) turns() {
	if r.ended != nil {
		synctest.Wait()
		return
	}
	r.turnsAt(1)
}

// turnsAt does turns at a time until there is nothing to do.
func (r *rig) turnsAt(now group.Time) {
	for again := true; again; {
		_, again = r.shard.RunOnce(now)
	}
}

// key makes a group id.
func key(n int) string {
	return string(binary.AppendUvarint([]byte("g"), uint64(n)))
}
