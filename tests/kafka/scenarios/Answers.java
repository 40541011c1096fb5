import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import static java.nio.charset.StandardCharsets.UTF_8;

/** Asks a cluster many things, and prints each answer, or the exception, in a line of JSON. */
public class Answers {
    static final String TOPIC = "java-answers";
    static final String STAMPED = "java-answers-stamped";
    static final String GROUP = "java-answers";
    static final long TIME = 1_700_000_000_000L;
    static final TopicPartition PARTITION = new TopicPartition(TOPIC, 0);

    static Admin admin;

    /** The argument is the bootstrap servers. */
    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0];
        try (Admin opened = Admin.create(Map.of("bootstrap.servers", servers))) {
            admin = opened;
            create(TOPIC, Map.of("retention.ms", "-1"));
            create(STAMPED, Map.of("message.timestamp.type", "LogAppendTime"));
            produce(servers);
            consume(servers);
            administrateTopics();
            administrateGroups();
        }
    }

    static void produce(String servers) {
        Map<String, Object> settings = new HashMap<>(Map.of(
                "bootstrap.servers", servers,
                "key.serializer", ByteArraySerializer.class,
                "value.serializer", ByteArraySerializer.class,
                "max.request.size", 8 << 20,
                "compression.type", "lz4",
                "max.block.ms", 10_000));
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            print("produce", () -> sent(producer, TOPIC, TIME, "one"));
            print("produce again", () -> sent(producer, TOPIC, TIME + 10, "two"));
            print("produce to an illegal topic", () -> sent(producer, "a b", TIME, "x"));
            print("produce with the time of the append",
                    () -> sent(producer, STAMPED, TIME, "x").replaceAll("@1(7[1-9]|[89]\\d)\\d{10}", "@now"));
        }
        settings.put("enable.idempotence", false);
        settings.put("compression.type", "none");
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            print("produce too much", () -> sent(producer, TOPIC, TIME, "x".repeat(4 << 20)));
            print("produce an old time", () -> sent(producer, TOPIC, 0L, "three"));
        }
        settings.put("acks", "0");
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            print("produce with acks 0", () -> sent(producer, STAMPED, TIME, "x"));
        }
    }

    static String sent(KafkaProducer<byte[], byte[]> producer, String topic, long time, String value)
            throws Exception {
        RecordMetadata metadata =
                producer.send(new ProducerRecord<>(topic, 0, time, null, value.getBytes(UTF_8))).get();
        return metadata.offset() + "@" + metadata.timestamp();
    }

    static void consume(String servers) throws Exception {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", servers,
                "group.id", GROUP,
                "key.deserializer", ByteArrayDeserializer.class,
                "value.deserializer", ByteArrayDeserializer.class,
                "enable.auto.commit", false,
                "auto.offset.reset", "none");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(List.of(PARTITION));
            print("committed", () -> consumer.committed(Set.of(PARTITION)).get(PARTITION));
            consumer.seek(PARTITION, 99);
            print("read beyond the end", () -> poll(consumer));
            consumer.seek(PARTITION, 0);
            print("read", () -> poll(consumer));
            print("offsets by time", () -> consumer.offsetsForTimes(Map.of(PARTITION, TIME + 5)).get(PARTITION));
            print("beginning", () -> consumer.beginningOffsets(Set.of(PARTITION)).get(PARTITION));
            print("end", () -> consumer.endOffsets(Set.of(PARTITION)).get(PARTITION));
            print("commit", () -> {
                consumer.commitSync(Map.of(PARTITION, new OffsetAndMetadata(2, Optional.of(0), "text")));
                return consumer.committed(Set.of(PARTITION)).get(PARTITION);
            });
        }
    }

    static String poll(KafkaConsumer<byte[], byte[]> consumer) {
        for (int tries = 0; tries < 20; tries++) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                return record.offset() + " " + record.timestampType() + " " + record.leaderEpoch() + " "
                        + new String(record.value(), UTF_8);
            }
        }
        return "nothing";
    }

    static void administrateTopics() {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
        ConfigResource unknown = new ConfigResource(ConfigResource.Type.TOPIC, "nowhere");
        print("create what exists", () -> create(TOPIC, Map.of()));
        print("create what collides", () -> create("java.answers", Map.of()) + create("java_answers", Map.of()));
        print("create with too many replicas",
                () -> admin.createTopics(List.of(new NewTopic("java-many", 1, (short) 9))).all().get());
        print("create by default", () -> {
            var created = admin.createTopics(
                    List.of(new NewTopic("java-default", Optional.empty(), Optional.empty())));
            return created.numPartitions("java-default").get() + " " + created.replicationFactor("java-default").get();
        });
        print("create with a wrong value", () -> create("java-wrong", Map.of("retention.ms", "long")));
        print("create validated", () -> admin.createTopics(
                List.of(new NewTopic("java-valid", 1, (short) 1)),
                new CreateTopicsOptions().validateOnly(true)).all().get());
        print("delete what is unknown", () -> admin.deleteTopics(List.of("nowhere")).all().get());
        print("add no partitions",
                () -> admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(1))).all().get());
        print("add a partition",
                () -> admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(2))).all().get());
        print("describe what is unknown",
                () -> admin.describeTopics(List.of("nowhere")).allTopicNames().get());
        print("describe", () -> {
            var described = admin.describeTopics(List.of(STAMPED)).allTopicNames().get().get(STAMPED);
            return described.isInternal() + " " + described.partitions().size() + " "
                    + described.partitions().get(0).isr().size() + " " + described.authorizedOperations();
        });
        print("settings", () -> {
            ConfigEntry entry = admin.describeConfigs(List.of(topic)).all().get().get(topic).get("retention.ms");
            return entry.value() + " " + entry.source() + " " + entry.isReadOnly() + " " + entry.type();
        });
        print("settings of what is unknown", () -> admin.describeConfigs(List.of(unknown)).all().get());
        print("alter", () -> alter(topic, "retention.bytes", "5", AlterConfigOp.OpType.SET));
        print("alter an unknown setting", () -> alter(topic, "no.such", "5", AlterConfigOp.OpType.SET));
        print("append to a list", () -> alter(topic, "cleanup.policy", "delete", AlterConfigOp.OpType.APPEND));
        for (Map.Entry<String, OffsetSpec> asked : Map.of(
                "latest", OffsetSpec.latest(),
                "earliest", OffsetSpec.earliest(),
                "max timestamp", OffsetSpec.maxTimestamp(),
                "earliest local", OffsetSpec.earliestLocal(),
                "latest tiered", OffsetSpec.latestTiered()).entrySet()) {
            print(asked.getKey(), () -> {
                var found = admin.listOffsets(Map.of(PARTITION, asked.getValue())).partitionResult(PARTITION).get();
                return found.offset() + "@" + found.timestamp() + " " + found.leaderEpoch();
            });
        }
        print("delete records", () -> admin.deleteRecords(Map.of(PARTITION, RecordsToDelete.beforeOffset(1)))
                .lowWatermarks().get(PARTITION).get().lowWatermark());
        print("delete records beyond", () -> admin.deleteRecords(Map.of(PARTITION, RecordsToDelete.beforeOffset(99)))
                .lowWatermarks().get(PARTITION).get().lowWatermark());
        print("elect", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(PARTITION)).all().get());
        print("producers", () -> admin.describeProducers(Set.of(PARTITION)).all().get().get(PARTITION)
                .activeProducers().stream().map(state -> state.producerEpoch() + " " + state.lastSequence()
                        + " " + state.coordinatorEpoch() + " " + state.currentTransactionStartOffset()).toList());
        print("cluster", () -> {
            var described = admin.describeCluster();
            return described.nodes().get().stream().map(node -> node.id() + " " + node.rack()).sorted().toList()
                    + " " + described.authorizedOperations().get();
        });
        print("log directories", () -> admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).values()
                .stream().map(directory -> directory.error() + " " + directory.replicaInfos().containsKey(PARTITION))
                .toList());
        print("reassignments", () -> admin.listPartitionReassignments().reassignments().get());
    }

    static void administrateGroups() {
        print("describe an unknown group", () -> admin.describeConsumerGroups(List.of("nobody")).all().get());
        print("describe the group", () -> {
            var described = admin.describeConsumerGroups(List.of(GROUP)).all().get().get(GROUP);
            return described.groupState() + " " + described.members().size() + " '"
                    + described.partitionAssignor() + "' " + described.type() + " " + described.isSimpleConsumerGroup();
        });
        print("groups", () -> admin.listConsumerGroups().all().get().stream()
                .filter(group -> group.groupId().equals(GROUP))
                .map(group -> group.groupState() + " " + group.isSimpleConsumerGroup()).toList());
        print("offsets of the group", () -> new TreeMap<>(
                admin.listConsumerGroupOffsets(GROUP).partitionsToOffsetAndMetadata().get().entrySet().stream()
                        .collect(Collectors.toMap(entry -> entry.getKey().toString(), Map.Entry::getValue))));
        print("offsets of an unknown group",
                () -> admin.listConsumerGroupOffsets("nobody").partitionsToOffsetAndMetadata().get());
        print("alter offsets", () -> admin.alterConsumerGroupOffsets(
                GROUP, Map.of(PARTITION, new OffsetAndMetadata(1))).all().get());
        print("delete offsets", () -> admin.deleteConsumerGroupOffsets(GROUP, Set.of(PARTITION)).all().get());
        print("delete offsets of an unknown group",
                () -> admin.deleteConsumerGroupOffsets("nobody", Set.of(PARTITION)).all().get());
        print("delete an unknown group", () -> admin.deleteConsumerGroups(List.of("nobody")).all().get());
        print("delete the group", () -> {
            admin.alterConsumerGroupOffsets(GROUP, Map.of(PARTITION, new OffsetAndMetadata(1))).all().get();
            return admin.deleteConsumerGroups(List.of(GROUP)).all().get();
        });
        print("remove members of an unknown group", () -> admin.removeMembersFromConsumerGroup(
                "nobody", new RemoveMembersFromConsumerGroupOptions()).all().get());
    }

    static String create(String name, Map<String, String> settings) throws Exception {
        NewTopic topic = new NewTopic(name, Map.of(0, List.of(1))).configs(settings);
        admin.createTopics(List.of(topic)).all().get();
        return "created";
    }

    static Object alter(ConfigResource resource, String name, String value, AlterConfigOp.OpType operation)
            throws Exception {
        Collection<AlterConfigOp> changes = List.of(new AlterConfigOp(new ConfigEntry(name, value), operation));
        return admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    /** No answer has anything in it that JSON would want escaped, except for quotation marks. */
    static void print(String name, Callable<?> asked) {
        String answer;
        try {
            answer = String.valueOf(asked.call());
        } catch (ExecutionException failure) {
            answer = failure.getCause().getClass().getSimpleName();
        } catch (Exception failure) {
            answer = failure.getClass().getSimpleName();
        }
        System.out.printf("[\"%s\", \"%s\"]%n", name, answer.replace("\"", "'"));
    }
}
