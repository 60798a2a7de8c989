package compat

import (
	"strings"
	"testing"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// TestJavaClients: AdminClient, a transactional producer and Kafka Streams, with the tool
// that looks at transactions.
func TestJavaClients(t *testing.T) {
	needKafka(t)
	t.Parallel()
	srv, jvm := rig.Start(t), rig.StartJVM(t)
	run := func(t *testing.T, class string, args ...string) {
		t.Helper()
		if status, out := jvm.Run(t, class, append([]string{srv.Addr}, args...)...); status != 0 {
			t.Errorf("%s %v:\n%s", class, args, out)
		}
	}
	t.Run("AdminClient", func(t *testing.T) {
		run(t, "AdminCheck", unique(t, "admin"))
		recordKafka(t, "AdminClient", "cluster, topics, partitions, offsets, groups")
	})
	t.Run("streams", func(t *testing.T) {
		run(t, "WordCount", unique(t, "words"), "at_least_once")
		recordKafka(t, "Kafka Streams, word count and its restoration", "at_least_once")
	})
	t.Run("streams exactly once", func(t *testing.T) {
		needTransactions(t, srv)
		run(t, "WordCount", unique(t, "words"), "exactly_once_v2")
		recordKafka(t, "Kafka Streams, word count and its restoration", "exactly_once_v2")
	})
	t.Run("transactions", func(t *testing.T) {
		needTransactions(t, srv)
		topic, id := unique(t, "topic"), unique(t, "txn")
		rig.CreateTopic(t, rig.Admin(t, srv.Addr), topic, 1)
		run(t, "Transactions", topic, id)
		recordKafka(t, "transactional producer", "commit, abort, open transaction, offsets, fencing")
		k := kafkaTool{t, srv, jvm}
		k.run("kafka-transactions", "list", id, "CompleteCommit")
		k.run("kafka-transactions", "describe --transactional-id "+id, "CompleteCommit")
		producers := k.run("kafka-transactions", "describe-producers --topic "+topic+" --partition 0", "None")
		if strings.Contains(k.run("kafka-transactions", "find-hanging --broker-id 1"), topic) {
			t.Errorf("a transaction hangs: %s", producers)
		}
		recordKafka(t, "kafka-transactions", "list, describe, describe-producers, find-hanging")
	})
}
