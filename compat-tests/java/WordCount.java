import java.nio.file.Files;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Kafka Streams counts words, over a repartition topic and a changelog. After its first run what it keeps on the disk is removed, so that
 * the second one restores the counts from the changelog.
 *
 * WordCount ADDR APPLICATION GUARANTEE: GUARANTEE is at_least_once or exactly_once_v2.
 */
public class WordCount {
    public static void main(String[] args) throws Exception {
        String addr = args[0];
        String in = args[1] + "-in";
        String out = args[1] + "-out";
        try (Admin admin = Admin.create(Check.settings(addr))) {
            admin.createTopics(List.of(new NewTopic(in, Optional.of(2), Optional.empty()), new NewTopic(out, Optional.of(1), Optional.empty()))).all().get();
        }
        Properties settings = new Properties();
        settings.putAll(Check.settings(addr, StreamsConfig.APPLICATION_ID_CONFIG, args[1], StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[2],
                StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("streams").toString(), StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100,
                StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0, "auto.offset.reset", "earliest", "heartbeat.interval.ms", 300,
                "session.timeout.ms", 3000)); // it does not leave its group when it is closed
        run(settings, addr, in, out, List.of("to be or not to be", "that is the question"), Map.of("to", "2", "be", "2", "or", "1", "question", "1"));
        run(settings, addr, in, out, List.of("to be"), Map.of("to", "3", "be", "3", "not", "1"));
        System.out.println("counted");
    }

    private static void run(Properties settings, String addr, String in, String out, List<String> lines, Map<String, String> want) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(in, Consumed.with(Serdes.String(), Serdes.String()))
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, org.apache.kafka.streams.kstream.Grouped.with(Serdes.String(), Serdes.String()))
                .count()
                .toStream()
                .mapValues(String::valueOf)
                .to(out, Produced.with(Serdes.String(), Serdes.String()));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings);
                KafkaProducer<String, String> producer = Check.producer(addr);
                KafkaConsumer<String, String> reader = Check.consumer(addr, "isolation.level", "read_committed")) {
            streams.cleanUp();
            streams.start();
            for (String line : lines) {
                producer.send(new ProducerRecord<>(in, line)).get();
            }
            TopicPartition partition = new TopicPartition(out, 0);
            reader.assign(List.of(partition));
            reader.seekToBeginning(List.of(partition));
            Map<String, String> counts = new HashMap<>();
            Check.eventually("the words are counted", Duration.ofSeconds(60), () -> {
                for (ConsumerRecord<String, String> r : reader.poll(Duration.ofMillis(200))) {
                    // A word is never counted twice, and no count is lost on the way to the second run.
                    Check.equal("the count of " + r.key(), r.value(), String.valueOf(Integer.parseInt(counts.getOrDefault(r.key(), "0")) + 1));
                    counts.put(r.key(), r.value());
                }
                Check.equal("an error of the streams", streams.state() == KafkaStreams.State.ERROR, false);
                return counts.entrySet().containsAll(want.entrySet());
            });
        }
    }
}
