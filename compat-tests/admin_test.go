package compat

import (
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// committed is where a group is in partition 0 of a topic, -1 for nowhere.
func committed(t *testing.T, adm *kadm.Client, group, topic string) int64 {
	t.Helper()
	offsets, err := adm.FetchOffsetsForTopics(t.Context(), group, topic)
	if err != nil {
		t.Fatal(err)
	}
	o, _ := offsets.Lookup(topic, 0)
	return o.At
}

// commitTo commits an offset of partition 0 as a tool does and returns the error of it.
func commitTo(t *testing.T, adm *kadm.Client, group, topic string, offset int64) error {
	t.Helper()
	var os kadm.Offsets
	os.AddOffset(topic, 0, offset, -1)
	resp, err := adm.CommitOffsets(t.Context(), group, os)
	return errors.Join(err, resp.Error())
}

// TestAdmin (S1.10): describe, fetch, commit, lag, delete offsets and delete, with
// franz-go's admin client, for a group that is unknown, Empty, Stable and Empty again.
func TestAdmin(t *testing.T) {
	srv := rig.Start(t)
	g := quietGroup(t, srv, 1)
	adm, group, topic := g.adm, g.ledger.Group, g.ledger.Topic
	rig.Write(t, srv.Addr, topic, 1, 5)
	is := func(state string, members int, lag int64) {
		t.Helper()
		lags, err := adm.Lag(t.Context(), group)
		if err != nil {
			t.Fatal(err)
		}
		l := lags[group]
		if l.Error() != nil || l.State != state || len(l.Members) != members || l.Lag.Total() != lag {
			t.Errorf("%s with %d members and a lag of %d (%v), want %s, %d and %d", l.State, len(l.Members), l.Lag.Total(), l.Error(), state, members, lag)
		}
	}
	drop := func(what string, want error) {
		t.Helper()
		resp, err := adm.DeleteGroup(t.Context(), group)
		if err = errors.Join(err, resp.Err); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("delete of %s: %v, want %v", what, err, want)
		}
	}
	forget := func(what string, want error) {
		t.Helper()
		resp, err := adm.DeleteOffsets(t.Context(), group, kadm.TopicsSet{topic: {0: {}}})
		if err = errors.Join(err, resp.Error()); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("delete of the offsets of %s: %v, want %v", what, err, want)
		}
	}
	drop("an unknown group", kerr.GroupIDNotFound)
	forget("an unknown group", kerr.GroupIDNotFound)
	if err := commitTo(t, adm, group, topic, 2); err != nil {
		t.Errorf("commit to an unknown group: %v", err)
	}
	is("Empty", 0, 3)
	member := g.ledger.StartMember(t, srv.Addr, "franz-go-0", rig.MemberConfig{Client: "franz-go", Strategy: "range", ClientID: "admin"})
	g.settle(1, 20*time.Second)
	rig.Eventually(t, 20*time.Second, "the member commits", func() error {
		if committed(t, adm, group, topic) != 5 {
			return rig.ErrQuiet
		}
		return nil
	})
	is("Stable", 1, 0)
	if err := commitTo(t, adm, group, topic, 0); !errors.Is(err, kerr.UnknownMemberID) {
		t.Errorf("reset of a Stable group: %v", err)
	}
	drop("a Stable group", kerr.NonEmptyGroup)
	forget("a Stable group", kerr.GroupSubscribedToTopic)
	member.Leave()
	is("Empty", 0, 0)
	if err := commitTo(t, adm, group, topic, 1); err != nil {
		t.Errorf("reset of an Empty group: %v", err)
	}
	is("Empty", 0, 4)
	forget("an Empty group", nil)
	if got := committed(t, adm, group, topic); got != -1 {
		t.Errorf("offset %d after its deletion", got)
	}
	if err := commitTo(t, adm, group, topic, 1); err != nil {
		t.Error(err)
	}
	drop("an Empty group", nil)
	drop("a deleted group", kerr.GroupIDNotFound)
}

// TestAssignedByHand (S1.8): consumers that take a partition without joining a group
// commit to it, go on from there, and never make it rebalance.
func TestAssignedByHand(t *testing.T) {
	srv := rig.Start(t)
	adm, group, topic := rig.Admin(t, srv.Addr), unique(t, "g"), newTopic(t, srv)
	rig.Write(t, srv.Addr, topic, 1, 5)
	// franz-go reads one partition from an offset, and its admin client commits.
	cl, err := kgo.NewClient(kgo.SeedBrokers(srv.Addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}))
	if err != nil {
		t.Fatal(err)
	}
	records := cl.PollRecords(t.Context(), 2).Records()
	cl.Close()
	if len(records) == 0 || records[0].Offset != 0 {
		t.Fatalf("read %v", records)
	}
	if err := commitTo(t, adm, group, topic, 2); err != nil {
		t.Fatal(err)
	}
	// Sarama has an offset manager for this.
	sc, err := sarama.NewClient([]string{srv.Addr}, sarama.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	manager, err := sarama.NewOffsetManagerFromClient(group, sc)
	if err != nil {
		t.Fatal(err)
	}
	p, err := manager.ManagePartition(topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	next, _ := p.NextOffset()
	consumer, err := sarama.NewConsumerFromClient(sc)
	if err != nil {
		t.Fatal(err)
	}
	pc, err := consumer.ConsumePartition(topic, 0, next)
	if err != nil {
		t.Fatal(err)
	}
	if m := <-pc.Messages(); m.Offset != 2 {
		t.Errorf("Sarama begins at %d, want 2", m.Offset)
	}
	p.MarkOffset(3, "by hand")
	manager.Commit()
	if err := errors.Join(pc.Close(), p.Close(), manager.Close()); err != nil {
		t.Error(err)
	}
	if got := committed(t, adm, group, topic); got != 3 {
		t.Errorf("offset %d, want 3", got)
	}
	described, err := adm.DescribeGroups(t.Context(), group)
	if d := described[group]; err != nil || d.State != "Empty" || d.ProtocolType != "" || len(d.Members) != 0 {
		t.Errorf("the group is %+v, %v", d, err)
	}
}
