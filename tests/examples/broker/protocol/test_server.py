"""The server: its limit of connections, its end, and the versions that it advertises."""

import asyncio
import errno
import socket

import pytest
from anyio import CancelScope, connect_tcp, create_task_group, fail_after
from kio.schema.api_versions.v4 import ApiVersionsRequest

from examples.broker.errors import ErrorCode
from examples.broker.protocol.apis import API_VERSIONS, APIS, HEARTBEAT, PRODUCE, RequestContext
from examples.broker.protocol.gate import Gate
from examples.broker.protocol.server import Server, api_versions
from tests.examples.broker.protocol.plain_messages import message
from tests.examples.broker.protocol.server_and_client import (
    PATIENCE,
    LongPoll,
    Port,
    answer_at_once,
    heartbeat,
    serving,
)


async def test_the_port_is_returned_and_free_after_the_stop() -> None:
    async with serving(answer_at_once) as first, first.client() as client:
        assert await client.is_answered(1)
        assert repr(first.server) == f"<Server at 127.0.0.1:{first.number} with 1 connections>"
    async with serving(answer_at_once, port=first.number) as second, second.client() as client:
        assert second.number == first.number
        assert await client.is_answered(2)


async def test_a_port_in_use_is_an_error() -> None:
    async with serving(answer_at_once) as port:
        with pytest.raises(OSError, match="in use"):
            await Server({}, port=port.number).serve()


async def test_a_client_that_connects_in_the_moment_of_the_stop_leaves_no_error_in_the_loop() -> None:
    async with serving(answer_at_once) as port, port.client() as first:
        assert await first.is_answered(1)
        with socket.create_connection(("127.0.0.1", port.number)):
            # It runs when the loop has seen the connection, and before the loop accepts it.
            asyncio.get_running_loop().call_soon(port.server.stop_accepting)
            await asyncio.sleep(0)
            await port.server.stop(PATIENCE)


async def test_stop_answers_requests_in_progress_and_closes_idle_connections() -> None:
    poll = LongPoll()
    async with serving(poll) as port, port.client() as busy, port.client() as idle:
        await busy.send(heartbeat(1) + heartbeat(2))
        await poll.until(begun=1)
        async with create_task_group() as tasks:
            tasks.start_soon(port.server.stop, PATIENCE)
            assert await idle.closed() == b""
            with pytest.raises(OSError, match=r"failed|refused"):
                await connect_tcp("127.0.0.1", port.number)
            poll.answer.set()
            assert [await busy.correlation_id() for _ in range(2)] == [1, 2]
            assert await busy.closed() == b""
    assert poll.cancelled == 0


async def test_requests_not_answered_within_the_grace_are_cancelled() -> None:
    poll = LongPoll()
    async with serving(poll) as port, port.client() as client:
        await client.send(heartbeat(1))
        await poll.until(begun=1)
        await port.server.stop(0)
        assert (poll.cancelled, port.server.connection_count) == (1, 0)
        assert await client.closed() == b""


async def test_a_paused_server_can_be_stopped() -> None:
    gate = Gate()
    gate.close()
    async with serving(answer_at_once, gate=gate) as port, port.client() as client:
        await client.send(heartbeat(1))
        await port.until_connections(1)
        await port.server.stop(0)
        assert await client.closed() == b""


async def test_a_server_that_never_served_can_be_stopped() -> None:
    server = Server({HEARTBEAT.key: answer_at_once})
    await server.stop(PATIENCE)
    with fail_after(PATIENCE):
        await server.serve()


async def test_cancelling_closes_everything_at_once() -> None:
    poll = LongPoll()
    server = Server({HEARTBEAT.key: poll})
    async with create_task_group() as tasks:
        port = Port(server, await tasks.start(server.serve))
        async with port.client() as client:
            await client.send(heartbeat(1))
            await poll.until(begun=1)
            with CancelScope(shield=True):
                tasks.cancel_scope.cancel()
                assert await client.closed() == b""
    assert (poll.cancelled, server.connection_count) == (1, 0)
    with fail_after(PATIENCE):
        await server.stop(PATIENCE)


async def test_accepting_is_retried_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    accept = asyncio.get_running_loop().sock_accept
    failures = [OSError(errno.EMFILE, "Too many open files")]

    async def sock_accept(listener: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise failures.pop()
        return await accept(listener)

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_accept", sock_accept)
    async with serving(answer_at_once) as port, port.client() as client:
        assert await client.is_answered(1)
    assert "Too many open files" in caplog.text


async def test_all_served_versions_are_advertised_and_older_ones_of_produce() -> None:
    context = RequestContext(API_VERSIONS, 4, 1, None, "here")
    response = await api_versions(APIS.values(), context, None)
    advertised = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
    served = {api.key: (api.min_version, api.max_version) for api in APIS.values()}
    assert advertised == served | {PRODUCE.key: (0, PRODUCE.max_version)}


@pytest.mark.parametrize(("name", "version"), [("a b", "1"), ("", "1"), ("-a", "1"), ("good", "")])
async def test_a_client_has_a_name_and_a_version(name: str, version: str) -> None:
    values = {"client_software_name": name, "client_software_version": version}
    errors = [
        (await api_versions(APIS.values(), context, message(ApiVersionsRequest, values))).error_code
        for context in (RequestContext(API_VERSIONS, known, 1, None, "here") for known in (2, 4))
    ]
    assert errors == [ErrorCode.none, ErrorCode.invalid_request]
