// Apache Kafka's Java client as a driver: one JSON call a line on stdin, one answer a line on stdout (see ../_client.py).
// It also runs Kafka's command-line tools in this process (call "tool"), which saves a JVM start each.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Exit;

public final class JavaDriver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long READ_TIMEOUT_MS = 15_000;
    private static final String HEARTBEAT_MS = "100";
    private static final String METADATA_MS = "500";

    private final String bootstrapServers;
    private final Admin admin;
    private final List<Member> members = new ArrayList<>();

    private JavaDriver(String bootstrapServers) {
        this.bootstrapServers = bootstrapServers;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrapServers, "metadata.max.age.ms", METADATA_MS));
    }

    public static void main(String[] args) throws Exception {
        JavaDriver driver = new JavaDriver(args[0]);
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            JsonNode call = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            answer.set("id", call.get("id"));
            try {
                answer.set("ok", JSON.valueToTree(driver.answer(call.get("op").asText(), call.get("args"))));
            } catch (Exception error) {
                answer.set("error", JSON.valueToTree(refusal(error)));
            }
            answers.println(JSON.writeValueAsString(answer));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> refusal(Throwable error) {
        Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
        Errors code = Errors.forException(cause);
        Map<String, Object> refusal = new HashMap<>();
        refusal.put("code", cause instanceof KafkaException && code != Errors.UNKNOWN_SERVER_ERROR ? code.code() : null);
        refusal.put("text", cause.toString());
        return refusal;
    }

    private Object answer(String operation, JsonNode args) throws Exception {
        switch (operation) {
            case "produce": return produce(args);
            case "read": return read(args);
            case "bounds": return bounds(args);
            case "offset_at": return offsetAt(args);
            case "member_open": return memberOpen(args);
            case "member_state": return members.get(args.get("number").asInt()).state();
            case "member_commit": return members.get(args.get("number").asInt()).ask(KafkaConsumer::commitSync);
            case "member_close": return members.get(args.get("number").asInt()).close();
            case "committed": return committed(args);
            case "create_topic": return createTopic(args);
            case "delete_topic": return admin.deleteTopics(List.of(text(args, "topic"))).all().get();
            case "topics": return admin.listTopics().names().get();
            case "describe_topic": return describeTopic(args);
            case "create_partitions": return admin.createPartitions(
                Map.of(text(args, "topic"), NewPartitions.increaseTo(args.get("total").asInt()))).all().get();
            case "configs": return configs(args);
            case "alter_configs": return replaceConfigs(args);
            case "incremental_alter": return incrementalAlter(args);
            case "groups": return admin.listGroups().all().get().stream().map(each -> each.groupId()).toList();
            case "describe_group": return describeGroup(args);
            case "delete_group": return admin.deleteConsumerGroups(List.of(text(args, "group"))).all().get();
            case "delete_offsets": return admin.deleteConsumerGroupOffsets(
                text(args, "group"), Set.of(where(args))).all().get();
            case "delete_records": return admin.deleteRecords(
                Map.of(where(args), RecordsToDelete.beforeOffset(args.get("before").asLong())))
                .lowWatermarks().get(where(args)).get().lowWatermark();
            case "tool": return tool(args);
            default: throw new IllegalArgumentException(operation);
        }
    }

    // Records

    private Object produce(JsonNode args) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", bootstrapServers,
            "compression.type", text(args, "codec"),
            "acks", text(args, "acks"),
            "enable.idempotence", args.get("idempotent").asBoolean(),
            "max.request.size", args.get("message_bytes_max").asInt() + 10_000,
            "linger.ms", 5,
            "delivery.timeout.ms", 40_000,
            "key.serializer", ByteArraySerializer.class,
            "value.serializer", ByteArraySerializer.class));
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            for (JsonNode each : args.get("messages")) {
                List<Header> headers = new ArrayList<>();
                for (JsonNode header : each.get("headers")) {
                    headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
                }
                JsonNode partition = each.get("partition");
                JsonNode timestamp = each.get("timestamp");
                futures.add(producer.send(new ProducerRecord<>(
                    text(args, "topic"),
                    partition.isNull() ? null : partition.asInt(),
                    timestamp.isNull() ? null : timestamp.asLong(),
                    bytes(each.get("key")),
                    bytes(each.get("value")),
                    headers)));
            }
            producer.flush();
        }
        List<List<Long>> placed = new ArrayList<>();
        for (Future<RecordMetadata> future : futures) {
            placed.add(List.of((long) future.get().partition(), future.get().hasOffset() ? future.get().offset() : -1));
        }
        return placed;
    }

    private KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", bootstrapServers,
            "enable.auto.commit", "false",
            "metadata.max.age.ms", METADATA_MS,
            "key.deserializer", ByteArrayDeserializer.class,
            "value.deserializer", ByteArrayDeserializer.class));
        settings.putAll(more);
        return new KafkaConsumer<>(settings);
    }

    private Object read(JsonNode args) {
        Map<String, Object> settings = Map.of(
            "auto.offset.reset", "earliest", "max.partition.fetch.bytes", args.get("fetch_bytes_max").asInt());
        List<Object> found = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(settings)) {
            consumer.assign(List.of(where(args)));
            consumer.seek(where(args), args.get("start").asLong());
            long deadline = System.currentTimeMillis() + READ_TIMEOUT_MS;
            while (found.size() < args.get("count").asInt() && System.currentTimeMillis() < deadline) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> found.add(raw(record)));
            }
        }
        return found;
    }

    private Object bounds(JsonNode args) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
            Set<TopicPartition> asked = Set.of(where(args));
            return List.of(
                consumer.beginningOffsets(asked).get(where(args)), consumer.endOffsets(asked).get(where(args)));
        }
    }

    private Object offsetAt(JsonNode args) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
            OffsetAndTimestamp found =
                consumer.offsetsForTimes(Map.of(where(args), args.get("timestamp").asLong())).get(where(args));
            return found == null ? null : found.offset();
        }
    }

    // Groups

    private Object memberOpen(JsonNode args) {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "group.id", text(args, "group"),
            "auto.offset.reset", text(args, "reset"),
            "session.timeout.ms", args.get("session_timeout_ms").asInt(),
            "heartbeat.interval.ms", HEARTBEAT_MS));
        if (args.get("cooperative").asBoolean()) {
            settings.put("partition.assignment.strategy", CooperativeStickyAssignor.class.getName());
        }
        if (!args.get("instance_id").isNull()) {
            settings.put("group.instance.id", text(args, "instance_id"));
        }
        Member member = new Member(consumer(settings), text(args, "topic"));
        members.add(member);
        member.start();
        return members.size() - 1;
    }

    private Object committed(JsonNode args) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> found =
            admin.listConsumerGroupOffsets(text(args, "group")).partitionsToOffsetAndMetadata().get();
        return Optional.ofNullable(found.get(where(args))).map(OffsetAndMetadata::offset).orElse(null);
    }

    /** Polls until closed; what is asked of the consumer runs between polls, in its own thread. */
    private static final class Member extends Thread {
        private interface Order {
            void run(KafkaConsumer<byte[], byte[]> consumer);
        }

        private final KafkaConsumer<byte[], byte[]> consumer;
        private final BlockingQueue<Map.Entry<Order, CompletableFuture<Object>>> orders = new LinkedBlockingQueue<>();
        private final List<Object> received = new ArrayList<>();
        private Set<TopicPartition> assignment = Set.of();
        private int rebalances;
        private Throwable error;
        private boolean open = true;

        Member(KafkaConsumer<byte[], byte[]> consumer, String topic) {
            this.consumer = consumer;
            setDaemon(true);
            consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    rebalances++;
                }
            });
        }

        @Override
        public void run() {
            try {
                while (open) {
                    List<Object> polled = new ArrayList<>();
                    consumer.poll(Duration.ofMillis(50)).forEach(record -> polled.add(raw(record)));
                    synchronized (this) {
                        received.addAll(polled);
                        assignment = Set.copyOf(consumer.assignment());
                    }
                    serveOrders();
                }
            } catch (Throwable problem) {
                synchronized (this) {
                    error = problem;
                }
            }
        }

        private void serveOrders() {
            for (var order = orders.poll(); order != null; order = orders.poll()) {
                try {
                    order.getKey().run(consumer);
                    order.getValue().complete(null);
                } catch (RuntimeException problem) {
                    order.getValue().completeExceptionally(problem);
                }
            }
        }

        Object ask(Order order) throws Exception {
            CompletableFuture<Object> done = new CompletableFuture<>();
            orders.add(Map.entry(order, done));
            return done.get(30, TimeUnit.SECONDS);
        }

        Object close() throws Exception {
            return ask(each -> {
                open = false;
                each.close();
            });
        }

        synchronized Object state() {
            Map<String, Object> state = new HashMap<>();
            state.put("assignment", pairs(assignment));
            state.put("received", List.copyOf(received));
            state.put("rebalances", rebalances);
            state.put("error", error == null ? null : refusal(error));
            return state;
        }
    }

    // Administration

    private Object createTopic(JsonNode args) throws Exception {
        NewTopic topic = new NewTopic(
            text(args, "topic"), args.get("partitions").asInt(), (short) args.get("replicas").asInt());
        topic.configs(strings(args.get("configs")));
        return admin.createTopics(List.of(topic)).all().get();
    }

    private Object describeTopic(JsonNode args) throws Exception {
        String topic = text(args, "topic");
        TopicDescription found = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        List<Object> partitions = new ArrayList<>();
        for (TopicPartitionInfo each : found.partitions()) {
            partitions.add(Map.of(
                "partition", each.partition(),
                "leader", each.leader().id(),
                "replicas", each.replicas().stream().map(Node::id).toList(),
                "isr", each.isr().stream().map(Node::id).toList()));
        }
        return partitions;
    }

    private Object configs(JsonNode args) throws Exception {
        ConfigResource.Type type =
            text(args, "kind").equals("topic") ? ConfigResource.Type.TOPIC : ConfigResource.Type.BROKER;
        ConfigResource resource = new ConfigResource(type, text(args, "name"));
        Map<String, String> found = new HashMap<>();
        admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()
            .forEach(entry -> found.put(entry.name(), entry.value()));
        return found;
    }

    /** The client lost AlterConfigs in 4.0: what is set and not wanted is deleted one by one. */
    private Object replaceConfigs(JsonNode args) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, text(args, "topic"));
        Map<String, String> wanted = strings(args.get("configs"));
        List<AlterConfigOp> changes = new ArrayList<>();
        wanted.forEach((key, value) -> changes.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG && !wanted.containsKey(entry.name())) {
                changes.add(new AlterConfigOp(new ConfigEntry(entry.name(), null), AlterConfigOp.OpType.DELETE));
            }
        }
        return admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    private Object incrementalAlter(JsonNode args) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        strings(args.get("set")).forEach((key, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        for (JsonNode key : args.get("delete")) {
            changes.add(new AlterConfigOp(new ConfigEntry(key.asText(), null), AlterConfigOp.OpType.DELETE));
        }
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, text(args, "topic"));
        return admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    private Object describeGroup(JsonNode args) throws Exception {
        String group = text(args, "group");
        ConsumerGroupDescription found = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        List<Object> described = new ArrayList<>();
        found.members().forEach(each -> described.add(Map.of(
            "client_id", each.clientId(), "assignment", pairs(each.assignment().topicPartitions()))));
        return Map.of("state", found.groupState().toString(), "members", described);
    }

    // Tools

    /** Thrown where a tool would end the process.  Some catch it and exit again: the first status counts. */
    private static final class Ended extends Error {
        static final long serialVersionUID = 1;
    }

    /** Run the main method of a tool with its own streams; its exit ends only itself. */
    private static Object tool(JsonNode args) throws Exception {
        List<String> arguments = new ArrayList<>();
        args.get("arguments").forEach(each -> arguments.add(each.asText()));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream oldOut = System.out;
        PrintStream oldErr = System.err;
        InputStream oldIn = System.in;
        AtomicInteger status = new AtomicInteger(-1);
        Exit.Procedure end = (code, message) -> {
            status.compareAndSet(-1, code);
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        System.setOut(new PrintStream(out, true));
        System.setErr(new PrintStream(err, true));
        System.setIn(new ByteArrayInputStream(text(args, "stdin").getBytes(StandardCharsets.UTF_8)));
        try {
            Class.forName(text(args, "main")).getMethod("main", String[].class)
                .invoke(null, (Object) arguments.toArray(new String[0]));
        } catch (java.lang.reflect.InvocationTargetException ended) {
            if (!(ended.getCause() instanceof Ended)) {
                ended.getCause().printStackTrace();
                status.compareAndSet(-1, 1);
            }
        } finally {
            System.out.flush();
            System.setOut(oldOut);
            System.setErr(oldErr);
            System.setIn(oldIn);
            Exit.resetExitProcedure();
            Exit.resetHaltProcedure();
        }
        return Map.of("status", Math.max(status.get(), 0), "stdout", out.toString(), "stderr", err.toString());
    }

    // JSON

    private static String text(JsonNode args, String name) {
        return args.get(name).asText();
    }

    private static TopicPartition where(JsonNode args) {
        return new TopicPartition(text(args, "topic"), args.get("partition").asInt());
    }

    private static Map<String, String> strings(JsonNode node) {
        Map<String, String> found = new HashMap<>();
        node.fields().forEachRemaining(each -> found.put(each.getKey(), each.getValue().asText()));
        return found;
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    private static String text(byte[] data) {
        return data == null ? null : Base64.getEncoder().encodeToString(data);
    }

    private static ArrayNode pairs(Collection<TopicPartition> partitions) {
        ArrayNode found = JSON.createArrayNode();
        partitions.forEach(each -> found.addArray().add(each.topic()).add(each.partition()));
        return found;
    }

    private static Object raw(ConsumerRecord<byte[], byte[]> record) {
        ArrayNode headers = JSON.createArrayNode();
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(text(header.value()));
        }
        Map<String, Object> message = new HashMap<>();
        message.put("partition", record.partition());
        message.put("offset", record.offset());
        message.put("timestamp", record.timestamp());
        message.put("key", text(record.key()));
        message.put("value", text(record.value()));
        message.put("headers", headers);
        return message;
    }
}
