package api

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicScript is one conversation about topics. Each uses topic names of its own,
// so that all can be recorded from one broker.
type topicScript struct {
	name string
	run  func(c *conversation)
}

var topicScripts = []topicScript{
	{"create_topics", scriptCreateTopics},
}

func createTopic(name string, partitions int32, configs ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
	for i := 0; i < len(configs); i += 2 {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: configs[i], Value: &configs[i+1]})
	}
	return t
}

func createTopics(all ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics, req.TimeoutMillis = all, 5000
	return req
}

// one asks for one topic at a time: the order of Kafka's answers is not fixed.
func (c *conversation) create(version int16, t kmsg.CreateTopicsRequestTopic, edit ...func(*kmsg.CreateTopicsRequest)) {
	req := createTopics(t)
	for _, f := range edit {
		f(req)
	}
	resp := c.ask(version, req).(*kmsg.CreateTopicsResponse)
	_ = resp
}

func scriptCreateTopics(c *conversation) {
	c.say("B95: existing, defaults, bad names, twice the same, validate only")
	for v := int16(2); v <= 7; v++ {
		name := "create-v" + string('0'+rune(v))
		c.ask(v, createTopics(createTopic(name, 3)))
		c.ask(v, createTopics(createTopic(name, 3)))
	}
	defaults := createTopic("create-default", -1)
	defaults.ReplicationFactor = -1
	c.ask(4, createTopics(defaults))
	for _, name := range []string{"", ".", "..", "a b", "ä", strings.Repeat("x", 249), strings.Repeat("x", 250)} {
		c.say("name %.10q of %d bytes", name, len(name))
		c.ask(7, createTopics(createTopic(name, 1)))
	}
}
