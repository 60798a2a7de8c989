package api

import (
	"time"

	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var configScripts = []topicScript{
	{"alter_configs_incremental", scriptIncrementalAlterConfigs},
	{"alter_configs_values", scriptAlterConfigsValues},
	{"alter_configs", scriptAlterConfigs},
	{"alter_configs_resources", scriptAlterConfigsResources},
	{"group_configs", scriptGroupConfigs},
}

func init() { topicScripts = append(topicScripts, configScripts...) }

// change is one operation of IncrementalAlterConfigs; "null" stands for null.
type change struct {
	op          kmsg.IncrementalAlterConfigOp
	name, value string
}

func set(name, value string) change { return change{kmsg.IncrementalAlterConfigOpSet, name, value} }

func unset(name string) change { return change{kmsg.IncrementalAlterConfigOpDelete, name, "null"} }

func add(name, value string) change { return change{kmsg.IncrementalAlterConfigOpAppend, name, value} }

func subtract(name, value string) change {
	return change{kmsg.IncrementalAlterConfigOpSubtract, name, value}
}

func alterRequest(kind kmsg.ConfigResourceType, name string, all ...change) *kmsg.IncrementalAlterConfigsRequest {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kind, ResourceName: name}
	for i := range all {
		rc := kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: all[i].name, Op: all[i].op}
		if all[i].value != "null" {
			rc.Value = &all[i].value
		}
		r.Configs = append(r.Configs, rc)
	}
	req.Resources = append(req.Resources, r)
	return req
}

// replacement is an AlterConfigs, of names and values in turn.
func replacement(kind kmsg.ConfigResourceType, name string, all ...string) *kmsg.AlterConfigsRequest {
	req := kmsg.NewPtrAlterConfigsRequest()
	r := kmsg.AlterConfigsRequestResource{ResourceType: kind, ResourceName: name}
	for i := 0; i < len(all); i += 2 {
		rc := kmsg.AlterConfigsRequestResourceConfig{Name: all[i]}
		if all[i+1] != "null" {
			rc.Value = &all[i+1]
		}
		r.Configs = append(r.Configs, rc)
	}
	req.Resources = append(req.Resources, r)
	return req
}

func described(kind kmsg.ConfigResourceType, name string, keys ...string) *kmsg.DescribeConfigsRequest {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms = true
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: name, ConfigNames: keys}}
	return req
}

// shown describes what a resource sets itself, when Kafka's broker has heard of it
// from its controller.
func (c *conversation) shown(kind kmsg.ConfigResourceType, name string, keys ...string) {
	if *record != "" {
		<-time.After(300 * time.Millisecond)
	}
	c.ask(4, described(kind, name, keys...))
}

const topicKind = kmsg.ConfigResourceTypeTopic

func scriptIncrementalAlterConfigs(c *conversation) {
	c.words = true
	c.topic("altered", 1, "retention.ms", "1000", "cleanup.policy", "delete")
	keys := []string{"retention.ms", "cleanup.policy", "max.message.bytes", "retention.bytes", "leader.replication.throttled.replicas"}
	alter := func(all ...change) {
		c.ask(1, alterRequest(topicKind, "altered", all...))
		c.shown(topicKind, "altered", keys...)
	}
	for v := int16(0); v <= 1; v++ {
		c.ask(v, alterRequest(topicKind, "altered", set("retention.ms", "2000"), set("max.message.bytes", "77")))
	}
	c.shown(topicKind, "altered", keys...)
	c.say("delete, what is not set, too; a value with a delete")
	alter(unset("retention.ms"), unset("retention.bytes"), change{1, "max.message.bytes", "x"})
	c.say("append, twice the same, two items, to a default; to what is no list")
	alter(add("cleanup.policy", "compact"))
	alter(add("cleanup.policy", "compact"))
	alter(subtract("cleanup.policy", "delete"))
	alter(subtract("cleanup.policy", "delete"))
	alter(subtract("cleanup.policy", "compact"))
	alter(set("cleanup.policy", "delete"))
	alter(unset("cleanup.policy"))
	alter(add("cleanup.policy", "compact"))
	alter(unset("cleanup.policy"))
	alter(subtract("cleanup.policy", "delete"))
	alter(add("leader.replication.throttled.replicas", "0:1,1:1"))
	alter(add("leader.replication.throttled.replicas", "0:1,2:1"))
	alter(subtract("leader.replication.throttled.replicas", "0:1"))
	alter(add("leader.replication.throttled.replicas", "x"))
	alter(subtract("leader.replication.throttled.replicas", "1:1,2:1"))
	alter(add("retention.ms", "1"))
	alter(subtract("retention.ms", "1"))
	c.say("space and case")
	alter(set("retention.ms", " 7 "), set("cleanup.policy", "compact, delete"), set("preallocate", " TRUE "))
	c.shown(topicKind, "altered", "preallocate")
	alter(unset("retention.ms"), unset("cleanup.policy"))
	c.say("null to set, to append, to subtract; an unknown operation")
	alter(set("retention.ms", "null"))
	alter(add("cleanup.policy", "null"))
	alter(subtract("cleanup.policy", "null"))
	alter(change{7, "retention.ms", "1"})
	c.say("unknown: set, delete, append; a key of brokers; an empty name")
	alter(set("no.such", "1"))
	alter(unset("no.such"))
	alter(add("no.such", "1"))
	alter(set("log.retention.ms", "1"))
	alter(set("", "1"))
	c.say("twice the same key; one bad of two; nothing")
	alter(set("retention.ms", "1"), set("retention.ms", "2"))
	alter(set("retention.ms", "3"), unset("retention.ms"))
	alter(set("retention.bytes", "5"), set("retention.ms", "x"))
	alter()
	c.say("lags that do not fit, of which one is there")
	alter(set("min.compaction.lag.ms", "10"))
	alter(set("max.compaction.lag.ms", "9"))
	alter(unset("min.compaction.lag.ms"))
	c.say("validate only: good, bad")
	for _, value := range []string{"4000", "x"} {
		req := alterRequest(topicKind, "altered", set("retention.ms", value))
		req.ValidateOnly = true
		c.ask(1, req)
	}
	c.shown(topicKind, "altered", keys...)
}

// scriptAlterConfigsValues sets what scriptCreateTopicsConfigs tries.
func scriptAlterConfigsValues(c *conversation) {
	c.words = true
	c.topic("alter-values", 1)
	for _, kv := range configValues {
		c.say("%s=%q", kv[0], kv[1])
		c.ask(1, alterRequest(topicKind, "alter-values", set(kv[0], kv[1])))
		c.ask(1, alterRequest(topicKind, "alter-values", unset(kv[0])))
	}
}

func scriptAlterConfigs(c *conversation) {
	c.words = true
	c.topic("replaced", 1, "retention.ms", "1000", "cleanup.policy", "compact")
	keys := []string{"retention.ms", "cleanup.policy", "max.message.bytes"}
	for v := int16(0); v <= 2; v++ {
		c.ask(v, replacement(topicKind, "replaced", "retention.ms", "2000", "max.message.bytes", "77"))
	}
	c.shown(topicKind, "replaced", keys...)
	for _, all := range [][]string{
		{"retention.ms", "x"}, {"retention.ms", "null"}, {"no.such", "1"}, {"no.such", "null"},
		{"retention.ms", "1", "retention.ms", "2"}, {"min.compaction.lag.ms", "10", "max.compaction.lag.ms", "9"}, {},
	} {
		c.say("%q", all)
		c.ask(2, replacement(topicKind, "replaced", all...))
		c.shown(topicKind, "replaced", keys...)
	}
	only := replacement(topicKind, "replaced", "retention.ms", "5")
	only.ValidateOnly = true
	c.ask(2, only)
	only = replacement(topicKind, "replaced", "retention.ms", "x")
	only.ValidateOnly = true
	c.ask(2, only)
	c.shown(topicKind, "replaced", keys...)
}

func scriptAlterConfigsResources(c *conversation) {
	c.words = true
	c.topic("alter-twice", 1)
	for _, kind := range []kmsg.ConfigResourceType{0, 2, 3, 4, 8, 32, 99} {
		for _, name := range []string{"", "x", "bad name", "7"} {
			if kind == 4 && name == "" {
				continue // Kafka has defaults of all brokers
			}
			c.say("%d %q", kind, name)
			c.ask(1, alterRequest(kind, name, set("no.such", "1")))
			c.ask(1, alterRequest(kind, name))
			c.ask(2, replacement(kind, name, "no.such", "1"))
			c.ask(2, replacement(kind, name))
			c.ask(4, described(kind, name, "no.such"))
		}
	}
	c.say("the broker itself")
	c.ask(1, alterRequest(4, "1", set("num.network.threads.x", "null")))
	c.ask(1, alterRequest(4, "1", set("listeners", "x"), unset("listeners")))
	c.ask(1, alterRequest(4, "1", set("log.dirs", "/x")))
	c.ask(1, alterRequest(4, "", set("log.dirs", "/x")))
	c.ask(1, alterRequest(4, "1"))
	c.ask(1, alterRequest(8, "1", set("no.such", "INFO")))
	c.ask(1, alterRequest(8, "1", unset("no.such")))
	c.ask(1, alterRequest(8, "1"))
	c.say("twice the same resource, and one that is fine; none")
	req := alterRequest(topicKind, "alter-twice", set("retention.ms", "1"))
	req.Resources = append(req.Resources, req.Resources[0], alterRequest(topicKind, "alter-none", set("retention.ms", "1")).Resources[0])
	c.ask(1, req)
	req.Resources = nil
	c.ask(1, req)
	old := replacement(topicKind, "alter-twice")
	old.Resources = nil
	c.ask(2, old)
	twice := described(topicKind, "alter-twice", "retention.ms")
	twice.Resources = append(twice.Resources, twice.Resources[0])
	c.ask(4, twice)
	twice.Resources = nil
	c.ask(4, twice)
}

const groupKind = kmsg.ConfigResourceTypeGroupConfig

func scriptGroupConfigs(c *conversation) {
	c.words = true
	alter := func(name string, all ...change) {
		c.ask(1, alterRequest(groupKind, name, all...))
		c.shown(groupKind, name)
	}
	c.say("of a group that nobody knows")
	c.shown(groupKind, "configured")
	alter("configured", set("consumer.session.timeout.ms", "50000"), set("consumer.heartbeat.interval.ms", "6000"))
	alter("configured", unset("consumer.session.timeout.ms"))
	for _, d := range topics.GroupConfigDefs {
		for _, value := range []string{"-1", "0", "1", "1000000000", "x", " 46000 ", "", "earliest", "by_duration:PT1H", "by_duration:x", "read_committed", "true", "a:b,c"} {
			c.say("%s=%q", d.Name, value)
			c.ask(1, alterRequest(groupKind, "configured", set(d.Name, value)))
			c.ask(1, alterRequest(groupKind, "configured", unset(d.Name)))
		}
	}
	c.ask(1, alterRequest(groupKind, "configured", set("no.such", "1")))
	c.ask(1, alterRequest(groupKind, "configured", add("streams.rack.aware.assignment.tags", "a,b"), set("consumer.session.timeout.ms", "x")))
	c.ask(1, alterRequest(groupKind, "configured", add("streams.rack.aware.assignment.tags", "a,b")))
	c.ask(1, alterRequest(groupKind, "configured", set("consumer.session.timeout.ms", "47000"), set("consumer.session.timeout.ms", "47000")))
	c.ask(1, alterRequest(groupKind, "configured", add("consumer.session.timeout.ms", "1")))
	c.ask(2, replacement(groupKind, "configured", "consumer.session.timeout.ms", "46000"))
	c.shown(groupKind, "configured")
	c.say("which there are, by version and kind")
	list := func(v int16, kinds ...int8) {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.ResourceTypes = kinds
		c.ask(v, req)
	}
	list(1, 32)
	list(0)
	list(0, 16)
	list(1, 4)
	list(1, 99)
	list(1, 8)
	list(1, 16)
	c.ask(2, replacement(groupKind, "configured"))
	list(1, 32)
}
