// Apache Kafka's Java client as a driver of transactions: one JSON call a line on stdin, one answer a line on stdout.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class TransactionsDriver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long READ_TIMEOUT_MS = 10_000;
    private static final long QUIET_MS = 400;

    private final String bootstrapServers;
    private final List<KafkaProducer<String, String>> producers = new ArrayList<>();

    private TransactionsDriver(String bootstrapServers) {
        this.bootstrapServers = bootstrapServers;
    }

    public static void main(String[] args) throws Exception {
        TransactionsDriver driver = new TransactionsDriver(args[0]);
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
        System.exit(0);
    }

    private static Map<String, Object> refusal(Throwable error) {
        Map<String, Object> found = new HashMap<>();
        found.put("text", error.toString());
        found.put("code", null);
        for (Throwable at = error; at != null; at = at.getCause()) {
            Errors code = Errors.forException(at);
            if (code != Errors.UNKNOWN_SERVER_ERROR) {
                found.put("code", code.code());
                break;
            }
        }
        return found;
    }

    private Object answer(String operation, JsonNode args) throws Exception {
        switch (operation) {
            case "txn_open":
                producers.add(open(args.get("transactional_id").asText(), args.get("timeout_ms").asInt()));
                return producers.size() - 1;
            case "txn_begin":
                producer(args).beginTransaction();
                return null;
            case "txn_send":
                List<String> values = new ArrayList<>();
                args.get("values").forEach(value -> values.add(value.asText()));
                send(producer(args), args.get("topic").asText(), args.get("partition").asInt(), values);
                return null;
            case "txn_commit":
                producer(args).commitTransaction();
                return null;
            case "txn_abort":
                producer(args).abortTransaction();
                return null;
            case "txn_close":
                producer(args).close(Duration.ofSeconds(1));
                return null;
            case "txn_read":
                return read(args);
            case "txn_copy":
                return copy(args);
            default:
                throw new IllegalArgumentException(operation);
        }
    }

    private KafkaProducer<String, String> producer(JsonNode args) {
        return producers.get(args.get("number").asInt());
    }

    private KafkaProducer<String, String> open(String transactionalId, int timeoutMs) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrapServers);
        settings.put("transactional.id", transactionalId);
        settings.put("transaction.timeout.ms", timeoutMs);
        settings.put("reconnect.backoff.max.ms", 200);
        settings.put("key.serializer", StringSerializer.class);
        settings.put("value.serializer", StringSerializer.class);
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        producer.initTransactions();
        return producer;
    }

    private static void send(KafkaProducer<String, String> producer, String topic, int partition, List<String> values)
            throws Exception {
        List<Future<?>> sent = new ArrayList<>();
        for (String value : values) sent.add(producer.send(new ProducerRecord<>(topic, partition, null, value)));
        for (Future<?> each : sent) each.get();
    }

    private KafkaConsumer<String, String> consumer(String group, boolean committed) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrapServers);
        settings.put("isolation.level", committed ? "read_committed" : "read_uncommitted");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        settings.put("heartbeat.interval.ms", 100);
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", StringDeserializer.class);
        if (group != null) settings.put("group.id", group);
        return new KafkaConsumer<>(settings);
    }

    private static List<ConsumerRecord<String, String>> collect(KafkaConsumer<String, String> consumer, int count) {
        long deadline = System.currentTimeMillis() + (count > 0 ? READ_TIMEOUT_MS : QUIET_MS);
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        while (System.currentTimeMillis() < deadline && (count == 0 || found.size() < count))
            consumer.poll(Duration.ofMillis(50)).forEach(found::add);
        return found;
    }

    private List<String> read(JsonNode args) {
        try (KafkaConsumer<String, String> consumer = consumer(null, args.get("committed").asBoolean())) {
            TopicPartition where = new TopicPartition(args.get("topic").asText(), args.get("partition").asInt());
            consumer.assign(List.of(where));
            consumer.seekToBeginning(List.of(where));
            return collect(consumer, args.get("count").asInt()).stream().map(ConsumerRecord::value).toList();
        }
    }

    private List<String> copy(JsonNode args) throws Exception {
        KafkaProducer<String, String> producer = producer(args);
        String source = args.get("source").asText();
        try (KafkaConsumer<String, String> consumer = consumer(args.get("group").asText(), true)) {
            consumer.subscribe(List.of(source));
            List<ConsumerRecord<String, String>> found = collect(consumer, args.get("count").asInt());
            List<String> values = found.stream().map(ConsumerRecord::value).toList();
            producer.beginTransaction();
            send(producer, args.get("target").asText(), 0, values);
            long next = found.get(found.size() - 1).offset() + 1;
            producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition(source, 0), new OffsetAndMetadata(next)), consumer.groupMetadata());
            if (args.get("commit").asBoolean()) producer.commitTransaction();
            else producer.abortTransaction();
            return values;
        }
    }
}
