package shard_test

import (
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// answer keeps the reply to one request.
type answer struct{ reply group.Reply }

func (a *answer) Reply(r group.Reply) { a.reply = r }

// turns runs the shard until it has nothing more to do.
func turns(s *shard.Shard) {
	for again := true; again; {
		_, again = s.RunOnce(1)
	}
}

// TestLoadDropsOffsetsOfMissingTopics commits for two topics and restarts after one
// of them is gone: only the offset of the other is left, and stays gone when the
// topics are not compared.
func TestLoadDropsOffsetsOfMissingTopics(t *testing.T) {
	log := shardtest.NewLog()
	config := shard.Config{
		Group: group.Config{MaxMetadata: 4096, MaxSize: 10, OffsetsRetention: 1 << 40},
		Clock: func() (now, wall group.Time) { return 1, 1_000 },
	}
	load := func() *shard.Shard {
		s := shard.New(config, 0, log)
		if err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		turns(s)
		return s
	}
	offsets := func(s *shard.Shard) (names []string) {
		var a answer
		s.Submit(t.Context(), "g", &group.Fetch{All: true}, &a)
		turns(s)
		if body, ok := a.reply.Body.(*group.FetchReply); ok {
			for _, topic := range body.Topics {
				names = append(names, topic.Name)
			}
		}
		return names
	}

	s := load()
	one := []group.CommitPartition{{Partition: 0, Offset: 5, LeaderEpoch: -1}}
	s.Submit(t.Context(), "g", &group.Commit{Generation: -1, Retention: -1, Topics: []group.CommitTopic{
		{Name: "gone", ID: group.TopicID{1}, Partitions: one},
		{Name: "kept", ID: group.TopicID{2}, Partitions: one},
		{Name: "made anew", ID: group.TopicID{3}, Partitions: one},
	}}, &answer{})
	turns(s)
	if got := offsets(s); len(got) != 3 {
		t.Fatalf("before the restart: %q", got)
	}

	config.Topics = func(name string) (group.TopicID, bool) {
		return map[string]group.TopicID{"kept": {2}, "made anew": {4}}[name], name != "gone"
	}
	if got := offsets(load()); len(got) != 1 || got[0] != "kept" {
		t.Errorf("after the restart: %q, want only kept", got)
	}
	config.Topics = nil
	if got := offsets(load()); len(got) != 1 || got[0] != "kept" {
		t.Errorf("after another restart: %q, want only kept", got)
	}
}
