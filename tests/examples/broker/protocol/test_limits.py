"""The limits of connections in virtual time: idle clients, slow clients, and the memory that all share."""

from contextlib import AsyncExitStack

import pytest
from anyio import BrokenResourceError, create_task_group, current_time, move_on_after, sleep

from examples.broker.protocol.connection import ConnectionLimits
from examples.broker.protocol.gate import ALWAYS_RECEIVED, Gate, RequestMemory
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


async def test_a_request_must_arrive_within_the_read_timeout_which_single_bytes_do_not_extend(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        connected(answer_at_once, ConnectionLimits(request_read_timeout=2)) as client,
        create_task_group() as tasks,
    ):
        tasks.start_soon(client.drip, heartbeat(), 0.3)
        assert await client.closed() == b""
        assert current_time() == 2
        tasks.cancel_scope.cancel()
    assert "a request did not arrive within 2 s" in caplog.text


async def test_each_request_waits_for_the_delay_of_the_gate() -> None:
    gate = Gate()
    gate.delay = 3
    async with connected(answer_at_once, gate=gate) as client:
        await client.send(heartbeat(1) + heartbeat(2))
        assert [await client.correlation_id() for _ in range(2)] == [1, 2]
        assert current_time() == 6


async def test_an_idle_connection_is_closed_counting_from_its_last_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    poll = LongPoll()
    async with connected(poll, ConnectionLimits(connections_max_idle=5)) as client:
        await client.send(heartbeat(1))
        await sleep(50)
        poll.answer.set()
        assert await client.correlation_id() == 1
        await sleep(4)
        assert await client.is_answered(2)
        assert await client.closed() == b""
        assert current_time() == 59
    assert "no request came for 5 s" in caplog.text


async def test_a_client_that_does_not_read_its_response_is_disconnected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = ConnectionLimits(connections_max_idle=5)
    async with connected(answer_at_once, limits, buffer=0) as client:
        await client.send(heartbeat())
        await sleep(5.1)
        with pytest.raises(BrokenResourceError):
            await client.send(heartbeat())
    assert "did not read a response within 5 s" in caplog.text


async def test_the_server_stops_reading_when_too_many_requests_wait(virtual_time: VirtualTimeLoop) -> None:
    poll = LongPoll()
    limits = ConnectionLimits(read_ahead_max_bytes=1_000_000)
    request = heartbeat(2, group=30_000 * "g")
    sent = 0
    async with connected(poll, limits) as client:
        await client.send(heartbeat(1))
        await poll.until(begun=1)
        with move_on_after(10) as blocked:
            while True:
                await client.send(request)
                sent += 1
        assert blocked.cancelled_caught
        assert (
            limits.read_ahead_max_bytes
            <= sent * len(request)
            < limits.read_ahead_max_bytes + 2 * len(request)
        )
        poll.answer.set()
        assert [await client.correlation_id() for _ in range(3)] == [1, 2, 2]


async def test_a_closed_gate_holds_requests_and_responses() -> None:
    gate, poll = Gate(), LongPoll()
    gate.close()
    async with connected(poll, gate=gate) as client:
        await client.send(heartbeat(1))
        assert await client.hears_nothing()
        assert poll.begun == 0
        gate.open()
        await poll.until(begun=1)
        gate.close()
        poll.answer.set()
        assert await client.hears_nothing()
        gate.open()
        assert await client.correlation_id() == 1


async def test_a_request_takes_its_memory_until_it_is_answered() -> None:
    memory, poll = RequestMemory(10 * LARGE), LongPoll()
    async with connected(poll, ConnectionLimits(memory=memory)) as client:
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
            await stack.enter_async_context(connected(answer_at_once, ConnectionLimits(memory=memory)))
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
        connected(answer_at_once, ConnectionLimits(memory=memory)) as large,
        connected(answer_at_once, ConnectionLimits(memory=memory)) as small,
    ):
        await large.send(FIRST)
        assert await small.is_answered(1)
        for part in (heartbeat(2)[:3], heartbeat(2)[3:10], heartbeat(2)[10:]):
            await small.send(part)
        assert await small.correlation_id() == 2
        assert current_time() == 0, "the large one has not stalled long enough to lose its memory"


async def test_the_wait_for_memory_does_not_count_for_the_read_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = RequestMemory(LARGE)
    memory.take(LARGE)
    async with connected(answer_at_once, ConnectionLimits(request_read_timeout=2, memory=memory)) as client:
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
    async with connected(poll, ConnectionLimits(memory=memory)) as client:
        await client.send(sent)
        await sleep(1)
        assert memory.used > 0
        await RawClient.go(client)
        await sleep(1)
        assert memory.used == 0
