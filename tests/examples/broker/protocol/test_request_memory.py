"""The memory of unanswered requests, which all connections share, in virtual time."""

from contextlib import AsyncExitStack

import pytest
from anyio import current_time, sleep

from examples.broker.protocol.connection import ConnectionLimits
from examples.broker.protocol.gate import ALWAYS_RECEIVED, RequestMemory
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.protocol.memory_socket import connected
from tests.examples.broker.protocol.server_and_client import (
    LongPoll,
    RawClient,
    answer_at_once,
    heartbeat,
)
from tests.examples.broker.protocol.wire_messages import with_size

pytestmark = pytest.mark.usefixtures("virtual_time")

LARGE = 10 * ALWAYS_RECEIVED
# Bytes after a request are ignored.
REQUEST = with_size(heartbeat(7)[4:] + bytes(LARGE))
FIRST, REST = REQUEST[:100], REQUEST[100:]


async def test_a_request_takes_its_memory_until_it_is_answered() -> None:
    memory, poll = RequestMemory(10 * LARGE), LongPoll()
    async with connected(poll, ConnectionLimits(memory=memory)) as (client, _):
        await client.send(FIRST)
        await sleep(1)
        assert memory.used == len(REQUEST) - 4
        await client.send(REST)
        await client.send(heartbeat())
        await poll.until(begun=1)
        assert memory.used == len(REQUEST) - 4 + len(heartbeat()) - 4
        poll.answer.set()
        assert [await client.correlation_id() for _ in range(2)] == [7, 7]
        assert memory.used == 0


async def test_large_requests_wait_for_memory_and_then_take_all_that_they_need() -> None:
    memory = RequestMemory(len(REQUEST))
    async with AsyncExitStack() as stack:
        clients = [
            (await stack.enter_async_context(connected(answer_at_once, ConnectionLimits(memory=memory))))[0]
            for _ in range(3)
        ]
        for client in clients:
            await client.send(FIRST)
        await sleep(1)
        assert memory.used == 2 * (len(REQUEST) - 4), "the second one finds the memory not used up"
        for client in clients[:2]:
            await client.send(REST)
            assert await client.correlation_id() == 7
        await clients[2].send(REST)
        assert await clients[2].correlation_id() == 7
        assert memory.used == 0


async def test_small_requests_do_not_wait_for_memory() -> None:
    memory = RequestMemory(1)
    async with (
        connected(answer_at_once, ConnectionLimits(memory=memory)) as (large, _),
        connected(answer_at_once, ConnectionLimits(memory=memory)) as (small, _),
    ):
        await large.send(FIRST)
        await small.send(heartbeat(1))
        assert await small.correlation_id() == 1
        for part in (heartbeat(2)[:3], heartbeat(2)[3:10], heartbeat(2)[10:]):
            await small.send(part)
        assert await small.correlation_id() == 2
        assert current_time() == 0, "the large one has not stalled long enough to lose its memory"


async def test_the_wait_for_memory_does_not_count_for_the_read_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = RequestMemory(LARGE)
    memory.take(LARGE)
    async with connected(answer_at_once, ConnectionLimits(request_read_timeout=2, memory=memory)) as (
        client,
        _,
    ):
        await client.send(FIRST)
        await sleep(100)
        memory.release(LARGE)
        await sleep(1)
        await client.send(REST)
        assert await client.correlation_id() == 7
        await client.send(FIRST)
        began = current_time()
        assert await client.closed() == b""
        assert current_time() == began + 2
    assert "a request did not arrive within 2 s" in caplog.text


@pytest.mark.parametrize("sent", [FIRST, heartbeat(1) + heartbeat(2), heartbeat(1) + FIRST])
async def test_a_connection_that_ends_leaves_its_memory(sent: bytes, virtual_time: VirtualTimeLoop) -> None:
    memory, poll = RequestMemory(10 * LARGE), LongPoll()
    async with connected(poll, ConnectionLimits(memory=memory)) as (client, _):
        await client.send(sent)
        await sleep(1)
        assert memory.used > 0
        await RawClient.go(client)
        await sleep(1)
        assert memory.used == 0
