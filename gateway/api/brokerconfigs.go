package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// brokerConfig is a configuration of the node, under Kafka's name.
type brokerConfig struct {
	name string
	kind topics.ConfigType
	// def is the default; null stands for none.
	def string
}

const null = "\x00"

// brokerConfigs are the configurations that DescribeConfigs tells of a node: those
// that Rollcall acts on, and those of Kafka's that say how it behaves in any case.
// What is set for all topics comes from topics.ConfigDefs.
var brokerConfigs = makeBrokerConfigs([]brokerConfig{
	{"advertised.listeners", topics.TypeString, null},
	{"auto.create.topics.enable", topics.TypeBoolean, "true"},
	{"authorizer.class.name", topics.TypeString, ""},
	{"broker.rack", topics.TypeString, null},
	{"connections.max.idle.ms", topics.TypeLong, "600000"},
	{"default.replication.factor", topics.TypeInt, "1"},
	{"delete.topic.enable", topics.TypeBoolean, "true"},
	{"fetch.max.bytes", topics.TypeInt, "57671680"},
	{"group.initial.rebalance.delay.ms", topics.TypeInt, "3000"},
	{"group.max.session.timeout.ms", topics.TypeInt, "1800000"},
	{"group.max.size", topics.TypeInt, "2147483647"},
	{"group.min.session.timeout.ms", topics.TypeInt, "6000"},
	{"listeners", topics.TypeString, "PLAINTEXT://127.0.0.1:9092"},
	{"log.cleaner.enable", topics.TypeBoolean, "true"},
	{"log.retention.check.interval.ms", topics.TypeLong, "300000"},
	{"max.connections", topics.TypeInt, "2147483647"},
	{"max.incremental.fetch.session.cache.slots", topics.TypeInt, "1000"},
	{"num.partitions", topics.TypeInt, "1"},
	{"offset.metadata.max.bytes", topics.TypeInt, "4096"},
	{"offsets.commit.timeout.ms", topics.TypeInt, "5000"},
	{"offsets.retention.check.interval.ms", topics.TypeLong, "600000"},
	{"offsets.retention.minutes", topics.TypeInt, "10080"},
	{"offsets.topic.num.partitions", topics.TypeInt, "50"},
	{"offsets.topic.replication.factor", topics.TypeShort, "1"},
	{"producer.id.expiration.ms", topics.TypeInt, "86400000"},
	{"queued.max.request.bytes", topics.TypeLong, "268435456"},
	{"socket.request.max.bytes", topics.TypeInt, "104857600"},
})

// hourKeys are keys of a coarser unit, whose default stands in for that of the key
// in milliseconds.
var hourKeys = map[string]string{"log.retention.hours": "168", "log.roll.hours": "168", "log.roll.jitter.hours": "0"}

// makeBrokerConfigs adds the keys that set a configuration for all topics.
func makeBrokerConfigs(all []brokerConfig) []brokerConfig {
	for i := range topics.ConfigDefs {
		d := &topics.ConfigDefs[i]
		for _, key := range d.Broker {
			c := brokerConfig{name: key, kind: d.Type, def: d.Default}
			if len(d.Broker) > 1 || key == "log.flush.interval.ms" {
				c.def = null
			}
			if hours, ok := hourKeys[key]; ok {
				c.kind, c.def = topics.TypeInt, hours
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b brokerConfig) int { return strings.Compare(a.name, b.name) })
	return all
}

// brokerConfigsOf describes the node: what was set, else the default.
func (h *TopicHandlers) brokerConfigsOf(rr *kmsg.DescribeConfigsRequestResource) []kmsg.DescribeConfigsResponseResourceConfig {
	node := strconv.Itoa(int(h.Cluster.Get().NodeID))
	fixed := map[string]string{"broker.id": node, "node.id": node}
	if dir, ok := h.Config.Effective["data.dir"]; ok {
		fixed["log.dirs"] = dir
	}
	var all []kmsg.DescribeConfigsResponseResourceConfig
	for _, name := range []string{"broker.id", "node.id", "log.dirs"} {
		if v, ok := fixed[name]; ok && wanted(rr, name) {
			kind := topics.TypeInt
			if name == "log.dirs" {
				kind = topics.TypeList
			}
			all = append(all, describeBrokerConfig(brokerConfig{name, kind, null}, v, true))
		}
	}
	for _, c := range brokerConfigs {
		if wanted(rr, c.name) {
			v, set := h.Config.Effective[c.name]
			all = append(all, describeBrokerConfig(c, v, set))
		}
	}
	return all
}

// describeBrokerConfig describes one key; none can be changed at run time.
func describeBrokerConfig(c brokerConfig, value string, set bool) kmsg.DescribeConfigsResponseResourceConfig {
	rc := kmsg.NewDescribeConfigsResponseResourceConfig()
	rc.Name, rc.ConfigType, rc.ReadOnly = c.name, kmsg.ConfigType(c.kind), true
	rc.Source = kmsg.ConfigSourceDefaultConfig
	if set {
		rc.Value, rc.Source = &value, kmsg.ConfigSourceStaticBrokerConfig
		rc.ConfigSynonyms = append(rc.ConfigSynonyms, synonym(c.name, value, kmsg.ConfigSourceStaticBrokerConfig))
	}
	if c.def != null {
		if !set {
			rc.Value = &c.def
		}
		rc.ConfigSynonyms = append(rc.ConfigSynonyms, synonym(c.name, c.def, kmsg.ConfigSourceDefaultConfig))
	}
	return rc
}

func synonym(name, value string, source kmsg.ConfigSource) kmsg.DescribeConfigsResponseResourceConfigConfigSynonym {
	return kmsg.DescribeConfigsResponseResourceConfigConfigSynonym{Name: name, Value: &value, Source: source}
}

// topicSynonyms are all values that a topic's configuration could have, the one that
// counts first.
func (h *TopicHandlers) topicSynonyms(v *topics.Value) (all []kmsg.DescribeConfigsResponseResourceConfigConfigSynonym) {
	if v.FromTopic {
		all = append(all, synonym(v.Name, v.Parsed(), kmsg.ConfigSourceDynamicTopicConfig))
	}
	for _, key := range v.Broker {
		if set, ok := h.Config.Effective[key]; ok {
			all = append(all, synonym(key, set, kmsg.ConfigSourceStaticBrokerConfig))
		}
	}
	if len(v.Broker) > 0 {
		at, _ := slices.BinarySearchFunc(brokerConfigs, v.Broker[0], func(c brokerConfig, n string) int { return strings.Compare(c.name, n) })
		if def := brokerConfigs[at].def; def != null {
			all = append(all, synonym(v.Broker[0], def, kmsg.ConfigSourceDefaultConfig))
		}
	}
	return all
}
