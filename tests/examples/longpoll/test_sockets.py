"""The behaviours that `test_connection` shows in memory also hold with real sockets, on both event loops."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import pytest
import pytest_asyncio
import uvicorn

from examples.longpoll.application import application
from examples.longpoll.connection import UNSENT_BYTES, Connection
from examples.longpoll.limits import Limits
from examples.longpoll.service import Service

pytestmark = pytest.mark.real_time

LIMITS = Limits(wait=60, client_timeout=0.2)

POST = b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@dataclass(frozen=True, slots=True)
class SocketServer:
    service: Service
    port: int
    server: uvicorn.Server

    @property
    def transport(self) -> asyncio.Transport:
        """The server's end of the only connection."""
        (connection,) = self.server.server_state.connections
        return connection.transport


@pytest_asyncio.fixture
async def socket_server() -> AsyncIterator[SocketServer]:
    service = Service(LIMITS)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # Connections inherit it: the less the kernel holds of an unread answer, the sooner the server does.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
        config = uvicorn.Config(
            application(service),
            http=Connection,
            ws="none",
            log_config=None,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve([listener]))
        try:
            await until(lambda: server.started)
            yield SocketServer(service, listener.getsockname()[1], server)
        finally:
            server.should_exit = True
            await task


async def until(condition: Callable[[], object]) -> None:
    """The limit is for a hang alone: no test depends on how soon the condition holds."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.005)


@asynccontextmanager
async def connect(
    server: SocketServer, sent: bytes = b""
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(sent)
        yield reader, writer
    finally:
        writer.close()
        # The server may have reset the connection.
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


@contextmanager
def connect_without_reading(server: SocketServer) -> Iterator[socket.socket]:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        client.connect(("127.0.0.1", server.port))
        yield client


def get(path: str, times: int = 1) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * times


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


async def test_clients_that_do_not_finish_a_request_lose_their_connections(
    socket_server: SocketServer,
) -> None:
    body = POST + b"Content-Length: 10\r\n\r\n12345"
    async with (
        connect(socket_server) as (silent, _),
        connect(socket_server, POST) as (in_head, _),
        connect(socket_server, body) as (in_body, _),
    ):
        for reader in (silent, in_head, in_body):
            assert await is_closed(reader)
    await until(lambda: socket_server.service.connections.statistics().pending == 0)


async def test_a_client_that_leaves_withdraws_its_pipelined_polls(socket_server: SocketServer) -> None:
    polls, connections = socket_server.service.polls, socket_server.service.connections
    async with connect(socket_server, get("/topics/t?wait=60")) as (_, writer):
        await until(lambda: polls.statistics().pending == 1)
        writer.write(get("/topics/t?wait=60", times=2))
    await until(lambda: connections.statistics().pending == 0)
    await until(lambda: polls.statistics().cancelled == 1)
    assert polls.statistics().pending == 0


async def test_reading_stops_at_a_limit_behind_a_pending_poll(socket_server: SocketServer) -> None:
    async with connect(socket_server, get("/topics/t?wait=60")) as (reader, writer):
        await until(lambda: socket_server.service.polls.statistics().pending == 1)
        writer.write(POST + b"Content-Length: 1000000\r\n\r\n" + b"1" * 1_000_000)
        await until(lambda: not socket_server.transport.is_reading())
        await socket_server.service.topics.append("t", b"1")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")


async def test_an_answer_that_its_client_does_not_read_is_dropped(socket_server: SocketServer) -> None:
    connections = socket_server.service.connections
    for _ in range(16):
        await socket_server.service.topics.append("t", b'"%s"' % (b"x" * 16_000))
    with connect_without_reading(socket_server) as client:
        # 16 answers of 256 kB are more than the kernel holds.
        client.send(get("/topics/t", times=16))
        await until(lambda: connections.statistics().expired == 1)
    assert connections.statistics().pending == 0


async def test_a_connection_that_closes_does_not_wait_for_ever_for_its_client(
    socket_server: SocketServer,
) -> None:
    connections, state = socket_server.service.connections, socket_server.server.server_state

    async def ask() -> None:
        answered = state.total_requests
        client.send(get("/presence"))
        await until(lambda: state.total_requests > answered)

    with connect_without_reading(socket_server) as client:
        await ask()
        # Until the server holds more than one answer, which a loop may keep until its next turn, but not so
        # much that it would wait for the client.
        while socket_server.transport.get_write_buffer_size() < 1_000:
            await ask()
        assert socket_server.transport.get_write_buffer_size() < UNSENT_BYTES - 1_000
        client.send(b"GET /presence HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        await until(lambda: connections.statistics().expired == 1)
    assert connections.statistics().pending == 0
