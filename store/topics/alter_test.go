package topics

import (
	"slices"
	"strings"
	"testing"
)

func (e *env) alter(name string, a Alteration) (refused *Refusal) {
	e.t.Helper()
	await(func(done func()) {
		e.log.AlterTopic(name, a, false, func(r *Refusal, err error) {
			if refused = r; err != nil {
				e.t.Error(err)
			}
			done()
		})
	})
	return refused
}

func (e *env) alterGroup(group string, a Alteration) (refused *Refusal) {
	e.t.Helper()
	await(func(done func()) {
		e.log.AlterGroup(group, a, false, func(r *Refusal, err error) {
			if refused = r; err != nil {
				e.t.Error(err)
			}
			done()
		})
	})
	return refused
}

func setting(name, value string) Alteration {
	return Alteration{Changes: []ConfigChange{{SetConfig, name, value}}}
}

// own is what the topic sets itself.
func own(values []Value) (all []string) {
	for _, v := range values {
		if v.FromTopic {
			all = append(all, v.Name+"="+v.Value)
		}
	}
	return all
}

// What was altered counts at once for the next append, and after a crash.
func TestAlterTopic(t *testing.T) {
	e := newEnv(t)
	topic := e.create("a", 1, Config{"retention.ms", "5"})
	p := topic.Partition(0)
	e.mustAppend(p, values("x").encode())
	if r := e.alter("a", setting("max.message.bytes", "10")); r != nil {
		t.Fatalf("refused: %+v", r)
	}
	if a := e.append(p, values("x").encode()); a.Refusal == nil || a.Refusal.Code != MessageTooLarge {
		t.Errorf("a batch that is now too large is answered %+v", a.Refusal)
	}
	if r := e.alter("a", setting("max.message.bytes", "ten")); r == nil || r.Code != InvalidConfig {
		t.Errorf("a bad value is answered %+v", r)
	}
	if r := e.alter("b", setting("max.message.bytes", "10")); r == nil || r.Code != UnknownTopicOrPartition {
		t.Errorf("an unknown topic is answered %+v", r)
	}
	if r := e.grow(topic, 2); r != nil {
		t.Fatal(r)
	}
	want := []string{"max.message.bytes=10", "retention.ms=5"}
	if got := own(topic.Configs()); !slices.Equal(got, want) {
		t.Errorf("it sets %q, want %q", got, want)
	}
	e.crash(0, nil)
	if got := own(e.log.Topic("a").Configs()); !slices.Equal(got, want) {
		t.Errorf("after a crash it sets %q, want %q", got, want)
	}
	if r := e.alter("a", Alteration{Replace: true}); r != nil {
		t.Fatalf("refused: %+v", r)
	}
	topic = e.log.Topic("a")
	e.mustAppend(topic.Partition(0), values("x").encode())
	if got := own(topic.Configs()); got != nil || len(topic.Partitions()) != 2 {
		t.Errorf("replaced by nothing it sets %q and has %d partitions", got, len(topic.Partitions()))
	}
}

// A change does not count, and is not answered, before it is durable; the next one
// builds on it all the same.
func TestAlterWaitsForTheDisk(t *testing.T) {
	e, g := newGatedEnv(t)
	topic := e.create("a", 1)
	g.shut()
	answers := make(chan error, 2)
	for _, a := range []Alteration{setting("retention.ms", "1"), setting("cleanup.policy", "compact")} {
		e.log.AlterTopic("a", a, false, func(_ *Refusal, err error) { answers <- err })
	}
	if got := own(topic.Configs()); got != nil || topic.Settings().Compacted || len(answers) > 0 {
		t.Errorf("what is not durable counts: %q, %d answers", got, len(answers))
	}
	g.open()
	for range 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if got := own(topic.Configs()); !slices.Equal(got, []string{"cleanup.policy=compact", "retention.ms=1"}) || !topic.Settings().Compacted {
		t.Errorf("it sets %q", got)
	}
}

func TestAlterGroup(t *testing.T) {
	e := newEnv(t)
	for _, group := range []string{"g", "h", ""} {
		if r := e.alterGroup(group, setting("consumer.session.timeout.ms", "50000")); r != nil {
			t.Fatalf("%q is refused: %+v", group, r)
		}
	}
	if r := e.alterGroup("h", setting("consumer.session.timeout.ms", "1")); r == nil || r.Code != InvalidConfig {
		t.Errorf("a bad value is answered %+v", r)
	}
	if r := e.alterGroup("h", Alteration{Replace: true}); r != nil {
		t.Fatalf("refused: %+v", r)
	}
	for _, when := range []string{"now", "after a crash"} {
		if got := e.log.ConfiguredGroups(); !slices.Equal(got, []string{"", "g"}) {
			t.Errorf("%s: the groups %q set something", when, got)
		}
		if got := own(e.log.GroupConfigs("g")); !slices.Equal(got, []string{"consumer.session.timeout.ms=50000"}) {
			t.Errorf("%s: g sets %q", when, got)
		}
		if got := own(e.log.GroupConfigs("h")); got != nil {
			t.Errorf("%s: h sets %q", when, got)
		}
		e.crash(0, nil)
	}
	key := groupConfigKey("g")
	if err := e.db.Set(key, []byte{groupConfigRowVersion + 1, 0}, nil); err != nil {
		t.Fatal(err)
	}
	other := &Log{db: e.db, groupNewest: map[string][]Config{}}
	if err := other.loadGroupConfigs(); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a row of a newer version: %v", err)
	}
}

// Every default passes its own check, so that what is shown can be set.
func TestDefaultsAreValid(t *testing.T) {
	for _, kind := range []struct {
		defs  []ConfigDef
		check func([]Config) string
	}{{ConfigDefs, CheckConfigs}, {GroupConfigDefs, checkGroupConfigs}} {
		for i := range kind.defs {
			d := &kind.defs[i]
			if msg := kind.check([]Config{{d.Name, d.Default}}); msg != "" {
				t.Errorf("%s: %s", d.Name, msg)
			}
			if i > 0 && kind.defs[i-1].Name >= d.Name {
				t.Errorf("%s is out of order", d.Name)
			}
		}
	}
}
