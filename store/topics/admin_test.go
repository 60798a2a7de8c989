package topics

import (
	"strings"
	"sync"
	"testing"
)

func TestCheckName(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "A-b_c.9": true, strings.Repeat("x", NameMax): true, "...": true, "_": true, "__x": true,
		"": false, ".": false, "..": false, "a b": false, "a/b": false, "ä": false, "a\x00": false, "a\n": false,
		strings.Repeat("x", NameMax+1): false,
	} {
		if msg := CheckName(name); (msg == "") != good {
			t.Errorf("%.20q: %q", name, msg)
		}
	}
}

func TestCreateRefused(t *testing.T) {
	e := newEnv(t)
	e.create("a.b", 1)
	for _, k := range []struct {
		n    NewTopic
		want Code
	}{
		{NewTopic{Name: "a.b", Partitions: 1}, TopicAlreadyExists},
		{NewTopic{Name: "a_b", Partitions: 1}, InvalidTopicException},
		{NewTopic{Name: "__offsets", Partitions: 1}, InvalidTopicException},
		{NewTopic{Name: "x y", Partitions: 1}, InvalidTopicException},
		{NewTopic{Name: "x", Partitions: 0}, InvalidPartitions},
		{NewTopic{Name: "x", Partitions: PartitionsMax}, PolicyViolation},
		{NewTopic{Name: "x", Partitions: 1, Configs: []Config{{"no.such", "1"}}}, InvalidConfig},
	} {
		if _, r := e.tryCreate(k.n); r == nil || r.Code != k.want {
			t.Errorf("%+v: %+v", k.n, r)
		}
		if r := e.log.CheckCreate(k.n); r == nil || r.Code != k.want {
			t.Errorf("check %+v: %+v", k.n, r)
		}
	}
	if _, r := e.tryCreate(NewTopic{Name: "__offsets", Partitions: 1, Internal: true}); r != nil {
		t.Errorf("the gateway itself: %+v", r)
	}
	if all := e.log.All(); len(all) != 2 || all[0].Name != "__offsets" || all[1].Name != "a.b" {
		t.Errorf("%d topics", len(all))
	}
}

// TestCreateTogether: of many who create one topic at a time one does, and all are
// answered when it is durable.
func TestCreateTogether(t *testing.T) {
	e := newEnv(t)
	var mu sync.Mutex
	created := map[Code]int{}
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			_, r := e.tryCreate(NewTopic{Name: "t", Partitions: 1})
			if e.log.Topic("t") == nil {
				t.Error("answered before the topic is there")
			}
			mu.Lock()
			defer mu.Unlock()
			if r == nil {
				created[None]++
				return
			}
			created[r.Code]++
		})
	}
	wg.Wait()
	if created[None] != 1 || created[TopicAlreadyExists] != 63 {
		t.Errorf("outcomes: %v", created)
	}
}

func TestGrow(t *testing.T) {
	e := newEnv(t)
	topic := e.create("t", 2)
	first := topic.Partition(0)
	for n, want := range map[int32]Code{2: InvalidPartitions, 1: InvalidPartitions, 0: InvalidPartitions, PartitionsMax + 1: PolicyViolation} {
		if r := e.grow(topic, n); r == nil || r.Code != want {
			t.Errorf("to %d: %+v", n, r)
		}
	}
	if r := e.grow(topic, 4); r != nil {
		t.Fatal(r)
	}
	if len(topic.Partitions()) != 4 || topic.Partition(0) != first || topic.Partition(4) != nil || topic.Partition(-1) != nil {
		t.Error("the partitions are not what they should be")
	}
	if _, n, _ := e.log.Lookup("t"); n != 4 {
		t.Errorf("%d partitions are looked up", n)
	}
}

func TestDelete(t *testing.T) {
	type call struct {
		name string
		id   ID
	}
	var calls []call
	e := newEnv(t)
	e.log.onDelete = func(name string, id ID) { calls = append(calls, call{name, id}) }
	topic := e.create("t", 2)
	other := e.create("u", 1)
	b := values("x")
	b.producer = 5
	e.mustAppend(topic.Partition(1), b.encode())
	e.mustAppend(other.Partition(0), b.encode())
	woken := make(chan struct{})
	w := Wait([]Seen{{Partition: topic.Partition(0)}}, 1, 1<<40, func() { close(woken) })
	if r := e.delete(topic); r != nil {
		t.Fatal(r)
	}
	if len(calls) != 1 || calls[0] != (call{"t", topic.ID}) {
		t.Errorf("OnDelete before the answer: %v", calls)
	}
	<-woken
	w.Stop()
	if _, _, ok := e.log.Lookup("t"); ok || e.log.TopicByID(topic.ID) != nil || !topic.Deleted() {
		t.Error("the topic is still there")
	}
	if n := e.rows(appendPartitionPrefix(nil, topic.ID, 0)[:topicPrefixSize]); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if r := e.delete(topic); r == nil || r.Code != UnknownTopicOrPartition {
		t.Errorf("deleted twice: %+v", r)
	}
	if r := e.grow(topic, 5); r == nil || r.Code != UnknownTopicOrPartition {
		t.Errorf("grown: %+v", r)
	}
	if a := e.append(topic.Partition(1), values("y").encode()); a.Refusal == nil || a.Refusal.Code != UnknownTopicOrPartition {
		t.Errorf("appended: %+v", a.Refusal)
	}
	again := e.create("t", 1)
	if again.ID == topic.ID || again.Partition(0).End() != 0 {
		t.Error("the new topic is the old one")
	}
	if other.Partition(0).End() != 1 || len(e.read(other.Partition(0), 0, 1)) == 0 {
		t.Error("another topic lost its records")
	}
	if total := e.log.names.total(); total != 2 {
		t.Errorf("%d partitions are counted", total)
	}
}

// TestDeleteWhileAppending: what was appended before the deletion goes with it.
func TestDeleteWhileAppending(t *testing.T) {
	e, gate := newGatedEnv(t)
	topic := e.create("t", 1)
	gate.shut()
	var wg sync.WaitGroup
	wg.Add(3)
	a := []Append{{Partition: topic.Partition(0), Records: values("x").encode()}}
	e.log.Append(a, wg.Done)
	e.log.Delete(topic, func(*Refusal, error) { wg.Done() })
	late := []Append{{Partition: topic.Partition(0), Records: values("x").encode()}}
	if e.log.Append(late, wg.Done) != 1 {
		t.Error("appended behind the deletion")
	}
	gate.open()
	wg.Wait()
	e.close()
	e.open()
	if n := e.rows([]byte{noTenant}); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestSettings(t *testing.T) {
	broker := map[string]string{"message.max.bytes": "100", "log.retention.hours": "2", "log.cleanup.policy": "compact"}
	s := settingsOf(nil, broker)
	if s.MaxMessageBytes != 100 || !s.Compacted || s.LogAppendTime {
		t.Errorf("from the gateway: %+v", s)
	}
	s = settingsOf([]Config{{"max.message.bytes", " 7 "}, {"cleanup.policy", "delete"}, {"message.timestamp.type", "LogAppendTime"}}, broker)
	if s.MaxMessageBytes != 7 || s.Compacted || !s.LogAppendTime {
		t.Errorf("from the topic: %+v", s)
	}
	if v := resolve(findDef("retention.ms"), nil, broker); v.Value != "7200000" || v.FromBroker != "log.retention.hours" || v.FromTopic {
		t.Errorf("hours: %+v", v)
	}
	for i := range ConfigDefs {
		d := &ConfigDefs[i]
		if i > 0 && ConfigDefs[i-1].Name >= d.Name {
			t.Errorf("%s is out of order", d.Name)
		}
		if msg := d.check(d.Default); msg != "" {
			t.Errorf("the default: %s", msg)
		}
	}
}

// TestRefusedForWhatIsNotDurable: nobody learns of a topic that a crash can take
// back.
func TestRefusedForWhatIsNotDurable(t *testing.T) {
	e, gate := newGatedEnv(t)
	gate.shut()
	answers := make(chan *Refusal, 2)
	for range 2 {
		e.log.Create(NewTopic{Name: "t", Partitions: 1}, func(_ *Topic, r *Refusal, err error) {
			if err != nil {
				t.Error(err)
			}
			answers <- r
		})
	}
	if len(answers) > 0 || e.log.Topic("t") != nil {
		t.Error("the topic is shown before it is durable")
	}
	gate.open()
	if first, second := <-answers, <-answers; first != nil || second == nil || second.Code != TopicAlreadyExists {
		t.Errorf("answers: %+v, %+v", first, second)
	}
}
