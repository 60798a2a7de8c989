package shard_test

import (
	"slices"
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// TestLoadDropsOffsetsOfMissingTopics commits for three topics and restarts after
// one of them is gone and another made anew: only the offset of the third is left,
// and stays alone when the topics are not compared.
func TestLoadDropsOffsetsOfMissingTopics(t *testing.T) {
	log, cfg := shardtest.NewLog(), config()
	offsets := func(r *rig) (names []string) {
		a := r.send("fetch", "g", &group.Fetch{All: true})
		r.turns()
		if a.code(t) != group.None {
			t.Fatalf("fetch: code %d", a.code(t))
		}
		for _, topic := range a.reply.Body.(*group.FetchReply).Topics {
			names = append(names, topic.Name)
		}
		return names
	}
	r := load(t, log, cfg)
	one := []group.CommitPartition{{Partition: 0, Offset: 5, LeaderEpoch: -1}}
	r.send("commit", "g", &group.Commit{Generation: -1, Retention: -1, Topics: []group.CommitTopic{
		{Name: "gone", ID: group.TopicID{1}, Partitions: one},
		{Name: "kept", ID: group.TopicID{2}, Partitions: one},
		{Name: "made anew", ID: group.TopicID{3}, Partitions: one},
	}})
	r.turns()
	if got := offsets(r); len(got) != 3 {
		t.Fatalf("before the restart: %q", got)
	}

	cfg.Topics = func(name string) (group.TopicID, bool) {
		return map[string]group.TopicID{"kept": {2}, "made anew": {4}}[name], name != "gone"
	}
	if got := offsets(load(t, log, cfg)); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("after the restart: %q, want only kept", got)
	}
	cfg.Topics = nil
	if got := offsets(load(t, log, cfg)); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("after another restart: %q, want only kept", got)
	}
}
