package shard_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// quickLog is a log without a disk. With commits it makes appends durable on a
// goroutine of its own, some at a time, as the store's committer does; without, at
// once.
type quickLog struct {
	commits chan func(error)
}

func newQuickLog(b *testing.B, committer bool) *quickLog {
	l := new(quickLog)
	if committer {
		l.commits = make(chan func(error), 1024)
		go func() {
			for done := range l.commits {
				done(nil)
			}
		}()
		b.Cleanup(func() { close(l.commits) })
	}
	return l
}

func (l *quickLog) Append(_ uint32, _, _ uint64, _ int, _ []byte, done func(error)) {
	if l.commits != nil {
		l.commits <- done
	} else {
		done(nil)
	}
}

func (*quickLog) Load(context.Context, uint32, func(key, value []byte) error, func(first uint64, value []byte) error) (folded, epoch uint64, err error) {
	return 0, 1, nil
}

func (*quickLog) Checkpoint(_ uint32, _, _ uint64, rows iter.Seq2[[]byte, []byte]) {
	for range rows {
	}
}

func (*quickLog) Scan(context.Context, uint32, uint64, uint64, func(first uint64, value []byte) error) error {
	return nil
}

func (*quickLog) Bounds(uint32) (first uint64, bytes int64, err error) { return 0, 0, nil }

func (*quickLog) BaseRows(context.Context, uint32, []byte, func(key, value []byte) error) (upto uint64, err error) {
	return 0, nil
}

func (*quickLog) Trim(uint32, uint64, uint64, iter.Seq2[[]byte, []byte]) error { return nil }

func (*quickLog) OwnedUntil(uint32) time.Time { return time.Time{} }

// member is one group with one member, used by one client at a time.
type member struct {
	id         string
	member     string
	generation int32
	replies    replyChan
	heartbeat  group.Heartbeat
	commit     group.Commit
}

// begin makes the group Stable.
func (m *member) begin(b *testing.B, s *shard.Shard) {
	m.replies = make(replyChan, 1)
	r := m.ask(s, join(""))
	j := r.Body.(*group.JoinReply)
	m.member, m.generation = j.MemberID, j.Generation
	if r := m.ask(s, synced(m.member, m.generation)); r.Code != group.None {
		b.Fatalf("sync: code %d", r.Code)
	}
	m.heartbeat = *heartbeat(m.member, m.generation)
	m.commit = group.Commit{MemberID: m.member, Generation: m.generation, Retention: -1, Client: group.Client{ID: "client", Host: "/127.0.0.1", Principal: "User:ANONYMOUS"}}
	topic := group.CommitTopic{Name: "a-topic-of-usual-length", ID: group.TopicID{1}}
	for p := range int32(10) {
		topic.Partitions = append(topic.Partitions, group.CommitPartition{Partition: p, Offset: 123_456_789, LeaderEpoch: 3})
	}
	m.commit.Topics = []group.CommitTopic{topic}
}

// ask submits an event and waits for the reply.
func (m *member) ask(s *shard.Shard, ev group.Event) group.Reply {
	s.Submit(context.Background(), m.id, ev, m.replies)
	return <-m.replies
}

// benchShard runs a shard with so many Stable groups.
func benchShard(b *testing.B, committer bool, groups int) (*shard.Shard, []*member) {
	return benchShardOf(b, config(), committer, groups)
}

func benchShardOf(b *testing.B, cfg shard.Config, committer bool, groups int) (*shard.Shard, []*member) {
	s := shard.New(cfg, 0, newQuickLog(b, committer))
	if err := s.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	b.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			b.Error(err)
		}
		<-ended
	})
	members := make([]*member, groups)
	for i := range members {
		members[i] = &member{id: fmt.Sprint("group-", i)}
		members[i].begin(b, s)
	}
	return s, members
}

// benchClients lets each member send events one after the other, b.N in all.
func benchClients(b *testing.B, s *shard.Shard, members []*member, event func(m *member) group.Event) {
	b.ReportAllocs()
	b.ResetTimer()
	var clients sync.WaitGroup
	for i, m := range members {
		n := b.N / len(members)
		if i < b.N%len(members) {
			n++
		}
		clients.Go(func() {
			for range n {
				if r := m.ask(s, event(m)); r.Code != group.None {
					b.Errorf("code %d", r.Code)
				}
			}
		})
	}
	clients.Wait()
}

// BenchmarkHeartbeat is from Submit to the reply on another goroutine, with so many
// clients at once.
func BenchmarkHeartbeat(b *testing.B) {
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			s, members := benchShard(b, true, clients)
			benchClients(b, s, members, func(m *member) group.Event { return &m.heartbeat })
		})
	}
}

// BenchmarkCommit is an OffsetCommit of ten partitions on a log that is durable as
// soon as its committer runs.
func BenchmarkCommit(b *testing.B) {
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			s, members := benchShard(b, true, clients)
			benchClients(b, s, members, func(m *member) group.Event { return &m.commit })
		})
	}
}

// nowhere drops replies.
type nowhere struct{}

// Reply implements shard.Sink.
func (nowhere) Reply(group.Reply) {}

// BenchmarkTurn is the work of a shard alone: one goroutine submits and does turns,
// 16 events each.
func BenchmarkTurn(b *testing.B) {
	for name, event := range map[string]func(m *member) group.Event{
		"heartbeat": func(m *member) group.Event { return &m.heartbeat },
		"commit":    func(m *member) group.Event { return &m.commit },
	} {
		b.Run(name, func(b *testing.B) {
			s, members := benchShard(b, false, 16)
			if err := s.Stop(b.Context()); err != nil {
				b.Fatal(err)
			}
			s = shard.New(config(), 0, newQuickLog(b, false))
			if err := s.Load(b.Context()); err != nil {
				b.Fatal(err)
			}
			var at group.Time
			for _, m := range members {
				for _, ev := range []group.Event{join(""), synced(m.member, m.generation)} {
					s.Submit(b.Context(), m.id, ev, nowhere{})
					for range 3 {
						at += 10
						s.RunOnce(at)
					}
				}
			}
			ctx := context.Background()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				m := members[i%16]
				s.Submit(ctx, m.id, event(m), nowhere{})
				if i%16 == 15 {
					s.RunOnce(at)
				}
			}
		})
	}
}

// BenchmarkJoinStorm is 1,000 members that join 100 groups at once, from the first
// join to the last sync, with a group.initial.rebalance.delay.ms of 50, in which
// all of them come, so that it is waited for twice: "busy-ms" is what is left.
func BenchmarkJoinStorm(b *testing.B) {
	const delay = 50
	cfg := config()
	cfg.Group.InitialRebalanceDelay = delay
	var busy time.Duration
	for b.Loop() {
		b.StopTimer()
		s, _ := benchShardOf(b, cfg, true, 0)
		b.StartTimer()
		start := time.Now()
		var clients sync.WaitGroup
		for i := range 1000 {
			clients.Go(func() { storm(b, s, fmt.Sprint("group-", i%100), fmt.Sprint("member-", i)) })
		}
		clients.Wait()
		busy += time.Since(start) - 2*delay*time.Millisecond
	}
	b.ReportMetric(float64(busy.Microseconds())/1000/float64(b.N), "busy-ms")
}

// storm is one member until it is in a Stable group.
func storm(b *testing.B, s *shard.Shard, id, name string) {
	replies := make(replyChan, 1)
	ask := func(ev group.Event) group.Reply {
		s.Submit(context.Background(), id, ev, replies)
		return <-replies
	}
	member := ""
	for range 1000 {
		ev := join(member)
		ev.NewID = name
		r := ask(ev)
		if r.Code != group.None {
			b.Errorf("join: code %d", r.Code)
			return
		}
		j := r.Body.(*group.JoinReply)
		member = j.MemberID
		ev2 := &group.Sync{MemberID: member, Generation: j.Generation}
		for _, m := range j.Members {
			ev2.Assignments = append(ev2.Assignments, group.Assignment{MemberID: m.MemberID, Bytes: []byte("0123456789")})
		}
		switch r := ask(ev2); r.Code {
		case group.None:
			return
		case group.RebalanceInProgress:
		default:
			b.Errorf("sync: code %d", r.Code)
			return
		}
	}
	b.Error("never Stable")
}

// storedLog has what a shard left behind.
type storedLog struct {
	quickLog
	rows    [][2][]byte
	batches []shardtest.Batch
	folded  uint64
}

func (l *storedLog) Load(_ context.Context, _ uint32, row func(key, value []byte) error, batch func(first uint64, value []byte) error) (folded, epoch uint64, err error) {
	for _, r := range l.rows {
		if err := row(r[0], r[1]); err != nil {
			return 0, 0, err
		}
	}
	for _, b := range l.batches {
		if err := batch(b.First, b.Value); err != nil {
			return 0, 0, err
		}
	}
	return l.folded, 1, nil
}

// BenchmarkLoad is the load of a shard with 200 groups of 100 offsets, a fiftieth of
// a million, in 10 topics each: from the checkpoint, and from a change log that was
// never folded.
func BenchmarkLoad(b *testing.B) {
	for _, folded := range []bool{true, false} {
		b.Run(map[bool]string{true: "rows", false: "tail"}[folded], func(b *testing.B) {
			mem := shardtest.NewLog()
			cfg := config()
			cfg.CheckpointBytes = 1 << 30
			s := shard.New(cfg, 0, mem)
			if err := s.Load(b.Context()); err != nil {
				b.Fatal(err)
			}
			for i := range 200 {
				c := commit(1)
				c.Topics = nil
				for j := range 10 {
					topic := group.CommitTopic{Name: fmt.Sprint("a-topic-of-usual-length-", j), ID: group.TopicID{byte(j)}}
					for p := range int32(10) {
						topic.Partitions = append(topic.Partitions, group.CommitPartition{Partition: p, Offset: 1_000_000, LeaderEpoch: -1})
					}
					c.Topics = append(c.Topics, topic)
				}
				s.Submit(b.Context(), fmt.Sprint("group-", i), c, nowhere{})
				s.RunOnce(1)
			}
			log := &storedLog{}
			if folded {
				if err := s.Stop(b.Context()); err != nil {
					b.Fatal(err)
				}
				rows := mem.Rows(0)
				for _, key := range slices.Sorted(maps.Keys(rows)) {
					log.rows = append(log.rows, [2][]byte{[]byte(key), rows[key]})
				}
				log.folded = 200
			} else {
				log.batches = mem.Batches(0)
			}
			b.ReportAllocs()
			for b.Loop() {
				s := shard.New(config(), 0, log)
				if err := s.Load(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/20_000, "ns/offset")
		})
	}
}
