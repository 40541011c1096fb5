"""Requests of one broker to another."""

from contextlib import suppress
from typing import Final

import pytest
from anyio import BrokenResourceError, BusyResourceError, EndOfStream, create_task_group
from anyio.abc import SocketStream
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4 import HeartbeatRequest, HeartbeatResponse

from examples.broker.protocol.apis import HEARTBEAT, RequestContext
from examples.broker.protocol.client import PeerConnection
from tests.examples.broker.protocol.plain_messages import message
from tests.examples.broker.protocol.server_and_client import ALIVE, LongPoll, answer_at_once, serving
from tests.tcp_server import tcp_server

ASKED: Final[HeartbeatRequest] = message(HeartbeatRequest, {"group_id": "group", "generation_id": 1})


async def connected(port: int) -> PeerConnection:
    return await PeerConnection.open("127.0.0.1", port, "broker-1")


async def test_requests_to_a_peer_are_answered_in_order() -> None:
    contexts: list[RequestContext] = []

    async def answer(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        assert request == ASKED
        contexts.append(context)
        return ALIVE

    async with serving(answer) as port:
        peer = await connected(port.number)
        for _ in range(3):
            response = await peer.request(HEARTBEAT, ASKED)
            assert response.error_code is ErrorCode.none
        assert repr(peer) == f"<PeerConnection to 127.0.0.1:{port.number} after 3 requests>"
        await peer.aclose()
        await port.until_connections(0)
    assert {(context.client_id, context.version) for context in contexts} == {("broker-1", 4)}
    assert len({context.correlation_id for context in contexts}) == 3


async def test_an_unreachable_peer_is_a_connection_error() -> None:
    async with serving(answer_at_once) as port:
        pass
    with pytest.raises(ConnectionError, match=f"127.0.0.1:{port.number} cannot be reached"):
        await connected(port.number)


async def test_a_peer_that_closes_before_it_answers_is_a_connection_error() -> None:
    poll = LongPoll()
    async with serving(poll) as port:
        peer = await connected(port.number)
        async with create_task_group() as tasks:
            tasks.start_soon(port.server.stop, 0)
            with pytest.raises(ConnectionError, match=f"to 127.0.0.1:{port.number} is closed"):
                await peer.request(HEARTBEAT, ASKED)
        with pytest.raises(ConnectionError, match="is closed"):
            await peer.request(HEARTBEAT, ASKED)


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        pytest.param(b"\x00\x00\x00\x05\x00\x00\x00\x63\x00", "cannot be decoded", id="cut short"),
        pytest.param(b"\x00\x00\x00\x0c\x00\x00\x00\x63" + bytes(8), "response 99", id="to another request"),
        pytest.param(b"\x7f\xff\xff\xff", "a frame of 2147483647 bytes", id="of 2 GiB"),
    ],
)
async def test_an_invalid_response_is_a_connection_error(answer: bytes, cause: str) -> None:
    async def answer_nonsense(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(answer)
            with suppress(EndOfStream, BrokenResourceError):
                await stream.receive()

    async with tcp_server(answer_nonsense) as port:
        peer = await connected(port)
        with pytest.raises(ConnectionError, match=f"127.0.0.1:{port} sent an invalid response: .*{cause}"):
            await peer.request(HEARTBEAT, ASKED)


async def test_a_cancelled_request_closes_the_connection() -> None:
    poll = LongPoll()
    async with serving(poll) as port:
        peer = await connected(port.number)
        async with create_task_group() as tasks:
            tasks.start_soon(peer.request, HEARTBEAT, ASKED)
            await poll.until(begun=1)
            tasks.cancel_scope.cancel()
        await poll.until(cancelled=1)
        with pytest.raises(ConnectionError):
            await peer.request(HEARTBEAT, ASKED)


async def test_one_request_at_a_time() -> None:
    poll = LongPoll()
    async with serving(poll) as port:
        peer = await connected(port.number)
        async with create_task_group() as tasks:
            tasks.start_soon(peer.request, HEARTBEAT, ASKED)
            await poll.until(begun=1)
            with pytest.raises(BusyResourceError):
                await peer.request(HEARTBEAT, ASKED)
            poll.answer.set()
        await peer.aclose()
