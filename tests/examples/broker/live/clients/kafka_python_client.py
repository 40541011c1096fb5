"""kafka-python, whose calls block."""

import gc
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from tests.examples.broker.live.clients.client_interface import (
    MAX_REQUEST_SIZE,
    PATIENCE,
    ConsumerSettings,
    ProducerSettings,
    Record,
    Refused,
    milliseconds,
)

with warnings.catch_warnings():
    # kafka-python loads its schemas by a function that is deprecated in Python 3.11 and 3.12, not in 3.13.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.admin  # type: ignore[import-untyped]  # has no types
    from kafka.errors import KafkaError  # type: ignore[import-untyped]  # has no types


# The protocol's number of a preferred leader election.
PREFERRED: Final = 0


class KafkaPythonProducer:
    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def send(self, topic: str, *records: Record) -> list[int]:
        with _refusals():
            sent = [
                self._producer.send(
                    topic,
                    record.value,
                    record.key,
                    headers=list(record.headers),
                    partition=0,
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            return [future.get(PATIENCE).offset for future in sent]


class KafkaPythonConsumer:
    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def read(self, topic: str, offset: int) -> None:
        partition = kafka.TopicPartition(topic, 0)
        self._consumer.assign([partition])
        self._consumer.seek(partition, offset)

    def subscribe(self, topic: str) -> None:
        self._consumer.subscribe([topic])

    def take(self, within: float) -> tuple[int, Record] | None:
        with _refusals():
            polled = self._consumer.poll(timeout_ms=milliseconds(within), max_records=1)
        for records in polled.values():
            for taken in records:
                record = Record(taken.value, taken.key, tuple(taken.headers), taken.timestamp)
                return taken.offset, record
        return None

    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        partition = kafka.TopicPartition(topic, 0)
        found = self._consumer.offsets_for_times({partition: timestamp})[partition]
        return None if found is None else found.offset

    def bounds(self, topic: str) -> tuple[int, int]:
        partition = kafka.TopicPartition(topic, 0)
        return (
            self._consumer.beginning_offsets([partition])[partition],
            self._consumer.end_offsets([partition])[partition],
        )


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

    @contextmanager
    def producer(self, bootstrap_servers: str, settings: ProducerSettings) -> Iterator[KafkaPythonProducer]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap_servers,
            acks=settings.acks,
            compression_type=None if settings.compression == "none" else settings.compression,
            enable_idempotence=settings.idempotent,
            linger_ms=milliseconds(settings.linger),
            max_request_size=MAX_REQUEST_SIZE,
        )
        try:
            yield KafkaPythonProducer(producer)
        finally:
            producer.close()

    @contextmanager
    def consumer(self, bootstrap_servers: str, settings: ConsumerSettings) -> Iterator[KafkaPythonConsumer]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            group_id=settings.group_id,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_min_bytes=settings.fetch_min_bytes,
            fetch_max_wait_ms=milliseconds(settings.fetch_max_wait),
        )
        try:
            yield KafkaPythonConsumer(consumer)
        finally:
            consumer.close()

    @contextmanager
    def admin(self, bootstrap_servers: str) -> Iterator[KafkaPythonAdmin]:
        admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap_servers)
        try:
            yield KafkaPythonAdmin(admin)
        finally:
            admin.close()
            with warnings.catch_warnings():
                # It leaves a socket open when it could not connect, because a broker was stopped.
                warnings.filterwarnings("ignore", "unclosed <socket", ResourceWarning)
                gc.collect()


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        if not error.errno:
            raise
        raise Refused(error.errno) from error
