"""Kafka clients with the settings that this service depends on.

The producer is idempotent and waits for all in-sync replicas. The consumers commit nothing by themselves,
begin with the earliest record, and read nothing of transactions that were aborted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import anyio
from aiokafka import (  # type: ignore[import-untyped]  # has no types
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    TopicPartition,
)
from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped]  # has no types
from aiokafka.client import AIOKafkaClient  # type: ignore[import-untyped]  # has no types
from aiokafka.conn import CloseReason  # type: ignore[import-untyped]  # has no types
from aiokafka.errors import TopicAlreadyExistsError, for_code  # type: ignore[import-untyped]  # has no types

# The broker sets the limit for the size of a record.
_LARGEST: Final = 1 << 27
_BATCH: Final = 1 << 17
# Milliseconds without a poll, after which the client leaves its group.
_NEVER: Final = 2**31 - 1
# Seconds that closing a client may take. What was sent is acknowledged before.
_CLOSING: Final = 5.0
# Seconds between two looks at the metadata of the cluster for new topics.
_METADATA: Final = 0.02
# Milliseconds until a consumer asks again which broker leads each partition. aiokafka 0.14 does not ask when
# a broker says that it no longer leads a partition where the consumer has no position yet: it asks the same
# broker again where the partition begins (`Fetcher._update_fetch_positions` in consumer/fetcher.py), and
# reads nothing until then. By default, that takes five minutes.
_LEADERS: Final = 5_000


def producing(bootstrap: str) -> AbstractAsyncContextManager[AIOKafkaProducer]:
    """A producer. Wait for what was sent before the end of the block."""
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        acks="all",
        max_request_size=_LARGEST,
        max_batch_size=_BATCH,
    )
    return _running(producer, producer.client)


def consuming(
    bootstrap: str,
    topics: list[str],
    group: str,
    session_timeout: float,
    listener: ConsumerRebalanceListener | None = None,
) -> AbstractAsyncContextManager[AIOKafkaConsumer]:
    """A member of a group, which is subscribed to `topics`. Leaving the block leaves the group.

    The group takes the partitions of a member that it does not hear of for `session_timeout` seconds.
    """
    consumer = _consumer(
        bootstrap,
        group_id=group,
        session_timeout_ms=round(session_timeout * 1000),
        heartbeat_interval_ms=round(session_timeout * 1000 / 5),
        max_poll_interval_ms=_NEVER,
    )
    if topics:
        consumer.subscribe(topics, listener=listener)
    return _running(consumer, consumer._client)


def reading(bootstrap: str) -> AbstractAsyncContextManager[AIOKafkaConsumer]:
    """A consumer without a group, which has no partitions yet."""
    consumer = _consumer(bootstrap)
    return _running(consumer, consumer._client)


async def next_records(
    consumer: AIOKafkaConsumer, milliseconds: int, most: int | None = None
) -> dict[TopicPartition, list[Any]]:
    """The next records of each partition; none if none comes in so many milliseconds.

    Raises KafkaError, and RuntimeError for a record that the client cannot read.
    """
    try:
        return dict(await consumer.getmany(timeout_ms=milliseconds, max_records=most))
    except UnicodeDecodeError as error:
        # The client has lost its place: it would leave out records that come before this one.
        topics = " or ".join(sorted({partition.topic for partition in consumer.assignment()}))
        raise RuntimeError(
            f"the name of a header in {topics} is not UTF-8, and the client cannot read such a record: find "
            "it with kcat, and delete the records up to it with kafka-delete-records"
        ) from error


async def create_topics(
    bootstrap: str, names: Sequence[str], partitions: int, replicas: int
) -> dict[str, set[int]]:
    """Create the topics that do not exist, with at most one replica a broker.

    Returns the partitions of each, also of those that were there. Raises KafkaError.
    """
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    async with _running(admin, admin._client):
        present = set(await admin.list_topics())
        brokers = len((await admin.describe_cluster())["brokers"])
        missing = [
            NewTopic(name, partitions, min(replicas, brokers)) for name in names if name not in present
        ]
        if missing:
            response = await admin.create_topics(missing)
            for name, code, *_ in response.topic_errors:
                error = for_code(code)
                # Another instance may be faster.
                if code and error is not TopicAlreadyExistsError:
                    raise error(name)
        while True:
            found = {
                topic["topic"]: {partition["partition"] for partition in topic["partitions"]}
                for topic in await admin.describe_topics(list(names))
                if not topic["error_code"] and topic["partitions"]
            }
            if len(found) == len(names):
                return found
            # Each broker gets to know new topics in its own time.
            await anyio.sleep(_METADATA)


@asynccontextmanager
async def _running(client: Any, connections: AIOKafkaClient) -> AsyncIterator[Any]:
    close_broken_connections(connections)
    try:
        await client.start()
        yield client
    finally:
        close = client.close if isinstance(client, AIOKafkaAdminClient) else client.stop
        # Without brokers, a client could try for ever.
        with anyio.move_on_after(_CLOSING, shield=True):
            await close()


def _consumer(bootstrap: str, **settings: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        metadata_max_age_ms=_LEADERS,
        **settings,
    )


def partitions_of(topic: str, numbers: Iterable[int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


def close_broken_connections(client: AIOKafkaClient) -> None:
    """Let a client close its broken connections, from now on, whenever it looks for one.

    aiokafka 0.14 does so itself, but some turns of the event loop after a connection breaks. These are the
    faults when another task looks for a connection in between:

    - `AIOKafkaClient._get_conn` drops a connection whose end has come. Its requests do not fail, but wait
      until `request_timeout_ms`, 40 s. Then `AIOKafkaClient.send` closes the connection that has taken its
      place, which fails other requests. If there is none, it raises KeyError. That ends the task which reads
      for a consumer, and the consumer gets no record any more, and no error.
    - `AIOKafkaConnection.send` writes to a connection that was reset. uvloop raises RuntimeError for that
      (issue 1038 of aiokafka). If it ends the task that asks for metadata, whoever waits for the next
      metadata waits for ever, such as a producer that sends a batch again.
    """
    connect = client._get_conn

    async def get_conn(*arguments: Any, **options: Any) -> Any:
        _close_broken(client)
        connection = await connect(*arguments, **options)
        # It can break while it is made.
        _close_broken(client)
        return connection

    client._get_conn = get_conn


def _close_broken(client: AIOKafkaClient) -> None:
    for connection in client._conns.values():
        is_open = connection._reader is not None
        if is_open and (connection._reader.at_eof() or connection._writer.is_closing()):
            connection.close(CloseReason.CONNECTION_BROKEN)
