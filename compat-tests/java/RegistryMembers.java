import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.ClientDnsLookup;
import org.apache.kafka.clients.ClientUtils;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.GroupRebalanceConfig;
import org.apache.kafka.clients.Metadata;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.internals.AbstractCoordinator;
import org.apache.kafka.clients.consumer.internals.ConsumerNetworkClient;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;
import org.apache.kafka.common.utils.internals.LogContext;

/**
 * Members of an sr group on the base class that Confluent's schema registry uses.
 *
 * RegistryMembers ADDR GROUP LEADER NEXT HOST...: a member for each host joins; all have to hear that LEADER leads. Then, if LEADER is one
 * of them, it leaves and NEXT has to lead.
 */
public class RegistryMembers {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        TreeMap<String, Member> members = new TreeMap<>();
        try {
            for (String host : List.of(args).subList(4, args.length)) {
                members.put(host, new Member(args[0], args[1], host));
                members.get(host).start();
            }
            leads(members.values(), args[2]);
            Member leader = members.remove(args[2]);
            if (leader != null) {
                leader.end();
                leads(members.values(), args[3]);
            }
        } finally {
            for (Member m : members.values()) {
                m.end();
            }
        }
        System.out.println("elected");
    }

    private static void leads(Iterable<Member> members, String host) throws Exception {
        for (Member m : members) {
            Check.eventually(m.host + " hears that " + host + " leads", Duration.ofSeconds(30), () -> {
                m.join(10); // a pause, or its end
                if (m.failure != null) {
                    throw m.failure;
                }
                return m.isAlive() && host.equals(m.leader);
            });
        }
    }

    /** One member: its own thread polls, as the registry's elector does. */
    private static class Member extends Thread {
        final String host;
        private final Coordinator coordinator;
        private volatile boolean ended;
        volatile String leader;
        volatile Exception failure;

        Member(String addr, String group, String host) {
            super("registry " + host);
            this.host = host;
            this.coordinator = new Coordinator(addr, group, this);
        }

        @Override
        public void run() {
            try {
                while (!ended) {
                    coordinator.poll(100);
                }
            } catch (Exception e) {
                failure = e;
            } finally {
                coordinator.close();
            }
        }

        void end() throws InterruptedException {
            ended = true;
            join();
        }

        byte[] identity() {
            return write(Map.of("version", 1, "host", host, "port", 1, "master_eligibility", true, "scheme", "http", "leader", false));
        }
    }

    private static byte[] write(Map<String, ?> value) {
        try {
            return JSON.writeValueAsBytes(value);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static JsonNode read(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        try {
            return JSON.readTree(copy);
        } catch (IOException e) {
            throw new UncheckedIOException(new String(copy, StandardCharsets.UTF_8), e);
        }
    }

    private static class Coordinator extends AbstractCoordinator {
        private final Member member;

        Coordinator(String addr, String group, Member member) {
            this(group, member, new ConsumerConfig(Check.settings(addr, "group.id", group, "client.id", "sr-1",
                    "key.deserializer", StringDeserializer.class, "value.deserializer", StringDeserializer.class)), new LogContext("[" + member.host + "] "));
        }

        private Coordinator(String group, Member member, ConsumerConfig config, LogContext log) {
            this(group, member, config, log, metadata(config, log), new Metrics());
        }

        private static Metadata metadata(ConsumerConfig config, LogContext log) {
            Metadata metadata = new Metadata(100, 1000, 300_000, log, new ClusterResourceListeners());
            metadata.bootstrap(ClientUtils.parseAndValidateAddresses(
                    config.getList(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG), ClientDnsLookup.USE_ALL_DNS_IPS));
            return metadata;
        }

        private Coordinator(String group, Member member, ConsumerConfig config, LogContext log, Metadata metadata, Metrics metrics) {
            super(new GroupRebalanceConfig(3000, 300_000, 200, group, Optional.empty(), "", 100, 1000), log,
                    new ConsumerNetworkClient(log, ClientUtils.createNetworkClient(config, config.getList(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG),
                            metrics, "sr", log, new ApiVersions(), Time.SYSTEM, 1000, metadata, null, null), metadata, Time.SYSTEM, 100, 305_000, Integer.MAX_VALUE),
                    metrics, "sr", Time.SYSTEM);
            this.member = member;
        }

        void poll(long millis) {
            Timer timer = time.timer(millis);
            if (coordinatorUnknown() && !ensureCoordinatorReady(timer)) {
                return;
            }
            if (rejoinNeededOrPending()) {
                ensureActiveGroup();
            }
            pollHeartbeat(time.milliseconds());
            client.poll(time.timer(Math.min(millis, timeToNextHeartbeat(time.milliseconds()))));
        }

        @Override
        public String protocolType() {
            return "sr";
        }

        @Override
        public JoinGroupRequestData.JoinGroupRequestProtocolCollection metadata() {
            return new JoinGroupRequestData.JoinGroupRequestProtocolCollection(List.of(
                    new JoinGroupRequestData.JoinGroupRequestProtocol().setName("v0").setMetadata(member.identity())).iterator());
        }

        @Override
        protected boolean onJoinPrepare(Timer timer, int generation, String memberId) {
            member.leader = null;
            return true;
        }

        @Override
        protected Map<String, ByteBuffer> onLeaderElected(
                String leaderId, String protocol, List<JoinGroupResponseData.JoinGroupResponseMember> all, boolean skipAssignment) {
            TreeMap<String, String> urls = new TreeMap<>();
            Map<String, JsonNode> identities = new HashMap<>();
            List<String> twins = new ArrayList<>();
            for (JoinGroupResponseData.JoinGroupResponseMember m : all) {
                JsonNode identity = read(ByteBuffer.wrap(m.metadata()));
                identities.put(m.memberId(), identity);
                String url = identity.get("scheme").asText() + "://" + identity.get("host").asText() + ":" + identity.get("port").asInt();
                if (identity.get("master_eligibility").asBoolean() && urls.put(url, m.memberId()) != null) {
                    twins.add(url);
                }
            }
            Map<String, Object> assignment = new HashMap<>(Map.of("version", 1, "error", twins.isEmpty() ? 0 : 1));
            if (twins.isEmpty() && !urls.isEmpty()) {
                String chosen = urls.firstEntry().getValue();
                assignment.put("master", chosen);
                assignment.put("master_identity", identities.get(chosen));
            }
            Map<String, ByteBuffer> assignments = new HashMap<>();
            for (String id : identities.keySet()) {
                assignments.put(id, ByteBuffer.wrap(write(assignment)));
            }
            return assignments;
        }

        @Override
        protected void onJoinComplete(int generation, String memberId, String protocol, ByteBuffer bytes) {
            JsonNode assignment = read(bytes);
            Check.equal("error", assignment.get("error").asInt(), 0);
            member.leader = assignment.get("master_identity").get("host").asText();
        }
    }
}
