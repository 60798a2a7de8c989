package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// kafkaTools are the main classes behind the scripts of Kafka's bin directory.
var kafkaTools = map[string]string{
	"kafka-topics":          "org.apache.kafka.tools.TopicCommand",
	"kafka-configs":         "org.apache.kafka.tools.ConfigCommand",
	"kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
	"kafka-get-offsets":     "org.apache.kafka.tools.GetOffsetShell",
	"kafka-delete-records":  "org.apache.kafka.tools.DeleteRecordsCommand",
	"kafka-transactions":    "org.apache.kafka.tools.TransactionsCommand",
}

// kafkaTool runs the tools of Kafka against one server.
type kafkaTool struct {
	t   *testing.T
	srv *rig.Server
	jvm *rig.JVM
}

// TestKafkaTools: what administrators type with the tools of Kafka.
func TestKafkaTools(t *testing.T) {
	needKafka(t)
	t.Parallel()
	srv, jvm := rig.Start(t), rig.StartJVM(t)
	for _, tool := range []struct {
		name string
		test func(*testing.T, kafkaTool)
	}{
		{"topics", kafkaTopics}, {"configs", kafkaConfigs}, {"alter configs", kafkaAlterConfigs},
		{"consumer-groups", kafkaConsumerGroups}, {"delete-records", kafkaDeleteRecords},
	} {
		t.Run(tool.name, func(t *testing.T) { tool.test(t, kafkaTool{t, srv, jvm}) })
	}
}

// needKafka skips the test if Kafka's jars or a JDK are not here.
func needKafka(t *testing.T) {
	t.Helper()
	if !*real {
		skip(t, "Apache Kafka", "its clients and tools run with -real")
	}
	need(t, "verifiable")
}

// run runs a tool, which must end with 0 and print each of the wanted texts; white space
// counts as one blank.
func (k kafkaTool) run(tool, args string, want ...string) string {
	k.t.Helper()
	return k.expect(0, tool, args, want...)
}

func (k kafkaTool) expect(status int, tool, args string, want ...string) string {
	k.t.Helper()
	got, out := k.jvm.Run(k.t, kafkaTools[tool], append([]string{"--bootstrap-server", k.srv.Addr}, strings.Fields(args)...)...)
	if got != status {
		k.t.Errorf("%s %s: exit status %d, want %d\n%s", tool, args, got, status, out)
	}
	plain := strings.Join(strings.Fields(out), " ")
	for _, w := range want {
		if !strings.Contains(plain, w) {
			k.t.Errorf("%s %s does not print %q:\n%s", tool, args, w, out)
		}
	}
	return plain
}

// needAPIs skips the test while the server does not advertise these APIs.
func needAPIs(t *testing.T, srv *rig.Server, keys ...kmsg.Key) {
	t.Helper()
	var have []kmsg.Key
	for _, k := range rig.Do[*kmsg.ApiVersionsResponse](rig.Dial(t, srv.Addr), kmsg.NewPtrApiVersionsRequest()).ApiKeys {
		have = append(have, kmsg.Key(k.ApiKey))
	}
	for _, key := range keys {
		if !slices.Contains(have, key) {
			skip(t, key.Name(), "this server does not advertise it")
		}
	}
}

// kafkaTopics: the life of a topic with kafka-topics, and its offsets.
func kafkaTopics(t *testing.T, k kafkaTool) {
	topic := unique(t, "tools")
	k.run("kafka-topics", "--create --topic "+topic+" --partitions 3 --replication-factor 1 --config cleanup.policy=compact", "Created topic "+topic)
	k.expect(1, "kafka-topics", "--create --topic "+topic, "already exists")
	k.run("kafka-topics", "--list", topic)
	k.run("kafka-topics", "--describe --topic "+topic, "PartitionCount: 3 ReplicationFactor: 1 Configs: ", "cleanup.policy=compact",
		"Topic: "+topic+" Partition: 2 Leader: ")
	k.run("kafka-topics", "--alter --topic "+topic+" --partitions 4")
	k.run("kafka-topics", "--describe --topic "+topic, "PartitionCount: 4")
	rig.Write(t, k.srv.Addr, topic, 4, 5)
	k.run("kafka-get-offsets", "--topic "+topic, topic+":0:5", topic+":3:5")
	k.run("kafka-get-offsets", "--topic "+topic+" --time earliest", topic+":0:0")
	k.run("kafka-get-offsets", "--topic "+topic+" --time max-timestamp", topic+":0:4")
	k.run("kafka-topics", "--delete --topic "+topic)
	if out := k.run("kafka-topics", "--list"); strings.Contains(out, topic) {
		t.Errorf("%s is listed after its deletion", topic)
	}
	k.expect(1, "kafka-topics", "--describe --topic "+topic, "does not exist")
	recordKafka(t, "kafka-topics", "create, list, describe, alter, delete")
	recordKafka(t, "kafka-get-offsets", "latest, earliest, max-timestamp")
}

// kafkaConfigs: kafka-configs describes what a topic and the node are told.
func kafkaConfigs(t *testing.T, k kafkaTool) {
	topic := newTopic(t, k.srv)
	k.run("kafka-configs", "--describe --entity-type topics --all --entity-name "+topic, "retention.ms=604800000", "max.message.bytes=1048588")
	k.run("kafka-configs", "--describe --entity-type brokers --entity-name 1 --all", "num.partitions=", "auto.create.topics.enable=true")
	recordKafka(t, "kafka-configs", "describe")
}

// recordKafka notes what one of Kafka's own tools or clients did.
func recordKafka(t *testing.T, scenario, with string) {
	t.Helper()
	record(t, "Apache Kafka", rig.KafkaVersion(t), scenario, with)
}

// kafkaAlterConfigs: kafka-configs changes what a topic and a group are told.
func kafkaAlterConfigs(t *testing.T, k kafkaTool) {
	needAPIs(t, k.srv, kmsg.IncrementalAlterConfigs)
	topic := newTopic(t, k.srv)
	k.run("kafka-configs", "--alter --entity-type topics --entity-name "+topic+" --add-config retention.ms=1000,cleanup.policy=[compact,delete]", "Completed updating config")
	k.run("kafka-configs", "--describe --entity-type topics --entity-name "+topic, "retention.ms=1000", "cleanup.policy=compact,delete")
	k.run("kafka-configs", "--alter --entity-type topics --entity-name "+topic+" --delete-config retention.ms", "Completed updating config")
	if out := k.run("kafka-configs", "--describe --entity-type topics --entity-name "+topic); strings.Contains(out, "retention.ms") {
		t.Errorf("a deleted config is described: %s", out)
	}
	k.expect(1, "kafka-configs", "--alter --entity-type topics --entity-name "+topic+" --add-config retention.ms=soon", "retention.ms")
	recordKafka(t, "kafka-configs", "alter")
}

// kafkaConsumerGroups: what administrators type with kafka-consumer-groups about a
// group that is Stable and then Empty.
func kafkaConsumerGroups(t *testing.T, k kafkaTool) {
	g := quietGroup(t, k.srv, 4)
	rig.Write(t, k.srv.Addr, g.ledger.Topic, 4, 5)
	member := g.ledger.StartMember(t, k.srv.Addr, "sarama-0", rig.MemberConfig{Client: "sarama", Strategy: "range", ClientID: "sarama-client"})
	g.settle(1, 20*time.Second)
	group, topic := g.ledger.Group, g.ledger.Topic
	rig.Eventually(t, 20*time.Second, "everything is committed", func() error {
		offsets, err := g.adm.FetchOffsets(t.Context(), group)
		if err == nil {
			for p := range int32(4) {
				if o, ok := offsets.Lookup(topic, p); !ok || o.At != 5 {
					return fmt.Errorf("partition %d is at %d", p, o.At)
				}
			}
		}
		return err
	})
	k.run("kafka-consumer-groups", "--list", group)
	k.run("kafka-consumer-groups", "--list --state --type", group+" Classic Stable")
	k.run("kafka-consumer-groups", "--describe --group "+group, group+" "+topic+" 0 5 5 0 sarama-client")
	k.run("kafka-consumer-groups", "--describe --members --verbose --group "+group, "sarama-client", topic+":0,1,2,3")
	k.run("kafka-consumer-groups", "--describe --state --group "+group, "range Stable 1")
	k.run("kafka-consumer-groups", "--delete --group "+group, "The group is not empty")
	k.run("kafka-consumer-groups", "--reset-offsets --to-earliest --execute --topic "+topic+" --group "+group, "current state is Stable")
	member.Leave()
	k.run("kafka-consumer-groups", "--describe --state --group "+group, "Empty 0")
	k.run("kafka-consumer-groups", "--reset-offsets --to-earliest --execute --topic "+topic+" --group "+group, group+" "+topic+" 0 0")
	k.run("kafka-consumer-groups", "--reset-offsets --shift-by 3 --execute --topic "+topic+":1 --group "+group, group+" "+topic+" 1 3")
	k.run("kafka-consumer-groups", "--describe --group "+group, group+" "+topic+" 0 0 5 5", group+" "+topic+" 1 3 5 2")
	k.run("kafka-consumer-groups", "--delete-offsets --topic "+topic+":1 --group "+group, topic+" 1 Successful")
	if out := k.run("kafka-consumer-groups", "--describe --group "+group); strings.Contains(out, topic+" 1 ") {
		t.Errorf("a deleted offset is described: %s", out)
	}
	k.run("kafka-consumer-groups", "--delete --group "+group, "was successful")
	k.run("kafka-consumer-groups", "--describe --group "+group, "Group "+group+" not found")
	recordKafka(t, "kafka-consumer-groups", "list, describe, reset-offsets, delete-offsets, delete")
}

// kafkaDeleteRecords: kafka-delete-records moves the beginning of a partition.
func kafkaDeleteRecords(t *testing.T, k kafkaTool) {
	needAPIs(t, k.srv, kmsg.DeleteRecords)
	topic := newTopic(t, k.srv)
	rig.Write(t, k.srv.Addr, topic, 2, 5)
	file := filepath.Join(t.TempDir(), "offsets.json")
	text := fmt.Sprintf(`{"version":1,"partitions":[{"topic":%q,"partition":0,"offset":3},{"topic":%[1]q,"partition":1,"offset":-1}]}`, topic)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	k.run("kafka-delete-records", "--offset-json-file "+file, topic+"-0 low_watermark: 3", topic+"-1 low_watermark: 5")
	k.run("kafka-get-offsets", "--topic "+topic+" --time earliest", topic+":0:3", topic+":1:5", topic+":2:0")
	recordKafka(t, "kafka-delete-records", "to an offset, to the end")
}
