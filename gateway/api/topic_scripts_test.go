package api

import (
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicScript is one conversation about topics. Each uses topic names of its own,
// so that all can be recorded from one broker.
type topicScript struct {
	name string
	run  func(c *conversation)
}

var topicScripts = []topicScript{
	{"B95_create_topics", scriptCreateTopics},
	{"create_topics_configs", scriptCreateTopicsConfigs},
	{"delete_topics", scriptDeleteTopics},
	{"create_partitions", scriptCreatePartitions},
	{"B115_metadata", scriptMetadata},
	{"metadata_auto_create", scriptAutoCreate},
	{"init_producer_id", scriptInitProducerID},
	{"describe_configs", scriptDescribeConfigs},
	{"produce_versions", scriptProduceVersions},
	{"produce_refused", scriptProduceRefused},
	{"produce_hostile", scriptProduceHostile},
	{"B164_record_values", scriptProduceRecords},
	{"produce_idempotent", scriptProduceIdempotent},
	{"produce_log_append_time", scriptLogAppendTime},
	{"fetch_versions", scriptFetchVersions},
	{"B161_fetch_middle", scriptFetchMiddle},
	{"fetch_wait", scriptFetchWait},
	{"fetch_limits", scriptFetchLimits},
	{"fetch_session", scriptFetchSession},
	{"fetch_session_errors", scriptFetchSessionErrors},
	{"list_offsets", scriptListOffsets},
	{"list_offsets_times", scriptListOffsetsTimes},
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

// topic creates a topic without writing it down, waits until it can be seen, and
// returns its id.
func (c *conversation) topic(name string, partitions int32, configs ...string) [16]byte {
	c.t.Helper()
	c.quiet = true
	defer func() { c.quiet = false }()
	resp := c.ask(7, createTopics(createTopic(name, partitions, configs...))).(*kmsg.CreateTopicsResponse)
	if code := resp.Topics[0].ErrorCode; code != 0 {
		c.t.Fatalf("create %s: %d", name, code)
	}
	c.await(name, int(partitions))
	id := resp.Topics[0].TopicID
	c.rename(id, "id("+name+")")
	return id
}

// await waits until a topic has so many partitions: Kafka's controller answers
// before its broker knows.
func (c *conversation) await(name string, partitions int) {
	quiet := c.quiet
	c.quiet = true
	defer func() { c.quiet = quiet }()
	for range 100 {
		resp := c.ask(9, metadataOf(name)).(*kmsg.MetadataResponse)
		if len(resp.Topics[0].Partitions) == partitions && c.leads(name, partitions) {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	c.t.Fatalf("%s never has %d partitions", name, partitions)
}

// leads tells whether the broker leads all partitions.
func (c *conversation) leads(name string, partitions int) bool {
	req := listOffsets(name, -1)
	for i := range partitions {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions,
			kmsg.ListOffsetsRequestTopicPartition{Partition: int32(i), CurrentLeaderEpoch: -1, Timestamp: -1})
	}
	for _, p := range c.ask(4, req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions {
		if p.ErrorCode != 0 {
			return false
		}
	}
	return true
}

func metadataOf(names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for i := range names {
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: &names[i]})
	}
	return req
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
	c.await("create-default", 1)
	c.say("names")
	for _, name := range []string{"", ".", "..", "a b", "ä", "a/b", strings.Repeat("x", 249), strings.Repeat("x", 250)} {
		c.ask(7, createTopics(createTopic(name, 1)))
	}
	c.say("names that collide")
	c.topic("collide.with_us", 1)
	c.ask(7, createTopics(createTopic("collide_with.us", 1)))
	c.say("twice the same")
	twice := createTopic("create-twice", 1)
	c.ask(7, createTopics(twice, twice))
	c.ask(4, createTopics(twice, createTopic("create-twice", 2), twice))
	c.say("validate only")
	only := createTopics(createTopic("create-only", 2, "retention.ms", "5"))
	only.ValidateOnly = true
	c.ask(7, only)
	c.ask(4, only)
	only = createTopics(createTopic("create-v7", 2))
	only.ValidateOnly = true
	c.ask(7, only)
	c.say("no topics")
	c.ask(7, createTopics())
	c.say("numbers of partitions and replicas")
	for _, n := range []int32{0, -2, 10_001} {
		c.ask(7, createTopics(createTopic("create-number", n)))
	}
	for _, n := range []int16{0, -2, 2} {
		t := createTopic("create-number", 1)
		t.ReplicationFactor = n
		c.ask(7, createTopics(t))
	}
	scriptCreateAssigned(c)
}

func scriptCreateAssigned(c *conversation) {
	c.say("partitions assigned by hand: good; with numbers; to others; twice; with a gap; no replica")
	assigned := func(partition int32, replicas ...int32) kmsg.CreateTopicsRequestTopicReplicaAssignment {
		return kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: partition, Replicas: replicas}
	}
	for i, all := range [][]kmsg.CreateTopicsRequestTopicReplicaAssignment{
		{assigned(1, 1), assigned(0, 1)},
		{assigned(0, 1)},
		{assigned(0, 1)},
		{assigned(0, 7)},
		{assigned(0, 1), assigned(0, 1)},
		{assigned(0, 1), assigned(2, 1)},
		{assigned(0)},
		{assigned(0, 1, 1)},
	} {
		t := createTopic("create-by-hand"+string('0'+rune(i)), -1)
		t.ReplicationFactor = -1
		switch i {
		case 1:
			t.NumPartitions = 1
		case 2:
			t.ReplicationFactor = 1
		}
		t.ReplicaAssignment = all
		c.ask(7, createTopics(t))
	}
}

// configValues are good and bad values of topics' configurations.
var configValues = [][2]string{
	{"no.such.config", "1"},
	{"retention.ms", "-1"}, {"retention.ms", "-2"}, {"retention.ms", "x"}, {"retention.ms", ""}, {"retention.ms", " 7 "},
	{"retention.ms", "9223372036854775807"}, {"retention.ms", "9223372036854775808"},
	{"cleanup.policy", "compact"}, {"cleanup.policy", "compact,delete"}, {"cleanup.policy", "compact, delete"},
	{"cleanup.policy", "other"}, {"cleanup.policy", ""}, {"cleanup.policy", "delete,delete"}, {"cleanup.policy", "Compact"},
	{"compression.type", "lz4"}, {"compression.type", "none"}, {"compression.gzip.level", "0"}, {"compression.gzip.level", "9"},
	{"message.timestamp.type", "LogAppendTime"}, {"message.timestamp.type", "logappendtime"},
	{"max.message.bytes", "0"}, {"max.message.bytes", "-1"}, {"max.message.bytes", "2147483648"},
	{"max.decompressed.message.bytes", "0"}, {"max.decompressed.message.bytes", "-1"},
	{"min.cleanable.dirty.ratio", "0.1"}, {"min.cleanable.dirty.ratio", "1.1"}, {"min.cleanable.dirty.ratio", "NaN"},
	{"preallocate", "TRUE"}, {"preallocate", "yes"}, {"segment.bytes", "1048576"}, {"segment.bytes", "14"},
	{"segment.ms", "0"}, {"min.insync.replicas", "0"}, {"min.insync.replicas", "2"}, {"remote.storage.enable", "true"},
	{"remote.storage.enable", "false"}, {"leader.replication.throttled.replicas", "*"}, {"leader.replication.throttled.replicas", "x"},
	{"flush.messages", "0"}, {"flush.ms", "0"}, {"local.retention.ms", "-2"}, {"local.retention.ms", "-3"}, {"index.interval.bytes", "-1"},
	{"message.format.version", "3.0"}, {"message.downconversion.enable", "true"}, {"message.timestamp.difference.max.ms", "1"},
	{"remote.copy.lag.ms", "-1"}, {"remote.copy.lag.ms", "-2"}, {"remote.copy.lag.bytes", "-2"}, {"delete.retention.ms", "-1"},
	{"max.compaction.lag.ms", "0"}, {"segment.index.bytes", "3"}, {"segment.jitter.ms", "-1"}, {"file.delete.delay.ms", "-1"},
	{"compression.zstd.level", "23"}, {"compression.lz4.level", "0"}, {"errors.deadletterqueue.group.enable", "x"},
}

func scriptCreateTopicsConfigs(c *conversation) {
	for i, kv := range configValues {
		c.say("%s=%q", kv[0], kv[1])
		c.ask(5, createTopics(createTopic("create-config-"+string('a'+rune(i/26))+string('a'+rune(i%26)), 1, kv[0], kv[1])))
	}
	c.say("a null value, the same twice, lags that do not fit")
	t := createTopic("create-config-null", 1)
	t.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms"}}
	c.ask(5, createTopics(t))
	c.ask(5, createTopics(createTopic("create-config-twice", 1, "retention.ms", "1", "retention.ms", "2")))
	c.ask(5, createTopics(createTopic("create-config-lag", 1, "min.compaction.lag.ms", "2", "max.compaction.lag.ms", "1")))
}

func deleteTopics(names ...string) *kmsg.DeleteTopicsRequest {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TopicNames, req.TimeoutMillis = names, 5000
	for i := range names {
		req.Topics = append(req.Topics, kmsg.DeleteTopicsRequestTopic{Topic: &names[i]})
	}
	return req
}

func scriptDeleteTopics(c *conversation) {
	for v := int16(1); v <= 6; v++ {
		name := "delete-v" + string('0'+rune(v))
		c.topic(name, 1)
		c.ask(v, deleteTopics(name))
		c.ask(v, deleteTopics("delete-nothing"))
	}
	c.say("by id, by an unknown id, by the zero id, by both, twice")
	id := c.topic("delete-id", 1)
	byID := func(ids ...[16]byte) *kmsg.DeleteTopicsRequest {
		req := deleteTopics()
		for _, id := range ids {
			req.Topics = append(req.Topics, kmsg.DeleteTopicsRequestTopic{TopicID: id})
		}
		return req
	}
	c.ask(6, byID(id))
	c.ask(6, byID(id))
	c.ask(6, byID([16]byte{}))
	id = c.topic("delete-both", 1)
	both := deleteTopics("delete-both")
	both.Topics[0].TopicID = id
	c.ask(6, both)
	c.ask(6, byID(id, id))
	c.ask(4, deleteTopics("delete-both", "delete-both"))
	twice := byID(id)
	twice.Topics = append(twice.Topics, deleteTopics("delete-both").Topics...)
	c.ask(6, twice)
	c.ask(6, deleteTopics("delete both"))
	c.ask(6, deleteTopics(""))
	c.ask(6, deleteTopics())
}

func createPartitions(name string, count int32, assignment ...[]int32) *kmsg.CreatePartitionsRequest {
	req := kmsg.NewPtrCreatePartitionsRequest()
	t := kmsg.CreatePartitionsRequestTopic{Topic: name, Count: count}
	for _, replicas := range assignment {
		t.Assignment = append(t.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: replicas})
	}
	req.Topics, req.TimeoutMillis = []kmsg.CreatePartitionsRequestTopic{t}, 5000
	return req
}

func scriptCreatePartitions(c *conversation) {
	c.topic("grow", 1)
	for v := int16(0); v <= 3; v++ {
		c.ask(v, createPartitions("grow", 2+int32(v)))
	}
	c.await("grow", 5)
	for _, n := range []int32{5, 4, 0, -1, 20_000} {
		c.say("from 5 to %d", n)
		c.ask(3, createPartitions("grow", n))
	}
	c.ask(3, createPartitions("grow-nothing", 5))
	c.say("by hand: too few, elsewhere, right, twice the same replica")
	c.ask(3, createPartitions("grow", 7, []int32{1}))
	c.ask(3, createPartitions("grow", 6, []int32{5}))
	c.ask(3, createPartitions("grow", 6, []int32{1, 1}))
	c.ask(3, createPartitions("grow", 6, []int32{1}))
	c.say("validate only, twice the same, none")
	only := createPartitions("grow", 9)
	only.ValidateOnly = true
	c.ask(3, only)
	twice := createPartitions("grow", 9)
	twice.Topics = append(twice.Topics, twice.Topics[0])
	c.ask(3, twice)
	twice.Topics = nil
	c.ask(3, twice)
}

func scriptMetadata(c *conversation) {
	c.say("B115: unknown, invalid and duplicate topics")
	id := c.topic("meta", 2)
	for _, v := range []int16{1, 4, 9, 10, 12, 13} {
		for _, names := range [][]string{{"meta", "meta"}, {"meta-missing"}, {"bad name!"}, {""}} {
			req := metadataOf(names...)
			if v < 4 && names[0] == "meta-missing" {
				continue // would be created
			}
			c.ask(v, req)
		}
	}
	c.say("none")
	c.ask(0, metadataOf("meta"))
	c.ask(1, metadataOf())
	c.ask(12, metadataOf())
	c.say("by id, by an unknown one")
	byID := func(id [16]byte) *kmsg.MetadataRequest {
		req := metadataOf()
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{TopicID: id})
		return req
	}
	c.ask(12, byID(id))
	c.ask(12, byID([16]byte{1, 2}))
	c.ask(13, byID(id))
	c.say("authorized operations")
	for _, v := range []int16{8, 10, 11, 12} {
		req := metadataOf("meta", "meta-missing")
		req.IncludeTopicAuthorizedOperations, req.IncludeClusterAuthorizedOperations = true, true
		c.ask(v, req)
	}
	c.say("an unknown name and an unknown id; a name and its id")
	mixed := metadataOf("meta-missing")
	mixed.Topics = append(mixed.Topics, kmsg.MetadataRequestTopic{TopicID: [16]byte{1, 2}})
	c.ask(12, mixed)
	mixed = metadataOf("meta")
	mixed.Topics[0].TopicID = id
	c.ask(12, mixed)
	mixed.Topics[0].TopicID = [16]byte{9}
	c.ask(12, mixed)
}

func scriptAutoCreate(c *conversation) {
	for _, v := range []int16{1, 3, 4, 9, 12} {
		name := "auto-v" + strconv.Itoa(int(v))
		req := metadataOf(name)
		req.AllowAutoTopicCreation = true
		c.ask(v, req)
		c.await(name, 1)
		c.ask(v, metadataOf(name))
	}
	c.topic("auto.collides", 1)
	req := metadataOf("auto_collides")
	req.AllowAutoTopicCreation = true
	c.ask(12, req)
	req = metadataOf("auto bad")
	req.AllowAutoTopicCreation = true
	c.ask(12, req)
}

// initProducerID asks until the answer is final: Kafka gets its first ids from the
// controller.
func (c *conversation) initProducerID(version int16, req *kmsg.InitProducerIDRequest) *kmsg.InitProducerIDResponse {
	c.quiet = true
	defer func() { c.quiet = false }()
	for {
		resp := c.ask(version, req).(*kmsg.InitProducerIDResponse)
		if resp.ErrorCode != kerr.CoordinatorLoadInProgress.Code {
			return resp
		}
		<-time.After(20 * time.Millisecond)
	}
}

func scriptInitProducerID(c *conversation) {
	last := int64(-1)
	for v := int16(0); v <= 5; v++ {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionTimeoutMillis = 2147483647
		if v >= 4 {
			req.ProducerID, req.ProducerEpoch = last, 3
		}
		resp := c.initProducerID(v, req)
		c.say("v%d: error %d, epoch %d, a new id: %t", v, resp.ErrorCode, resp.ProducerEpoch, resp.ProducerID > last)
		last = resp.ProducerID
	}
	empty := ""
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID = &empty
	c.ask(4, req)
}

func scriptDescribeConfigs(c *conversation) {
	c.topic("described", 1, "retention.ms", "-1", "cleanup.policy", "compact,delete")
	ask := func(v int16, kind kmsg.ConfigResourceType, name string, synonyms bool, keys ...string) {
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.IncludeSynonyms = synonyms
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: name, ConfigNames: keys}}
		c.ask(v, req)
	}
	keys := []string{"retention.ms", "cleanup.policy", "max.message.bytes", "no.such", "preallocate", "flush.ms"}
	for v := int16(1); v <= 4; v++ {
		ask(v, kmsg.ConfigResourceTypeTopic, "described", v%2 == 0, keys...)
	}
	c.say("all of a topic")
	ask(4, kmsg.ConfigResourceTypeTopic, "described", true)
	c.say("unknown, bad and empty names, no keys")
	ask(4, kmsg.ConfigResourceTypeTopic, "described-nothing", false)
	ask(4, kmsg.ConfigResourceTypeTopic, "bad name", false)
	ask(4, kmsg.ConfigResourceTypeTopic, "", false)
	ask(4, kmsg.ConfigResourceTypeTopic, "described", false, []string{}...)
	c.say("a broker")
	ask(4, kmsg.ConfigResourceTypeBroker, "1", true, "log.retention.hours", "message.max.bytes", "num.partitions", "log.cleaner.enable", "log.retention.ms", "log.flush.interval.ms")
	ask(1, kmsg.ConfigResourceTypeBroker, "1", false, "message.max.bytes", "log.dirs")
	ask(4, kmsg.ConfigResourceTypeBroker, "", false)
	ask(4, kmsg.ConfigResourceTypeBroker, "7", false)
	ask(4, kmsg.ConfigResourceTypeBroker, "x", false)
	c.say("other kinds")
	ask(4, kmsg.ConfigResourceType(3), "x", false)
	ask(4, kmsg.ConfigResourceType(0), "x", false)
	ask(4, kmsg.ConfigResourceTypeBrokerLogger, "7", false)
}
