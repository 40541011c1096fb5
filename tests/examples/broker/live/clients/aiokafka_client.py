"""aiokafka, with blocking calls: its event loop runs in a thread."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]  # has no types
from aiokafka.admin import (  # type: ignore[import-untyped]  # has no types
    AIOKafkaAdminClient,
    NewPartitions,
    NewTopic,
    RecordsToDelete,
)
from aiokafka.admin.config_resource import (  # type: ignore[import-untyped]  # has no types
    ConfigResource,
    ConfigResourceType,
)
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]  # has no types
from anyio.from_thread import BlockingPortal, start_blocking_portal

from examples.broker.errors import ErrorCode
from tests.examples.broker.live.clients.client_interface import (
    MAX_REQUEST_SIZE,
    PATIENCE,
    ConsumerSettings,
    ProducerSettings,
    Record,
    Refused,
    milliseconds,
)


class AiokafkaProducer:
    def __init__(self, producer: Any, portal: BlockingPortal) -> None:
        self._producer = producer
        self._portal = portal

    def send(self, topic: str, *records: Record) -> list[int]:
        with _refusals():
            return self._portal.call(self._send, topic, records)

    async def _send(self, topic: str, records: tuple[Record, ...]) -> list[int]:
        sent = [
            await self._producer.send(
                topic,
                record.value,
                record.key,
                partition=0,
                timestamp_ms=record.timestamp,
                headers=list(record.headers),
            )
            for record in records
        ]
        async with asyncio.timeout(PATIENCE):
            acknowledged = [await future for future in sent]
        # With acks=0 there is no offset.
        return [metadata.offset for metadata in acknowledged if metadata is not None]


class AiokafkaConsumer:
    def __init__(self, consumer: Any, portal: BlockingPortal) -> None:
        self._consumer = consumer
        self._portal = portal

    def read(self, topic: str, offset: int) -> None:
        self._portal.call(self._read, TopicPartition(topic, 0), offset)

    def subscribe(self, topic: str) -> None:
        self._portal.call(self._consumer.subscribe, [topic])

    def take(self, within: float) -> tuple[int, Record] | None:
        with _refusals():
            return self._portal.call(self._take, within)

    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        partition = TopicPartition(topic, 0)
        found = self._portal.call(self._consumer.offsets_for_times, {partition: timestamp})[partition]
        return None if found is None else found.offset

    def bounds(self, topic: str) -> tuple[int, int]:
        partition = TopicPartition(topic, 0)
        return (
            self._portal.call(self._consumer.beginning_offsets, [partition])[partition],
            self._portal.call(self._consumer.end_offsets, [partition])[partition],
        )

    async def _read(self, partition: Any, offset: int) -> None:
        self._consumer.assign([partition])
        self._consumer.seek(partition, offset)

    async def _take(self, within: float) -> tuple[int, Record] | None:
        try:
            async with asyncio.timeout(within):
                taken = await self._consumer.getone()
        except TimeoutError:
            return None
        return taken.offset, Record(taken.value, taken.key, tuple(taken.headers), taken.timestamp)


class AiokafkaAdmin:
    """aiokafka's admin client returns Kafka's responses, including errors."""

    def __init__(self, admin: Any, portal: BlockingPortal) -> None:
        self._admin = admin
        self._portal = portal

    def create_topic(self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
        new_topic = NewTopic(topic, partitions, replicas, topic_configs=dict(configs))
        response = self._portal.call(self._admin.create_topics, [new_topic])
        _refuse(code for _, code, _ in response.topic_errors)

    def delete_topic(self, topic: str) -> None:
        response = self._portal.call(self._admin.delete_topics, [topic])
        _refuse(code for _, code in response.topic_error_codes)

    def topics(self) -> set[str]:
        return set(self._portal.call(self._admin.list_topics))

    def topic_configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (response,) = self._portal.call(self._admin.describe_configs, [resource])
        ((code, _, _, _, entries),) = response.resources
        _refuse([code])
        return {name: value for name, value, *_ in entries}

    def add_partitions(self, topic: str, total: int) -> None:
        with _refusals():
            self._portal.call(self._admin.create_partitions, {topic: NewPartitions(total)})

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))
        (response,) = self._portal.call(self._admin.alter_configs, [resource])
        _refuse(code for code, *_ in response.resources)

    def delete_records(self, topic: str, before_offset: int) -> int:
        partition = TopicPartition(topic, 0)
        with _refusals():
            deleted = self._portal.call(
                self._admin.delete_records, {partition: RecordsToDelete(before_offset)}
            )
        low_watermark: int = deleted[partition]
        return low_watermark

    def brokers(self) -> set[tuple[int, str, int]]:
        described = self._portal.call(self._admin.describe_cluster)["brokers"]
        return {(node["node_id"], node["host"], node["port"]) for node in described}

    def groups(self) -> set[str]:
        with _refusals():
            return {name for name, _ in self._portal.call(self._admin.list_consumer_groups)}

    def group(self, group_id: str) -> tuple[str, int]:
        (response,) = self._portal.call(self._admin.describe_consumer_groups, [group_id])
        ((code, _, state, _, _, members, *_),) = response.groups
        _refuse([code])
        return state, len(members)


class Aiokafka:
    name = "aiokafka"

    @contextmanager
    def producer(self, bootstrap_servers: str, settings: ProducerSettings) -> Iterator[AiokafkaProducer]:
        def make() -> Any:
            return AIOKafkaProducer(
                bootstrap_servers=bootstrap_servers,
                acks="all" if settings.acks == -1 else settings.acks,
                compression_type=None if settings.compression == "none" else settings.compression,
                enable_idempotence=settings.idempotent,
                linger_ms=milliseconds(settings.linger),
                max_request_size=MAX_REQUEST_SIZE,
            )

        with start_blocking_portal() as portal:
            producer = portal.call(make)
            try:
                portal.call(producer.start)
                yield AiokafkaProducer(producer, portal)
            finally:
                portal.call(producer.stop)

    @contextmanager
    def consumer(self, bootstrap_servers: str, settings: ConsumerSettings) -> Iterator[AiokafkaConsumer]:
        def make() -> Any:
            return AIOKafkaConsumer(
                bootstrap_servers=bootstrap_servers,
                group_id=settings.group_id,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                fetch_min_bytes=settings.fetch_min_bytes,
                fetch_max_wait_ms=milliseconds(settings.fetch_max_wait),
            )

        with start_blocking_portal() as portal:
            consumer = portal.call(make)
            try:
                portal.call(consumer.start)
                yield AiokafkaConsumer(consumer, portal)
            finally:
                portal.call(consumer.stop)

    @contextmanager
    def admin(self, bootstrap_servers: str) -> Iterator[AiokafkaAdmin]:
        def make() -> Any:
            return AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)

        with start_blocking_portal() as portal:
            admin = portal.call(make)
            try:
                portal.call(admin.start)
                yield AiokafkaAdmin(admin, portal)
            finally:
                portal.call(admin.close)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        if not getattr(error, "errno", None):
            raise
        raise Refused(error.errno) from error


def _refuse(codes: Iterable[int]) -> None:
    for code in codes:
        if code != ErrorCode.none:
            raise Refused(code)
