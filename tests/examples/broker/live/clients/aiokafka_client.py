"""aiokafka, with blocking calls: its event loop runs in a thread."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
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


class AiokafkaProducer(Producer):
    def __init__(self, producer: Any, portal: BlockingPortal) -> None:
        self._producer = producer
        self._portal = portal

    def begin(self, topic: str, *records: Record, partition: int = 0) -> list[Future[int | None]]:
        with _refusals():
            return self._portal.call(self._begin, topic, records, partition)

    async def _begin(
        self, topic: str, records: tuple[Record, ...], partition: int
    ) -> list[Future[int | None]]:
        return [
            _offset(
                await self._producer.send(
                    topic,
                    record.value,
                    record.key,
                    partition=partition,
                    timestamp_ms=record.timestamp,
                    headers=list(record.headers),
                )
            )
            for record in records
        ]


class AiokafkaConsumer(KeywordConsumer):
    def __init__(self, consumer: Any, portal: BlockingPortal) -> None:
        super().__init__(consumer, TopicPartition, portal.call)

    def poll(self, within: float) -> list[ReadRecord]:
        with _refusals():
            return read_records(self._call(self._poll, milliseconds(within)))

    async def _poll(self, timeout_ms: int) -> Any:
        return await self._consumer.getmany(timeout_ms=timeout_ms)


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
        """Alter these settings. All others have their defaults again."""
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
    begins_new_epochs = False

    @contextmanager
    def producer(self, bootstrap_servers: str, settings: ProducerSettings) -> Iterator[AiokafkaProducer]:
        keywords = producer_keywords(bootstrap_servers, settings)
        keywords["acks"] = "all" if settings.acks == -1 else settings.acks
        if settings.impatient:
            # It gives up a record after this time.
            keywords |= {
                "max_batch_size": settings.BATCH_BYTES,
                "request_timeout_ms": settings.DELIVERY_TIMEOUT_MS,
            }
        with _running(lambda: AIOKafkaProducer(**keywords)) as (producer, portal):
            yield AiokafkaProducer(producer, portal)

    @contextmanager
    def consumer(self, bootstrap_servers: str, settings: ConsumerSettings) -> Iterator[AiokafkaConsumer]:
        keywords = consumer_keywords(bootstrap_servers, settings)
        keywords["rebalance_timeout_ms"] = settings.REBALANCE_TIMEOUT_MS
        with _running(lambda: AIOKafkaConsumer(**keywords)) as (consumer, portal):
            yield AiokafkaConsumer(consumer, portal)

    @contextmanager
    def admin(self, bootstrap_servers: str) -> Iterator[AiokafkaAdmin]:
        with _running(lambda: AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)) as (admin, portal):
            yield AiokafkaAdmin(admin, portal)

    def begin_transactions(self, bootstrap_servers: str, transactional_id: str) -> None:
        def make() -> Any:
            return AIOKafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=transactional_id)

        with _refusals(), _running(make):
            pass


@contextmanager
def _running(make: Callable[[], Any]) -> Iterator[tuple[Any, BlockingPortal]]:
    """Run a client on an event loop of its own, and yield both."""

    @asynccontextmanager
    async def running() -> AsyncIterator[Any]:
        client = make()
        try:
            await client.start()
            yield client
        finally:
            await (client.close if isinstance(client, AIOKafkaAdminClient) else client.stop)()

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(running()) as client:
        yield client, portal


def _offset(sent: asyncio.Future[Any]) -> Future[int | None]:
    """Return a future of other threads, which gets the offset. With acks=0 there is none."""
    offset: Future[int | None] = Future()

    def done(sent: asyncio.Future[Any]) -> None:
        try:
            with _refusals():
                metadata = sent.result()
            offset.set_result(None if metadata is None else metadata.offset)
        except Exception as error:
            offset.set_exception(error)

    sent.add_done_callback(done)
    return offset


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
