import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/**
 * What programs do with AdminClient: the cluster, the life of a topic, and the offsets of a group.
 *
 * AdminCheck ADDR NAME: NAME is that of a new topic and of a new group.
 */
public class AdminCheck {
    public static void main(String[] args) throws Exception {
        String addr = args[0];
        String name = args[1];
        try (Admin admin = Admin.create(Check.settings(addr))) {
            DescribeClusterResult cluster = admin.describeCluster();
            int node = cluster.controller().get().id();
            Check.equal("the controller is a node", cluster.nodes().get().stream().anyMatch(n -> n.id() == node), true);

            var created = admin.createTopics(List.of(new NewTopic(name, Optional.of(2), Optional.empty()).configs(Map.of("retention.ms", "86400000"))));
            Check.equal("partitions", created.numPartitions(name).get(), 2);
            Check.equal("a config of the answer", created.config(name).get().get("retention.ms").value(), "86400000");
            fails(TopicExistsException.class, () -> admin.createTopics(List.of(new NewTopic(name, 1, (short) 1))).all().get());
            admin.createPartitions(Map.of(name, NewPartitions.increaseTo(3))).all().get();
            fails(InvalidPartitionsException.class, () -> admin.createPartitions(Map.of(name, NewPartitions.increaseTo(2))).all().get());
            TopicDescription topic = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
            Check.equal("partitions", topic.partitions().size(), 3);
            Check.equal("the leader is the controller of one node", topic.partitions().get(2).leader().id(), node);
            Check.equal("the topic by its id", admin.describeTopics(org.apache.kafka.common.TopicCollection.ofTopicIds(List.of(topic.topicId())))
                    .allTopicIds().get().get(topic.topicId()).name(), name);

            group(admin, addr, name);
            admin.deleteTopics(List.of(name)).all().get();
            fails(UnknownTopicOrPartitionException.class, () -> admin.describeTopics(List.of(name)).allTopicNames().get());
        }
        System.out.println("administered");
    }

    private static void group(Admin admin, String addr, String name) throws Exception {
        TopicPartition partition = new TopicPartition(name, 1);
        try (KafkaProducer<String, String> producer = Check.producer(addr)) {
            for (int i = 0; i < 3; i++) {
                producer.send(new ProducerRecord<>(name, 1, 1000L + i, "key", "value")).get();
            }
        }
        var listed = admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get();
        Check.equal("the end", listed.offset(), 3L);
        Check.equal("the offset of a time", admin.listOffsets(Map.of(partition, OffsetSpec.forTimestamp(1001))).partitionResult(partition).get().offset(), 1L);

        admin.alterConsumerGroupOffsets(name, Map.of(partition, new OffsetAndMetadata(2, "why"))).all().get();
        OffsetAndMetadata committed = admin.listConsumerGroupOffsets(Map.of(name, new ListConsumerGroupOffsetsSpec()))
                .partitionsToOffsetAndMetadata(name).get().get(partition);
        Check.equal("an offset and its metadata", committed.offset() + " " + committed.metadata(), "2 why");
        try (KafkaConsumer<String, String> reader = Check.consumer(addr, "group.id", name)) {
            Check.equal("what a consumer is told", reader.committed(Set.of(partition)).get(partition), committed);
        }
        Check.equal("the state", admin.describeConsumerGroups(List.of(name)).all().get().get(name).groupState(), GroupState.EMPTY);
        Check.equal("the group is listed", admin.listGroups().all().get().stream().anyMatch(g -> g.groupId().equals(name)), true);
        admin.deleteConsumerGroupOffsets(name, Set.of(partition)).all().get();
        Check.equal("offsets after the deletion", admin.listConsumerGroupOffsets(name).partitionsToOffsetAndMetadata().get().get(partition), null);
        admin.alterConsumerGroupOffsets(name, Map.of(partition, new OffsetAndMetadata(1))).all().get();
        admin.deleteConsumerGroups(List.of(name)).all().get();
        fails(GroupIdNotFoundException.class, () -> admin.describeConsumerGroups(List.of(name)).all().get());
    }

    private interface Action {
        void run() throws Exception;
    }

    private static void fails(Class<? extends Exception> with, Action action) throws Exception {
        try {
            action.run();
        } catch (ExecutionException e) {
            Check.equal("the failure", e.getCause().getClass(), with);
            return;
        }
        throw new AssertionError("no " + with.getSimpleName());
    }
}
