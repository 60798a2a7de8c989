import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What the programs of this directory share. */
final class Check {
    private Check() {}

    /** Throws unless the two are equal. */
    static void equal(String what, Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError(what + ": " + got + ", want " + want);
        }
    }

    /** Waits until the condition is true; it polls or has a cost of its own, so this does not wait in between. */
    static void eventually(String what, Duration limit, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!condition.call()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError(what + ": not within " + limit);
            }
        }
    }

    static Map<String, Object> settings(String addr, Object... more) {
        Map<String, Object> settings = new java.util.HashMap<>(Map.of("bootstrap.servers", addr));
        for (int i = 0; i < more.length; i += 2) {
            settings.put((String) more[i], more[i + 1]);
        }
        return settings;
    }

    static KafkaProducer<String, String> producer(String addr, Object... more) {
        return new KafkaProducer<>(settings(addr, more), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(String addr, Object... more) {
        return new KafkaConsumer<>(settings(addr, more), new StringDeserializer(), new StringDeserializer());
    }
}
