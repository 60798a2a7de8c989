package main

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/store"
	"github.com/rollcall-mq/rollcall/store/groups"
)

// sink gets one reply.
type sink chan group.Reply

func (s sink) Reply(r group.Reply) { s <- r }

// TestTrimmedHistory puts the runtime over the real store: what was committed before
// the history was trimmed is there after a restart, and the log begins later.
func TestTrimmedHistory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	const commits = 500
	open := func() (*store.Store, *groups.Log, *shard.Shard) {
		st, err := store.Open(store.Options{Dir: dir, Shards: 1, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		log, err := groups.Open(st.Groups(), 1)
		if err != nil {
			t.Fatal(err)
		}
		s := shard.New(shard.Config{
			Group:           group.Config{MaxMetadata: 4096, MaxSize: 10, OffsetsRetention: 1 << 40},
			CheckpointBytes: 1,
		}, 0, log)
		if err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Run(context.Background()) }() // Stop tells what it would return
		return st, log, s
	}
	ask := func(s *shard.Shard, ev group.Event) group.Reply {
		reply := make(sink, 1)
		s.Submit(t.Context(), "g", ev, reply)
		return <-reply
	}
	end := func(st *store.Store, s *shard.Shard) {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}

	st, log, s := open()
	for i := range commits {
		got := ask(s, &group.Commit{Generation: -1, Retention: -1, Topics: []group.CommitTopic{
			{Name: "t", Partitions: []group.CommitPartition{{Offset: int64(i), LeaderEpoch: -1}}},
		}})
		if got.Code != group.None {
			t.Fatal(got.Code)
		}
	}
	_, before, _ := log.Bounds(0)
	if _, _, err := s.Trim(t.Context(), shard.Keep{Since: math.MaxInt64}); err != nil {
		t.Fatal(err)
	}
	first, after, _ := log.Bounds(0)
	if first == 0 || after >= before {
		t.Errorf("the log begins at %d and has %d bytes of %d", first, after, before)
	}
	end(st, s)

	st, log, s = open()
	defer end(st, s)
	if again, _, _ := log.Bounds(0); again != first {
		t.Errorf("the log begins at %d after the restart, at %d before", again, first)
	}
	rows := 0
	if upto, err := log.BaseRows(t.Context(), 0, nil, func(_, _ []byte) error { rows++; return nil }); err != nil || upto != first || rows != 1 {
		t.Errorf("the base has %d rows up to %d, %v, want one up to %d", rows, upto, err, first)
	}
	got := ask(s, &group.Fetch{All: true})
	if body, ok := got.Body.(*group.FetchReply); !ok || len(body.Topics) != 1 || body.Topics[0].Partitions[0].Offset != commits-1 {
		t.Errorf("the last commit is not there: %+v", got)
	}
}
