"""One connection: requests are answered in order, and clients disconnect or send invalid requests."""

import logging
from collections.abc import Awaitable, Callable

import pytest
from anyio import Event, fail_after
from anyio.lowlevel import checkpoint
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v0 import HeartbeatRequest as HeartbeatRequestV0
from kio.schema.heartbeat.v4 import HeartbeatRequest, HeartbeatResponse
from kio.schema.sync_group.v5 import SyncGroupResponse

from examples.broker.protocol.apis import API_VERSIONS, HEARTBEAT, SYNC_GROUP, RequestContext
from examples.broker.protocol.connection import ConnectionLimits
from examples.broker.protocol.gate import Gate
from tests.examples.broker.protocol.plain_messages import message
from tests.examples.broker.protocol.server_and_client import (
    ALIVE,
    PATIENCE,
    LongPoll,
    RawClient,
    answer_at_once,
    heartbeat,
    serving,
)
from tests.examples.broker.protocol.wire_messages import read_response, request_frame, with_size


async def test_requests_are_answered_one_at_a_time_in_order() -> None:
    running, most, generations = 0, 0, []

    async def answer(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        nonlocal running, most
        running += 1
        most = max(most, running)
        # Earlier requests take longer.
        for _ in range(5 - request.generation_id):
            await checkpoint()
        generations.append(request.generation_id)
        running -= 1
        return ALIVE

    async with serving(answer) as port, port.client() as client:
        await client.send(b"".join(heartbeat(100 + number, generation=number) for number in range(5)))
        assert [await client.correlation_id() for _ in range(5)] == [100, 101, 102, 103, 104]
    assert (generations, most) == ([0, 1, 2, 3, 4], 1)


async def test_a_client_is_answered_in_its_own_version() -> None:
    old = message(HeartbeatRequestV0, {"group_id": "group", "generation_id": 1})
    asked: list[tuple[int, str | None, str, HeartbeatRequest]] = []

    async def answer(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        asked.append((context.version, context.client_id, context.client_host, request))
        return ALIVE

    async with serving(answer) as port, port.client() as client:
        await client.send(with_size(request_frame(old)))
        correlation_id, response = read_response(HEARTBEAT, 0, with_size(await client.frame()))
    assert (correlation_id, response.error_code) == (7, ErrorCode.none)
    newest = message(HeartbeatRequest, {"group_id": "group", "generation_id": 1})
    assert asked == [(0, "client", "127.0.0.1", newest)]


async def test_a_handler_that_returns_none_sends_no_response() -> None:
    async def answer(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse | None:
        return None if context.correlation_id == 1 else ALIVE

    async with serving(answer) as port, port.client() as client:
        await client.send(heartbeat(1) + heartbeat(2))
        assert await client.correlation_id() == 2


@pytest.mark.parametrize("version", [-1, 5, 99])
async def test_api_versions_of_an_unknown_version_is_answered_and_may_be_asked_again(version: int) -> None:
    unknown = b"\x00\x12" + version.to_bytes(2, "big", signed=True)
    async with serving(answer_at_once) as port, port.client() as client:
        await client.send(with_size(unknown + b"\x00\x00\x00\x05" + b"from the future"))
        correlation_id, response = read_response(API_VERSIONS, 0, with_size(await client.frame()))
        assert (correlation_id, response.error_code) == (5, ErrorCode.unsupported_version)
        served = [(api.api_key, api.min_version, api.max_version) for api in response.api_keys]
        assert served == [(12, 0, 4), (18, 0, 4)]
        request = message(
            API_VERSIONS.request, {"client_software_name": "test", "client_software_version": "1"}
        )
        await client.send(with_size(request_frame(request, correlation_id=6)))
        correlation_id, response = read_response(API_VERSIONS, 4, with_size(await client.frame()))
        assert (correlation_id, response.error_code, len(response.api_keys)) == (6, ErrorCode.none, 2)


@pytest.mark.parametrize(
    ("nonsense", "cause"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", "it sends an HTTP request", id="HTTP"),
        pytest.param(b"\x00\x00\x00\x07", "a frame of 7 bytes", id="less than a header"),
        pytest.param(with_size(b"\x03\xe7\x00\x00" + bytes(6)), "API key 999 v0", id="unknown API"),
        pytest.param(
            with_size(b"\x00\x0c\x00\x63" + bytes(6)), "v99 of <Api Heartbeat 0-4>", id="unknown version"
        ),
        pytest.param(
            with_size(b"\x00\x00\x00\x03" + b"?" * 40), "Produce v3 cannot be decoded", id="no request"
        ),
        pytest.param(with_size(heartbeat()[4:-3]), "Heartbeat v4 cannot be decoded", id="cut short"),
        pytest.param(
            with_size(b"\x00\x03\x00\x00" + bytes(4) + b"\xff\xff" + bytes(4)),
            "Metadata is not served by this broker",
            id="an API without a route",
        ),
    ],
)
async def test_an_invalid_request_closes_its_own_connection_only(
    nonsense: bytes, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(answer_at_once) as port, port.client() as other, port.client() as client:
        await client.send(heartbeat(1) + nonsense)
        await client.closed()
        assert await other.is_answered(2)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("closed the connection of 127.0.0.1:")
    assert cause in record.getMessage()


async def test_requests_before_an_invalid_one_are_answered() -> None:
    async with serving(answer_at_once) as port, port.client() as client:
        await client.send(heartbeat(1) + heartbeat(2) + with_size(heartbeat()[4:-3]) + heartbeat(4))
        assert [await client.correlation_id() for _ in range(2)] == [1, 2]
        assert await client.closed() == b""


async def test_two_faults_of_a_connection_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    poll = LongPoll()
    async with serving(poll) as port, port.client() as client:
        await client.send(heartbeat(1) + with_size(heartbeat()[4:-3]) + b"\x7f\xff\xff\xff")
        await client.closed()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


async def test_a_failing_handler_closes_its_own_connection_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def answer(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        if request.generation_id:
            raise RuntimeError("a bug")
        return ALIVE

    async with serving(answer) as port, port.client() as other, port.client() as client:
        await client.send(heartbeat(1, generation=1) + heartbeat(2))
        assert await client.closed() == b""
        assert await other.is_answered(3)
    (record,) = caplog.records
    assert "a bug" in caplog.text
    assert record.exc_info is not None


@pytest.mark.parametrize("leave", [RawClient.go, RawClient.vanish])
@pytest.mark.parametrize("waiting", [0, 1], ids=["alone", "with another request waiting"])
async def test_a_disconnect_cancels_the_request_in_progress(
    leave: Callable[[RawClient], Awaitable[None]], waiting: int, caplog: pytest.LogCaptureFixture
) -> None:
    poll = LongPoll()
    async with serving(poll) as port, port.client() as other:
        await other.send(heartbeat(1))
        await poll.until(begun=1)
        async with port.client() as client:
            await client.send(heartbeat(2) + waiting * heartbeat(3))
            await poll.until(begun=2)
            await leave(client)
            await poll.until(cancelled=1 + waiting)
        poll.answer.set()
        assert await other.correlation_id() == 1
        assert (poll.begun, poll.cancelled) == (2 + waiting, 1 + waiting)
    assert not caplog.records


async def test_a_client_that_waits_to_send_is_served_later_and_its_disconnect_is_noticed_then() -> None:
    poll = LongPoll()
    limits = ConnectionLimits(read_ahead_max_bytes=len(heartbeat()))
    async with serving(poll, limits=limits) as port:
        async with port.client() as client:
            await client.send(b"".join(heartbeat(number) for number in range(5)))
            await poll.until(begun=1)
            poll.answer.set()
            assert [await client.correlation_id() for _ in range(5)] == [0, 1, 2, 3, 4]
            poll.answer = Event()
            await client.send(heartbeat())
            await poll.until(begun=6)
        await poll.until(cancelled=1)
        await port.until_connections(0)


async def test_requests_sent_before_a_disconnect_are_handled_unless_they_wait() -> None:
    done, all_done = [], Event()

    async def answer(context: RequestContext, request: HeartbeatRequest) -> None:
        done.append(context.correlation_id)
        if len(done) == 5:
            all_done.set()

    async with serving(answer) as port:
        async with port.client() as client:
            await client.send(b"".join(map(heartbeat, range(5))))
        with fail_after(PATIENCE):
            await all_done.wait()
    assert done == [0, 1, 2, 3, 4]


async def test_a_disconnect_during_a_response_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def answer_at_length(context: RequestContext, request: object) -> SyncGroupResponse:
        return message(SyncGroupResponse, {"error_code": ErrorCode.none, "assignment": bytes(50_000_000)})

    request = message(SYNC_GROUP.request, {"group_id": "group"})
    async with serving(answer_at_length, api=SYNC_GROUP) as port, port.client() as client:
        await client.send(with_size(request_frame(request)))
        await client.some()
        await client.vanish()
        await port.until_connections(0)
    assert not caplog.records


async def test_a_disconnect_while_the_gate_is_closed_closes_the_connection() -> None:
    gate, poll = Gate(), LongPoll()
    gate.close()
    async with serving(poll, gate=gate) as port:
        async with port.client() as client:
            await client.send(heartbeat(1))
        await port.until_connections(0)
        gate.open()
    assert poll.begun == 0
