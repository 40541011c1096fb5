"""confluent-kafka, which is librdkafka."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from confluent_kafka import (
    Consumer,
    ElectionType,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its __all__ is missing
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.examples.broker.live.clients.client_interface import (
    MAX_REQUEST_SIZE,
    PATIENCE,
    ConsumerSettings,
    ProducerSettings,
    Record,
    Refused,
    milliseconds,
)


class ConfluentProducer:
    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    def send(self, topic: str, *records: Record) -> list[int]:
        delivered: list[tuple[KafkaError | None, int]] = []

        def note(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            delivered.append((error, -1 if offset is None else offset))

        for record in records:
            self._producer.produce(
                topic,
                record.value,
                record.key,
                partition=0,
                timestamp=record.timestamp,
                headers=list(record.headers),
                on_delivery=note,
            )
        assert self._producer.flush(PATIENCE) == 0
        for error, _ in delivered:
            if error is not None:
                raise _raised(error)
        return [offset for _, offset in delivered]


class ConfluentConsumer:
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def read(self, topic: str, offset: int) -> None:
        self._consumer.assign([TopicPartition(topic, 0, offset)])

    def subscribe(self, topic: str) -> None:
        self._consumer.subscribe([topic])

    def take(self, within: float) -> tuple[int, Record] | None:
        message = self._consumer.poll(within)
        if message is None:
            return None
        error, offset = message.error(), message.offset()
        if error is not None:
            raise _raised(error)
        assert offset is not None
        # Its types also allow a string or a dictionary, which only producers use.
        headers: Any = message.headers() or ()
        _, timestamp = message.timestamp()
        return offset, Record(message.value(), message.key(), tuple(headers), timestamp)

    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        asked = TopicPartition(topic, 0, timestamp)
        (found,) = self._consumer.offsets_for_times([asked], timeout=PATIENCE)
        # After the last record it is the special offset of the end.
        return found.offset if found.offset >= 0 else None

    def bounds(self, topic: str) -> tuple[int, int]:
        return self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE)


class ConfluentAdmin:
    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    def create_topic(self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
        new_topic = NewTopic(topic, partitions, replicas, config=dict(configs))
        _outcome(self._admin.create_topics([new_topic])[topic])

    def delete_topic(self, topic: str) -> None:
        _outcome(self._admin.delete_topics([topic])[topic])

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=PATIENCE).topics)

    def topic_configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        described = _outcome(self._admin.describe_configs([resource])[resource])
        return {name: entry.value for name, entry in described.items()}

    def add_partitions(self, topic: str, total: int) -> None:
        _outcome(self._admin.create_partitions([NewPartitions(topic, total)])[topic])

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        changed = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changed)
        _outcome(self._admin.incremental_alter_configs([resource])[resource])

    def delete_records(self, topic: str, before_offset: int) -> int:
        partition = TopicPartition(topic, 0, before_offset)
        low_watermark: int = _outcome(self._admin.delete_records([partition])[partition]).low_watermark
        return low_watermark

    def elect_preferred(self, topic: str) -> None:
        partition = TopicPartition(topic, 0)
        error = _outcome(self._admin.elect_leaders(ElectionType.PREFERRED, [partition]))[partition]
        if error is not None:
            raise _raised(error)

    def brokers(self) -> set[tuple[int, str, int]]:
        described = _outcome(self._admin.describe_cluster())
        return {(node.id, node.host, node.port) for node in described.nodes}

    def groups(self) -> set[str]:
        return {group.group_id for group in _outcome(self._admin.list_consumer_groups()).valid}

    def group(self, group_id: str) -> tuple[str, int]:
        described = _outcome(self._admin.describe_consumer_groups([group_id])[group_id])
        return described.state.name.title(), len(described.members)


class Confluent:
    name = "confluent-kafka"

    @contextmanager
    def producer(self, bootstrap_servers: str, settings: ProducerSettings) -> Iterator[ConfluentProducer]:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "acks": settings.acks,
                "compression.type": settings.compression,
                "enable.idempotence": settings.idempotent,
                "linger.ms": milliseconds(settings.linger),
                "message.max.bytes": MAX_REQUEST_SIZE,
            }
        )
        yield ConfluentProducer(producer)
        producer.flush(PATIENCE)

    @contextmanager
    def consumer(self, bootstrap_servers: str, settings: ConsumerSettings) -> Iterator[ConfluentConsumer]:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": settings.group_id or "none",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.min.bytes": settings.fetch_min_bytes,
                "fetch.wait.max.ms": milliseconds(settings.fetch_max_wait),
            }
        )
        try:
            yield ConfluentConsumer(consumer)
        finally:
            consumer.close()

    @contextmanager
    def admin(self, bootstrap_servers: str) -> Iterator[ConfluentAdmin]:
        yield ConfluentAdmin(AdminClient({"bootstrap.servers": bootstrap_servers}))


def _raised(error: KafkaError) -> Exception:
    # librdkafka's own error codes are lower than those of brokers.
    return KafkaException(error) if error.code() < KafkaError.UNKNOWN else Refused(error.code())


def _outcome(future: Future[Any]) -> Any:
    try:
        return future.result(PATIENCE)
    except KafkaException as failure:
        raise _raised(failure.args[0]) from failure
