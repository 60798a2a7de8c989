import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;

/**
 * The requests of Confluent's schema registry when it starts, in their order: cluster id twice, topics, creation or verification of its
 * topic, an idempotent producer, a reader without a group, two records without a value, and schemas that it has to read back in 500 ms.
 *
 * RegistryStore ADDR TOPIC WRITES: starts, and registers as many schemas.
 */
public class RegistryStore {
    public static void main(String[] args) throws Exception {
        String addr = args[0];
        String topic = args[1];
        try (Admin admin = Admin.create(Check.settings(addr))) {
            String id = admin.describeCluster().clusterId().get();
            Check.equal("the cluster id is null", id == null, false);
            Check.equal("the cluster id, asked again", admin.describeCluster().clusterId().get(), id);
            Set<String> topics = admin.listTopics().names().get();
            if (!topics.contains(topic)) {
                create(admin, topic);
            }
            verify(admin, topic);
        }
        try (KafkaProducer<String, String> producer = Check.producer(addr, "acks", "all", "enable.idempotence", true);
                KafkaConsumer<String, String> reader = Check.consumer(addr, "enable.auto.commit", false, "auto.offset.reset", "earliest")) {
            TopicPartition partition = new TopicPartition(topic, 0);
            reader.assign(List.of(partition));
            reader.seekToBeginning(List.of(partition));
            for (int i = 0; i < 2; i++) {
                ConsumerRecord<String, String> noop = writeAndRead(producer, reader, topic, "{\"keytype\":\"NOOP\",\"magic\":0}", null, Duration.ofSeconds(60));
                Check.equal("the value of a record without one", noop.value(), null);
            }
            ConsumerRecord<String, String> empty = writeAndRead(producer, reader, topic, "empty", "", Duration.ofMillis(500));
            Check.equal("an empty value", empty.value(), "");
            for (int i = 0; i < Integer.parseInt(args[2]); i++) {
                String schema = "{\"schema\":" + i + "}";
                Check.equal("a schema", writeAndRead(producer, reader, topic, "key-" + i, schema, Duration.ofMillis(500)).value(), schema);
            }
        }
        System.out.println("started");
    }

    private static void create(Admin admin, String topic) throws Exception {
        int nodes = admin.describeCluster().nodes().get().size();
        NewTopic wanted = new NewTopic(topic, Optional.of(1), Optional.of((short) Math.min(nodes, 3))).configs(Map.of("cleanup.policy", "compact"));
        try {
            admin.createTopics(List.of(wanted)).all().get();
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof TopicExistsException)) { // another node was quicker
                throw e;
            }
        }
    }

    private static void verify(Admin admin, String topic) throws Exception {
        int partitions = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        Check.equal("partitions", partitions, 1);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Check.equal("cleanup.policy", admin.describeConfigs(List.of(resource)).all().get().get(resource).get("cleanup.policy").value(), "compact");
    }

    /** Writes a record and waits until the reader has it. */
    private static ConsumerRecord<String, String> writeAndRead(
            KafkaProducer<String, String> producer, KafkaConsumer<String, String> reader, String topic, String key, String value, Duration limit)
            throws Exception {
        long began = System.nanoTime();
        long offset = producer.send(new ProducerRecord<>(topic, 0, key, value)).get().offset();
        while (true) {
            for (ConsumerRecord<String, String> r : reader.poll(limit)) {
                if (r.offset() == offset) {
                    Check.equal("the key at " + offset, r.key(), key);
                    long took = (System.nanoTime() - began) / 1_000_000;
                    if (took > limit.toMillis()) {
                        throw new AssertionError("offset " + offset + " was read " + took + " ms after it was sent, more than " + limit);
                    }
                    return r;
                }
            }
            if (System.nanoTime() - began > limit.toNanos()) {
                throw new AssertionError("offset " + offset + " was not read within " + limit);
            }
        }
    }
}
