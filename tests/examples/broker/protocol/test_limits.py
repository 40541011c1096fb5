"""The limits of connections in virtual time: idle clients, slow clients, and clients that send much."""

import pytest
from anyio import BrokenResourceError, create_task_group, current_time, move_on_after, sleep

from examples.broker.protocol.connection import ConnectionLimits
from examples.broker.protocol.gate import Gate
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.protocol.memory_socket import connected
from tests.examples.broker.protocol.server_and_client import (
    LongPoll,
    answer_at_once,
    heartbeat,
)

pytestmark = pytest.mark.usefixtures("virtual_time")


async def test_a_whole_request_must_arrive_within_the_idle_time_which_single_bytes_do_not_extend(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        connected(answer_at_once, ConnectionLimits(connections_max_idle=2)) as client,
        create_task_group() as tasks,
    ):
        tasks.start_soon(client.drip, heartbeat(), 0.3)
        assert await client.closed() == b""
        assert current_time() == 2
        tasks.cancel_scope.cancel()
    assert "no whole request came for 2 s" in caplog.text


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
    assert "no whole request came for 5 s" in caplog.text


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
