package topics

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rollcall-mq/rollcall/store"
)

// ConfigOp is what a change does with a configuration, with the numbers of KIP-339.
type ConfigOp int8

// The operations of a [ConfigChange].
const (
	SetConfig      ConfigOp = 0
	DeleteConfig   ConfigOp = 1
	AppendConfig   ConfigOp = 2
	SubtractConfig ConfigOp = 3
)

// ConfigChange is one change of a configuration; Value counts unless it is deleted.
type ConfigChange struct {
	Op          ConfigOp
	Name, Value string
}

// Alteration is a change of what a resource sets itself. No name occurs twice.
type Alteration struct {
	// Replace: what no change sets is deleted.
	Replace bool
	Changes []ConfigChange
}

// configKind is a kind of resource that has configurations.
type configKind struct {
	// lists: what is a list can be appended to and subtracted from.
	lists bool
	find  func(name string) *ConfigDef
	check func(configs []Config) string
}

var topicConfigs = configKind{true, findDef, CheckConfigs}

// apply returns what a resource sets itself after an alteration, or why it may not be
// (Kafka's ConfigurationControlManager). A value that is appended to or subtracted
// from is the one that counts so far, be it a default.
func (k *configKind) apply(old []Config, a Alteration, broker map[string]string) ([]Config, *Refusal) {
	configs := slices.Clone(old)
	if a.Replace {
		configs = nil
	}
	for _, c := range a.Changes {
		at := slices.IndexFunc(configs, func(o Config) bool { return o.Name == c.Name })
		value := c.Value
		switch c.Op {
		case SetConfig:
		case DeleteConfig:
			if at >= 0 {
				configs = slices.Delete(configs, at, at+1)
			}
			continue
		case AppendConfig, SubtractConfig:
			d := k.find(c.Name)
			if d == nil || d.Type != TypeList || !k.lists {
				word := map[ConfigOp]string{AppendConfig: "APPEND", SubtractConfig: "SUBTRACT"}[c.Op]
				return nil, refuse(InvalidConfig, fmt.Sprintf("Can't %s to key %s because its type is not LIST.", word, c.Name))
			}
			value = changeList(resolve(d, configs, broker).Value, c)
		default:
			return nil, refuse(UnknownServerError, "")
		}
		if at < 0 {
			configs = append(configs, Config{Name: c.Name, Value: value})
		} else {
			configs[at].Value = value
		}
	}
	if msg := k.check(configs); msg != "" {
		return nil, refuse(InvalidConfig, msg)
	}
	return configs, nil
}

// changeList adds items to a list, or takes them from it.
func changeList(value string, c ConfigChange) string {
	items := listItems(value)
	for _, item := range listItems(c.Value) {
		at := slices.Index(items, item)
		switch {
		case c.Op == AppendConfig && at < 0:
			items = append(items, item)
		case c.Op == SubtractConfig && at >= 0:
			items = slices.Delete(items, at, at+1)
		}
	}
	return strings.Join(items, ",")
}

// AlterTopic changes what a topic sets itself and calls done when that is durable and
// counts. With only, it is checked and nothing more. As in Kafka, what is wrong with
// the values is said before that there is no such topic.
func (l *Log) AlterTopic(name string, a Alteration, only bool, done func(*Refusal, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.Topic(name)
	var old []Config
	if t != nil {
		old = t.configs
	}
	configs, r := topicConfigs.apply(old, a, l.broker)
	if r == nil && (t == nil || t.deleting) {
		r = refuse(UnknownTopicOrPartition, fmt.Sprintf("The topic '%s' does not exist.", name))
	}
	if r != nil || only {
		done(r, nil)
		return
	}
	t.configs = configs
	row := t.row()
	l.committer.Submit(store.Op{
		Sync:  true,
		Write: func(b *store.Batch) { b.Set(topicKey(t.ID), row.encode()) },
		Done: func(err error) {
			if err == nil {
				t.show(configs)
			}
			done(nil, err)
		},
	})
}
