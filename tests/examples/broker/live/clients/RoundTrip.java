import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.concurrent.Future;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

import static java.nio.charset.StandardCharsets.UTF_8;

/** Writes five records with each codec, reads them as a member of a group, and prints them as JSON. */
public class RoundTrip {
    static final int RECORDS_OF_A_CODEC = 5;
    static final long FIRST_TIMESTAMP = 1_700_000_000_000L;
    static final String GROUP = "java";

    /** The arguments are the bootstrap servers, a topic of one partition, and the codecs. */
    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0];
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        List<String> codecs = Arrays.asList(arguments).subList(2, arguments.length);
        for (String codec : codecs) {
            write(servers, partition, codec);
        }
        read(servers, partition, codecs.size() * RECORDS_OF_A_CODEC);
    }

    static void write(String servers, TopicPartition partition, String codec) throws Exception {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", servers,
                "key.serializer", StringSerializer.class,
                "value.serializer", StringSerializer.class,
                "acks", "all",
                "enable.idempotence", true,
                "compression.type", codec,
                // So that they are one batch.
                "linger.ms", 60_000);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < RECORDS_OF_A_CODEC; number++) {
                ProducerRecord<String, String> record = new ProducerRecord<>(
                        partition.topic(),
                        partition.partition(),
                        FIRST_TIMESTAMP + number,
                        "key-" + number,
                        (codec + " ").repeat(100));
                record.headers().add("codec", codec.getBytes(UTF_8));
                record.headers().add("number", Integer.toString(number).getBytes(UTF_8));
                sent.add(producer.send(record));
            }
            producer.flush();
            for (Future<RecordMetadata> acknowledgement : sent) {
                acknowledgement.get();
            }
        }
    }

    static void read(String servers, TopicPartition partition, int count) throws Exception {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", servers,
                "group.id", GROUP,
                "key.deserializer", StringDeserializer.class,
                "value.deserializer", StringDeserializer.class,
                "enable.auto.commit", false,
                "auto.offset.reset", "earliest");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
                Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            consumer.subscribe(List.of(partition.topic()));
            for (int taken = 0; taken < count; ) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(30))) {
                    System.out.println(json(record));
                    taken++;
                }
            }
            consumer.commitSync();
            Set<TopicPartition> partitions = Set.of(partition);
            System.out.printf(
                    "{\"committed\": %d, \"members\": %d, \"beginning\": %d, \"end\": %d,"
                            + " \"partitions\": %d}%n",
                    consumer.committed(partitions).get(partition).offset(),
                    admin.describeConsumerGroups(List.of(GROUP)).all().get().get(GROUP).members().size(),
                    consumer.beginningOffsets(partitions).get(partition),
                    consumer.endOffsets(partitions).get(partition),
                    admin.describeTopics(List.of(partition.topic())).allTopicNames().get()
                            .get(partition.topic()).partitions().size());
        }
    }

    /** What was written has nothing in it that JSON would want escaped. */
    static String json(ConsumerRecord<String, String> record) {
        StringJoiner headers = new StringJoiner(", ", "[", "]");
        for (Header header : record.headers()) {
            headers.add(String.format("[\"%s\", \"%s\"]", header.key(), new String(header.value(), UTF_8)));
        }
        return String.format(
                "{\"offset\": %d, \"timestamp\": %d, \"key\": \"%s\", \"value\": \"%s\", \"headers\": %s}",
                record.offset(), record.timestamp(), record.key(), record.value(), headers);
    }
}
