"""kafka-python, whose calls block."""

import gc
import logging
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final

import kafka.admin  # type: ignore[import-untyped]  # has no types
from kafka.coordinator.assignors.cooperative_sticky import (  # type: ignore[import-untyped]  # has no types
    CooperativeStickyAssignor,
)
from kafka.coordinator.assignors.range import (  # type: ignore[import-untyped]  # has no types
    RangePartitionAssignor,
)
from kafka.errors import KafkaError  # type: ignore[import-untyped]  # has no types

from tests.examples.broker.live.clients.client_interface import (
    ConsumerSettings,
    Producer,
    ProducerSettings,
    ReadRecord,
    Record,
    Refused,
    milliseconds,
)
from tests.examples.broker.live.clients.keywords import (
    KeywordConsumer,
    consumer_keywords,
    producer_keywords,
    read_records,
)

# The protocol's number of a preferred leader election.
PREFERRED: Final = 0
# Seconds. It joins again when a join is answered between two polls, so a poll of a member has to be long.
MEMBER_POLL: Final = 0.5


class KafkaPythonProducer(Producer):
    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def begin(self, topic: str, *records: Record, partition: int = 0) -> list[Future[int | None]]:
        with _refusals():
            return [
                _offset(
                    self._producer.send(
                        topic,
                        record.value,
                        record.key,
                        headers=list(record.headers),
                        partition=partition,
                        timestamp_ms=record.timestamp,
                    )
                )
                for record in records
            ]


class KafkaPythonConsumer(KeywordConsumer):
    def __init__(self, consumer: Any) -> None:
        super().__init__(consumer, kafka.TopicPartition, lambda method, *arguments: method(*arguments))

    def poll(self, within: float) -> list[ReadRecord]:
        longer = max(within, MEMBER_POLL) if self._consumer.subscription() else within
        with _refusals():
            return read_records(self._consumer.poll(timeout_ms=milliseconds(longer)))


class KafkaPythonAdmin:
    def __init__(self, admin: Any) -> None:
        self._admin = admin

    def create_topic(self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
        wanted = {
            "num_partitions": partitions,
            "replication_factor": replicas,
            "configs": dict(configs),
        }
        with _refusals():
            self._admin.create_topics({topic: wanted})

    def delete_topic(self, topic: str) -> None:
        with _refusals():
            self._admin.delete_topics([topic])

    def topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def topic_configs(self, topic: str) -> dict[str, str]:
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic)
        with _refusals():
            described = self._admin.describe_configs([resource], config_filter="all")["topic"][topic]
        return {name: entry["value"] for name, entry in described.items()}

    def add_partitions(self, topic: str, total: int) -> None:
        with _refusals():
            self._admin.create_partitions({topic: total})

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic, dict(configs))
        with _refusals():
            self._admin.alter_configs([resource])

    def delete_records(self, topic: str, before_offset: int) -> int:
        partition = kafka.TopicPartition(topic, 0)
        with _refusals():
            deleted = self._admin.delete_records({partition: before_offset})
        low_watermark: int = deleted[partition]["low_watermark"]
        return low_watermark

    def elect_preferred(self, topic: str) -> None:
        with _refusals():
            self._admin.elect_leaders(PREFERRED, {topic: [0]})

    def brokers(self) -> set[tuple[int, str, int]]:
        described = self._admin.describe_cluster()["brokers"]
        return {(node["broker_id"], node["host"], node["port"]) for node in described}

    def groups(self) -> set[str]:
        with _refusals():
            return {group["group_id"] for group in self._admin.list_groups()}

    def group(self, group_id: str) -> tuple[str, int]:
        described = self._admin.describe_groups([group_id])[group_id]
        assert described["error"] is None
        return described["group_state"], len(described["members"])


class KafkaPython:
    name = "kafka-python"
    begins_new_epochs = False

    @contextmanager
    def producer(self, bootstrap_servers: str, settings: ProducerSettings) -> Iterator[KafkaPythonProducer]:
        keywords = producer_keywords(bootstrap_servers, settings)
        if settings.impatient:
            keywords |= {
                "batch_size": settings.BATCH_BYTES,
                "delivery_timeout_ms": settings.DELIVERY_TIMEOUT_MS,
                "request_timeout_ms": settings.REQUEST_TIMEOUT_MS,
                "reconnect_backoff_ms": settings.RETRY_BACKOFF_MS,
                "reconnect_backoff_max_ms": settings.RETRY_BACKOFF_MS,
            }
        with _unclosed_sockets():
            producer = kafka.KafkaProducer(acks=settings.acks, **keywords)
            try:
                yield KafkaPythonProducer(producer)
            finally:
                # Without a time limit it would wait for its records without end.
                producer.close(settings.DELIVERY_TIMEOUT_MS / 1000)

    @contextmanager
    def consumer(self, bootstrap_servers: str, settings: ConsumerSettings) -> Iterator[KafkaPythonConsumer]:
        assignor = CooperativeStickyAssignor if settings.cooperative else RangePartitionAssignor
        consumer = kafka.KafkaConsumer(
            partition_assignment_strategy=[assignor],
            max_poll_interval_ms=settings.REBALANCE_TIMEOUT_MS,
            reconnect_backoff_ms=settings.BACKOFF_MS,
            reconnect_backoff_max_ms=settings.BACKOFF_MS,
            **consumer_keywords(bootstrap_servers, settings),
        )
        try:
            yield KafkaPythonConsumer(consumer)
        finally:
            consumer.close()

    @contextmanager
    def admin(self, bootstrap_servers: str) -> Iterator[KafkaPythonAdmin]:
        with _unclosed_sockets():
            admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap_servers)
            try:
                yield KafkaPythonAdmin(admin)
            finally:
                admin.close()

    def begin_transactions(self, bootstrap_servers: str, transactional_id: str) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=transactional_id)
        try:
            with _refusals():
                producer.init_transactions()
        finally:
            producer.close()


@contextmanager
def _unclosed_sockets() -> Iterator[None]:
    """Ignore the sockets that it leaves open when it could not connect, because a broker was stopped."""
    logger = logging.getLogger("kafka")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "unclosed <socket", ResourceWarning)
        try:
            yield
        finally:
            gc.collect()
            logger.setLevel(level)


def _offset(sent: Any) -> Future[int | None]:
    offset: Future[int | None] = Future()
    sent.add_callback(lambda metadata: offset.set_result(metadata.offset))
    sent.add_errback(lambda error: offset.set_exception(_refusal(error)))
    return offset


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise _refusal(error) from error


def _refusal(error: KafkaError) -> Exception:
    return Refused(error.errno) if error.errno else error
