import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/**
 * A transactional producer: what is committed is seen, what is aborted is not; an open transaction holds readers of committed records
 * back; offsets are part of it; a second producer with the id fences the first.
 *
 * Transactions ADDR TOPIC TRANSACTIONAL-ID: TOPIC is new and has one partition.
 */
public class Transactions {
    private static TopicPartition partition;

    public static void main(String[] args) throws Exception {
        String addr = args[0];
        partition = new TopicPartition(args[1], 0);
        try (KafkaProducer<String, String> producer = Check.producer(addr, "transactional.id", args[2])) {
            producer.initTransactions();
            write(producer, "a", 10, true);
            write(producer, "b", 5, false);
            write(producer, "c", 10, true);
            Check.equal("committed records", count(addr, "read_committed"), Map.of("a", 10, "c", 10));
            Check.equal("all records", count(addr, "read_uncommitted"), Map.of("a", 10, "b", 5, "c", 10));

            producer.beginTransaction();
            producer.send(new ProducerRecord<>(partition.topic(), 0, "d", "open")).get();
            long stable = end(addr, "read_committed");
            Check.equal("records that an open transaction holds back", end(addr, "read_uncommitted") - stable, 1L);
            producer.abortTransaction();
            Check.eventually("the end of the transaction lets readers go on", Duration.ofSeconds(10), () -> end(addr, "read_committed") == stable + 2);
            offsets(addr, producer, "group-" + args[2]);
            fence(addr, producer, args[2]);
        }
        System.out.println("done");
    }

    private static void write(KafkaProducer<String, String> producer, String key, int n, boolean commit) {
        producer.beginTransaction();
        for (int i = 0; i < n; i++) {
            producer.send(new ProducerRecord<>(partition.topic(), 0, key, key + i));
        }
        if (commit) {
            producer.commitTransaction();
        } else {
            producer.flush();
            producer.abortTransaction();
        }
    }

    /** How many records of each key a reader gets up to the end that it is told. */
    private static Map<String, Integer> count(String addr, String isolation) throws Exception {
        Map<String, Integer> counts = new HashMap<>();
        try (KafkaConsumer<String, String> reader = Check.consumer(addr, "isolation.level", isolation)) {
            reader.assign(List.of(partition));
            reader.seekToBeginning(List.of(partition));
            long end = reader.endOffsets(List.of(partition)).get(partition);
            Check.eventually("a reader comes to the end", Duration.ofSeconds(20), () -> {
                for (ConsumerRecord<String, String> r : reader.poll(Duration.ofMillis(200))) {
                    counts.merge(r.key(), 1, Integer::sum);
                }
                return reader.position(partition) >= end;
            });
        }
        return counts;
    }

    private static long end(String addr, String isolation) {
        try (KafkaConsumer<String, String> reader = Check.consumer(addr, "isolation.level", isolation)) {
            return reader.endOffsets(List.of(partition)).get(partition);
        }
    }

    /** Offsets of a group are committed with the transaction, and not at all when it is aborted. */
    private static void offsets(String addr, KafkaProducer<String, String> producer, String group) throws Exception {
        try (KafkaConsumer<String, String> member = Check.consumer(addr, "group.id", group, "auto.offset.reset", "earliest",
                "enable.auto.commit", false, "isolation.level", "read_committed")) {
            member.subscribe(List.of(partition.topic()));
            Check.eventually("the member reads", Duration.ofSeconds(30), () -> !member.poll(Duration.ofMillis(200)).isEmpty());
            for (boolean commit : new boolean[] {false, true}) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(partition.topic(), 0, "e", "with offsets"));
                producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(7)), member.groupMetadata());
                if (!commit) {
                    producer.abortTransaction();
                    Check.equal("an aborted offset", member.committed(Set.of(partition)).get(partition), null);
                } else {
                    producer.commitTransaction();
                    Check.equal("a committed offset", member.committed(Set.of(partition)).get(partition).offset(), 7L);
                }
            }
        }
    }

    private static void fence(String addr, KafkaProducer<String, String> first, String id) {
        first.beginTransaction();
        first.send(new ProducerRecord<>(partition.topic(), 0, "f", "of the first"));
        first.flush();
        try (KafkaProducer<String, String> second = Check.producer(addr, "transactional.id", id)) {
            second.initTransactions();
            try {
                first.commitTransaction();
            } catch (ProducerFencedException | InvalidProducerEpochException e) {
                write(second, "g", 1, true);
                return;
            }
            throw new KafkaException("a producer commits after another one took its id");
        }
    }
}
