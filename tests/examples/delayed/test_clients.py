"""What the service does about what its client cannot do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from aiokafka import TopicPartition  # type: ignore[import-untyped]  # has no types
from aiokafka.client import (  # type: ignore[import-untyped]  # has no types
    AIOKafkaClient,
    ConnectionGroup,
)
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped]  # has no types
from aiokafka.protocol.metadata import (  # type: ignore[import-untyped]  # has no types
    MetadataRequest,
    MetadataResponse_v0,
)

from examples.delayed import clients
from examples.delayed.clients import (
    close_broken_connections,
    consuming,
    create_topics,
    next_records,
    producing,
    reading,
)
from examples.delayed.settings import Settings
from tests.conftest import LoopFactory
from tests.examples.delayed.running import PATIENCE

# Turns of the loop in which a client may look for a connection after it was reset.
TURNS = 5
NODE = 0


class Consumer:
    """Fails as aiokafka does for a header whose name is not UTF-8."""

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition("delayed", 0), TopicPartition("delayed", 1)}

    async def getmany(self, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Any]]:
        b"\xff".decode()
        return {}


async def test_a_record_that_the_client_cannot_read_is_named_with_the_way_out() -> None:
    with pytest.raises(RuntimeError, match=r"a header in delayed is not UTF-8.*kafka-delete-records"):
        await next_records(Consumer(), 100, 10)


async def test_a_consumer_that_asked_a_former_leader_where_a_partition_begins_finds_the_new_one(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_LEADERS", 50)
    topic = settings.topics.requests
    partition = TopicPartition(topic, 0)
    await create_topics(settings.bootstrap, [topic], 1, 3)
    async with reading(settings.bootstrap) as consumer:
        consumer.assign([partition])
        await consumer.position(partition)
        known = consumer._client.cluster._partitions[topic]
        known[0] = known[0]._replace(leader=known[0].leader % 3 + 1)
        with anyio.fail_after(PATIENCE):
            await consumer.seek_to_beginning(partition)


@asynccontextmanager
async def client_of_a_silent_broker() -> AsyncIterator[AIOKafkaClient]:
    """A client of a broker that says which APIs it serves, and answers nothing else."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1024)
        # The length, correlation id 1, no error, and two APIs with their lowest and highest version.
        apis = (3, 0, 0), (18, 0, 0)
        parts = [(1, 4), (0, 2), (len(apis), 4), *((number, 2) for api in apis for number in api)]
        response = b"".join(number.to_bytes(length) for number, length in parts)
        writer.write(len(response).to_bytes(4) + response)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as broker:
        client = AIOKafkaClient()
        address = broker.sockets[0].getsockname()
        client.cluster.update_metadata(MetadataResponse_v0([(NODE, *address)], []))
        try:
            yield client
        finally:
            await client.close()


def test_a_request_fails_when_its_connection_ends_and_its_broker_is_gone(
    loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """aiokafka alone lets it wait for 40 seconds, and then raises KeyError."""
    # A captured record would keep the connection, by the traceback of the error that it names.
    caplog.set_level(logging.CRITICAL, logger="aiokafka")

    async def end_while_a_request_waits() -> None:
        async with client_of_a_silent_broker() as client:
            close_broken_connections(client)
            assert await client.ready(NODE)
            waiting = asyncio.create_task(client.send(NODE, MetadataRequest([])))
            await asyncio.sleep(0)
            client._conns[NODE, ConnectionGroup.DEFAULT]._reader.feed_eof()
            client.cluster.update_metadata(MetadataResponse_v0([(NODE + 1, "127.0.0.1", 1)], []))
            assert not await client.ready(NODE)
            with pytest.raises(KafkaConnectionError):
                await waiting

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(end_while_a_request_waits())


@pytest.mark.parametrize(
    "opened",
    [producing, reading, partial(consuming, topics=[], group="group", session_timeout=10)],
    ids=["producing", "reading", "consuming"],
)
def test_a_client_makes_another_connection_when_one_was_reset(
    opened: Callable[[str], AbstractAsyncContextManager[Any]],
    settings: Settings,
    loop_factory: LoopFactory,
) -> None:
    """On uvloop, aiokafka alone raises RuntimeError, which its own tasks do not expect."""

    async def reset_connections() -> None:
        async with opened(settings.bootstrap) as opened_client:
            client = opened_client.client if opened is producing else opened_client._client
            node = client.get_random_node()
            for turns in range(TURNS):
                assert await client.ready(node)
                connection = client._conns[node, ConnectionGroup.DEFAULT]
                connection._writer.transport._force_close(ConnectionResetError())
                for _ in range(turns):
                    await asyncio.sleep(0)
                assert (await client.send(node, MetadataRequest([]))).brokers

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(reset_connections())
