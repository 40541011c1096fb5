"""confluent-kafka, which is librdkafka."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, Final

import confluent_kafka
from confluent_kafka import ElectionType, KafkaError, KafkaException, Message, TopicPartition
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
    PATIENCE,
    Consumer,
    ConsumerSettings,
    Listener,
    Producer,
    ProducerSettings,
    ReadRecord,
    Record,
    Refused,
    milliseconds,
)
from tests.examples.broker.live.clients.keywords import indexes

Settings = dict[str, Any]

# Seconds between two looks whether a producer ends.
POLL: Final = 0.05


class ConfluentProducer(Producer):
    """A thread of its own polls it, as its acknowledgements come by polling."""

    def __init__(self, producer: confluent_kafka.Producer) -> None:
        self._producer = producer

    @classmethod
    @contextmanager
    def running(cls, bootstrap_servers: str, settings: Settings) -> Iterator["ConfluentProducer"]:
        producer = confluent_kafka.Producer(_connected(bootstrap_servers) | settings)
        ended = Event()

        def poll() -> None:
            while not ended.is_set():
                # A fatal error of the producer comes here, too, and as a SystemError.
                with suppress(KafkaException, SystemError):
                    producer.poll(POLL)

        thread = Thread(target=poll)
        thread.start()
        try:
            yield cls(producer)
            producer.flush(PATIENCE)
        finally:
            ended.set()
            thread.join()

    def begin(self, topic: str, *records: Record, partition: int = 0) -> list[Future[int | None]]:
        return [self._begin(topic, record, partition) for record in records]

    def _begin(self, topic: str, record: Record, partition: int) -> Future[int | None]:
        offset: Future[int | None] = Future()

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset.set_result(message.offset())
            else:
                offset.set_exception(_raised(error))

        self._producer.produce(
            topic,
            record.value,
            record.key,
            partition=partition,
            timestamp=record.timestamp,
            headers=list(record.headers),
            on_delivery=delivered,
        )
        return offset


class ConfluentConsumer(Consumer):
    def __init__(self, consumer: confluent_kafka.Consumer) -> None:
        super().__init__()
        self._consumer = consumer

    def read(self, topic: str, offset: int) -> None:
        self._consumer.assign([TopicPartition(topic, 0, offset)])

    def subscribe(self, topic: str, listener: Listener | None = None) -> None:
        if listener is None:
            self._consumer.subscribe([topic])
            return

        def revoked(_: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
            listener.revoked(indexes(partitions))

        self._consumer.subscribe(
            [topic],
            on_assign=lambda _, partitions: listener.assigned(indexes(partitions)),
            on_revoke=revoked,
            on_lost=revoked,
        )

    def poll(self, within: float) -> list[ReadRecord]:
        message = self._consumer.poll(within)
        if message is None:
            return []
        error, partition, offset = message.error(), message.partition(), message.offset()
        if error is not None:
            raise _raised(error)
        assert partition is not None
        assert offset is not None
        # Its types also allow a string or a dictionary, which only producers use.
        headers: Any = message.headers() or ()
        _, timestamp = message.timestamp()
        record = Record(message.value(), message.key(), tuple(headers), timestamp)
        return [ReadRecord(partition, offset, record)]

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

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
    begins_new_epochs = True
    """Whether an idempotent producer begins a new epoch after an error, and sends again the other records.

    It does so after OUT_OF_ORDER_SEQUENCE_NUMBER for a batch whose predecessor failed (librdkafka#4953).
    """

    @contextmanager
    def producer(self, bootstrap_servers: str, settings: ProducerSettings) -> Iterator[ConfluentProducer]:
        chosen: Settings = {
            "acks": settings.acks,
            "compression.type": settings.compression,
            "enable.idempotence": settings.idempotent,
            "linger.ms": milliseconds(settings.linger),
            "message.max.bytes": settings.MAX_REQUEST_SIZE,
        }
        if settings.impatient:
            chosen |= {
                "batch.size": settings.BATCH_BYTES,
                "message.timeout.ms": settings.DELIVERY_TIMEOUT_MS,
                "request.timeout.ms": settings.REQUEST_TIMEOUT_MS,
                "socket.timeout.ms": settings.REQUEST_TIMEOUT_MS,
                "retry.backoff.ms": settings.RETRY_BACKOFF_MS,
                "retry.backoff.max.ms": settings.RETRY_BACKOFF_MS,
                "reconnect.backoff.ms": settings.RETRY_BACKOFF_MS,
                "reconnect.backoff.max.ms": settings.RETRY_BACKOFF_MS,
                # It builds no produce request while another request waits to be sent on the connection. If it
                # asked for metadata faster than a busy machine answers, it would send no records.
                "topic.metadata.refresh.interval.ms": 5000,
                "topic.metadata.refresh.fast.interval.ms": 250,
            }
        with ConfluentProducer.running(bootstrap_servers, chosen) as producer:
            yield producer

    @contextmanager
    def consumer(self, bootstrap_servers: str, settings: ConsumerSettings) -> Iterator[ConfluentConsumer]:
        session_timeout_ms = milliseconds(settings.session_timeout)
        chosen: Settings = {
            "client.id": settings.client_id,
            "group.id": settings.group_id or "none",
            "partition.assignment.strategy": "cooperative-sticky" if settings.cooperative else "range",
            "session.timeout.ms": session_timeout_ms,
            "max.poll.interval.ms": max(session_timeout_ms, settings.REBALANCE_TIMEOUT_MS),
            "heartbeat.interval.ms": settings.HEARTBEAT_INTERVAL_MS,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.min.bytes": settings.fetch_min_bytes,
            "fetch.wait.max.ms": milliseconds(settings.fetch_max_wait),
            "reconnect.backoff.ms": settings.BACKOFF_MS,
            "reconnect.backoff.max.ms": settings.BACKOFF_MS,
            "topic.metadata.refresh.interval.ms": settings.METADATA_MAX_AGE_MS,
        }
        if settings.instance_id is not None:
            chosen["group.instance.id"] = settings.instance_id
        consumer = confluent_kafka.Consumer(_connected(bootstrap_servers) | chosen)
        try:
            yield ConfluentConsumer(consumer)
        finally:
            consumer.close()

    @contextmanager
    def admin(self, bootstrap_servers: str) -> Iterator[ConfluentAdmin]:
        yield ConfluentAdmin(AdminClient(_connected(bootstrap_servers)))

    def begin_transactions(self, bootstrap_servers: str, transactional_id: str) -> None:
        settings = _connected(bootstrap_servers) | {"transactional.id": transactional_id}
        try:
            confluent_kafka.Producer(settings).init_transactions(PATIENCE)
        except KafkaException as failure:
            raise _raised(failure.args[0]) from failure


def _connected(bootstrap_servers: str) -> Settings:
    # It would report lost connections on stderr.
    return {"bootstrap.servers": bootstrap_servers, "log_level": 0}


def _raised(error: KafkaError) -> Exception:
    # librdkafka's own error codes are lower than those of brokers.
    return KafkaException(error) if error.code() < KafkaError.UNKNOWN else Refused(error.code())


def _outcome(future: Future[Any]) -> Any:
    try:
        return future.result(PATIENCE)
    except KafkaException as failure:
        raise _raised(failure.args[0]) from failure
