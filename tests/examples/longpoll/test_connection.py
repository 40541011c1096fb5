"""A client that does not do its part loses its connection; one that does keeps it, however long it waits."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace

import pytest
import uvicorn

from examples.longpoll.application import application
from examples.longpoll.connection import UNSENT_BYTES, Connection
from examples.longpoll.limits import Limits
from examples.longpoll.service import Service

pytestmark = pytest.mark.real_time

LIMITS = Limits(client_timeout=0.2, head_bytes=2_000, pending=4, connections=5)


@dataclass(frozen=True, slots=True)
class Served:
    service: Service
    port: int
    server: uvicorn.Server


@asynccontextmanager
async def served(limits: Limits, keep_alive: int = 5) -> AsyncIterator[Served]:
    service = Service(limits)
    listener = socket.create_server(("127.0.0.1", 0))
    # Of its connections, too: the kernel takes little of what a client does not.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
    config = uvicorn.Config(
        application(service),
        http=Connection,
        ws="none",
        log_config=None,
        timeout_keep_alive=keep_alive,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve([listener]))
    try:
        await until(lambda: server.started)
        yield Served(service, listener.getsockname()[1], server)
    finally:
        server.should_exit = True
        await task


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.005)


class Client:
    """One that sends what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def of(cls, served: Served) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", served.port))

    def send(self, text: str) -> None:
        self.writer.write(text.encode())

    def get(self, path: str) -> None:
        self.send(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n")

    async def status(self) -> int:
        """Of the next answer, which is read whole; 0 when the connection is closed instead."""
        try:
            async with asyncio.timeout(5):
                line = await self.reader.readline()
                length = 0
                while (header := await self.reader.readline()).strip():
                    if header.lower().startswith(b"content-length:"):
                        length = int(header.split(b":")[1])
                await self.reader.readexactly(length)
        except (ConnectionError, asyncio.IncompleteReadError):
            return 0
        return int(line.split()[1]) if line else 0

    async def close(self) -> None:
        self.writer.close()
        # However it ends.
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)


@asynccontextmanager
async def client_of(served: Served) -> AsyncIterator[Client]:
    client = await Client.of(served)
    try:
        yield client
    finally:
        await client.close()


@contextmanager
def deaf_client_of(served: Served) -> Iterator[socket.socket]:
    """One that reads nothing."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        client.connect(("127.0.0.1", served.port))
        yield client


async def ask(served: Served, client: socket.socket) -> None:
    state = served.server.server_state
    answered = state.total_requests
    client.send(b"GET /presence HTTP/1.1\r\n\r\n")
    await until(lambda: state.total_requests > answered)


async def fill(served: Served, client: socket.socket) -> None:
    """Ask until a little of the answers is left with the server, too little to be waited for."""
    await ask(served, client)
    (connection,) = served.server.server_state.connections
    # More than an answer, which a loop may keep until its next turn.
    while connection.transport.get_write_buffer_size() < 1_000:
        await ask(served, client)
    assert connection.transport.get_write_buffer_size() < UNSENT_BYTES - 1_000


HEAD = "POST /topics/t HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"


async def test_what_is_not_sent_in_time_is_not_waited_for() -> None:
    async with served(LIMITS) as here:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with client_of(here) as silent, client_of(here) as in_head, client_of(here) as in_body:
            in_head.send(HEAD)
            in_body.send(HEAD + "Content-Length: 10\r\n\r\n12345")
            assert [await one.status() for one in (silent, in_head, in_body)] == [0, 0, 0]
            assert loop.time() - begun > 0.19
        await until(lambda: here.service.connections.statistics().pending == 0)


async def test_a_head_that_trickles_is_not_waited_for_either() -> None:
    async with served(LIMITS) as here, client_of(here) as client:
        client.get("/presence")
        assert await client.status() == 200
        status = asyncio.create_task(client.status())
        client.send("GET /")
        for _ in range(100):
            client.send("x")
            await asyncio.wait([status], timeout=0.02)
            if status.done():
                break
        assert await status == 0


async def test_a_poll_outlasts_the_patience_with_clients() -> None:
    async with served(LIMITS) as here, client_of(here) as client:
        for _ in range(2):
            client.get("/topics/t?wait=0.5")
            assert await client.status() == 200
        assert here.service.polls.statistics().expired == 2


async def test_a_connection_may_idle_between_requests() -> None:
    async with served(LIMITS) as here, client_of(here) as client:
        for _ in range(2):
            client.get("/presence")
            assert await client.status() == 200
            await asyncio.sleep(0.4)


async def test_blank_lines_between_requests_are_no_requests() -> None:
    async with served(LIMITS, keep_alive=1) as here, client_of(here) as client:
        client.get("/presence")
        assert await client.status() == 200
        status = asyncio.create_task(client.status())
        # The first of them ends uvicorn's own patience.
        for _ in range(500):
            client.send("\r\n")
            await asyncio.wait([status], timeout=0.02)
            if status.done():
                break
        assert await status == 0


async def test_after_a_body_that_came_when_it_was_answered_a_connection_does_not_stay_for_ever() -> None:
    async with served(replace(LIMITS, client_timeout=0.5), keep_alive=1) as here, client_of(here) as client:
        client.send("POST /topics/t HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\n")
        assert await client.status() == 415
        client.send("12345")
        client.get("/presence")
        assert await client.status() == 200
        client.send("POST /topics/t HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\n")
        assert await client.status() == 415
        client.send("12345")
        assert await client.status() == 0


async def test_a_client_that_leaves_withdraws_its_poll() -> None:
    async with served(LIMITS) as here:
        polls = here.service.polls
        client = await Client.of(here)
        client.get("/topics/t?wait=60")
        await until(lambda: polls.statistics().pending == 1)
        await client.close()
        await until(lambda: polls.statistics().cancelled == 1)
        assert polls.statistics().pending == here.service.connections.statistics().pending == 0


@pytest.mark.parametrize("at_once", [True, False])
async def test_of_several_requests_all_are_withdrawn_when_the_client_leaves(at_once: bool) -> None:
    async with served(LIMITS) as here:
        polls = here.service.polls
        client = await Client.of(here)
        client.get("/topics/t?wait=60")
        if not at_once:
            await until(lambda: polls.statistics().pending == 1)
        client.get("/topics/t?wait=60")
        client.get("/topics/t?wait=60")
        await client.close()
        await until(lambda: here.service.connections.statistics().pending == 0)
        await until(lambda: polls.statistics().cancelled == 1)
        assert polls.statistics().pending == 0


@pytest.mark.parametrize("before", ["", "GET / HTTP/1.1\r\n\r\n"])
@pytest.mark.parametrize("head", ["GET /" + "x" * 4_000, HEAD + "X-Long: " + "x" * 4_000])
async def test_a_head_has_a_greatest_length(before: str, head: str) -> None:
    async with served(replace(LIMITS, client_timeout=60)) as here, client_of(here) as client:
        client.send(before + head)
        assert await client.status() in (431, 0)
        await until(lambda: here.service.connections.statistics().pending == 0)


async def test_the_length_of_a_head_is_not_that_of_the_requests_before_it() -> None:
    async with served(replace(LIMITS, client_timeout=60)) as here, client_of(here) as client:
        client.send(f"GET /presence HTTP/1.1\r\nX-Long: {'x' * 200}\r\n\r\n" * 15 + "GET /pres")
        assert {await client.status() for _ in range(15)} == {200}
        client.send("ence HTTP/1.1\r\n\r\n")
        assert await client.status() == 200


async def test_so_many_requests_may_be_sent_ahead_and_no_more() -> None:
    async with served(LIMITS) as here, client_of(here) as client, client_of(here) as another:
        polls = here.service.polls
        for one in (client, another):
            one.get("/topics/t?wait=60")
        await until(lambda: polls.statistics().pending == 2)
        client.send("GET /topics/t HTTP/1.1\r\n\r\n" * 15)
        another.send("GET /topics/t HTTP/1.1\r\n\r\n" * 16)
        assert await another.status() == 400
        await until(lambda: polls.statistics().cancelled == 1)
        await here.service.topics.append("t", b"1")
        assert {await client.status() for _ in range(16)} == {200}


async def test_what_is_sent_ahead_is_read_only_so_far() -> None:
    async with served(replace(LIMITS, client_timeout=60)) as here, client_of(here) as client:
        client.get("/topics/t?wait=60")
        await until(lambda: here.service.polls.statistics().pending == 1)
        client.send(HEAD + f"Content-Length: 1000000\r\n\r\n{'1' * 1_000_000}")
        (connection,) = here.server.server_state.connections
        await until(lambda: not connection.transport.is_reading())
        await here.service.topics.append("t", b"1")
        assert [await client.status(), await client.status()] == [200, 413]


async def test_what_is_no_http_is_a_400() -> None:
    async with served(LIMITS) as here, client_of(here) as client:
        client.send("\x16\x03\x01\x02 hello\r\n\r\n" + "x" * 4_000)
        assert await client.status() == 400


async def test_an_answer_that_nobody_takes_is_not_kept() -> None:
    async with served(LIMITS) as here, client_of(here) as client:
        for _ in range(16):
            await here.service.topics.append("t", b'"%s"' % (b"x" * 16_000))
        # More than the kernel takes on the client's behalf.
        for _ in range(16):
            client.get("/topics/t")
        connections = here.service.connections
        await until(lambda: connections.statistics().expired == 1)
        assert connections.statistics().pending == 0


@pytest.mark.parametrize(
    "last", ["", "GET /presence HTTP/1.1\r\nConnection: close\r\n\r\n"], ids=["idle", "closed"]
)
async def test_a_connection_is_not_closing_for_ever(last: str) -> None:
    async with served(LIMITS, keep_alive=1) as here:
        with deaf_client_of(here) as client:
            await fill(here, client)
            client.send(last.encode())
            connections = here.service.connections
            await until(lambda: connections.statistics().expired == 1)
            assert connections.statistics().pending == 0


async def test_a_poll_does_not_outlast_a_client_that_has_not_taken_the_answers_before_it_left() -> None:
    async with served(LIMITS) as here:
        polls = here.service.polls
        with deaf_client_of(here) as client:
            await fill(here, client)
            client.send(b"GET /topics/t?wait=60 HTTP/1.1\r\n\r\n")
            await until(lambda: polls.statistics().pending == 1)
            client.shutdown(socket.SHUT_WR)
            await until(lambda: polls.statistics().cancelled == 1)


async def test_a_client_that_left_is_not_kept_for_requests_that_will_not_be_answered() -> None:
    async with served(replace(LIMITS, client_timeout=1)) as here:
        with deaf_client_of(here) as client:
            await fill(here, client)
            client.send(b"GET /topics/t?wait=60 HTTP/1.1\r\n\r\n" * 2)
            await until(lambda: here.service.polls.statistics().pending == 1)
            client.shutdown(socket.SHUT_WR)
            (connection,) = here.server.server_state.connections
            await until(connection.transport.is_closing)
            await here.service.topics.append("t", b"1")
            await until(lambda: here.service.connections.statistics().expired == 1)


async def test_a_client_that_takes_its_answers_late_but_in_time_keeps_its_connection() -> None:
    async with served(replace(LIMITS, client_timeout=2)) as here, client_of(here) as client:
        for _ in range(16):
            await here.service.topics.append("t", b'"%s"' % (b"x" * 16_000))
        for _ in range(15):
            client.get("/topics/t")
        await asyncio.sleep(0.2)
        assert {await client.status() for _ in range(15)} == {200}
        client.get("/presence")
        assert await client.status() == 200


async def test_a_request_begun_before_the_last_answers_were_taken_is_not_waited_for() -> None:
    async with served(replace(LIMITS, client_timeout=1)) as here, client_of(here) as client:
        for _ in range(16):
            await here.service.topics.append("t", b'"%s"' % (b"x" * 16_000))
        for _ in range(15):
            client.get("/topics/t")
        client.send("GET /half")
        await asyncio.sleep(0.2)
        assert {await client.status() for _ in range(15)} == {200}
        # Now that something came, uvicorn's own timeout of idle connections is off.
        client.send("/")
        assert await client.status() == 0


async def test_with_as_many_polls_as_may_wait_others_are_told_and_can_record() -> None:
    async with served(replace(LIMITS, client_timeout=5)) as here:
        readers = [await Client.of(here) for _ in range(4)]
        for reader in readers:
            reader.get("/topics/t?wait=60")
        await until(lambda: here.service.polls.statistics().pending == 4)
        async with client_of(here) as one_more:
            one_more.get("/topics/t?wait=60")
            assert await one_more.status() == 503
            one_more.send(HEAD + "Content-Length: 1\r\n\r\n1")
            assert await one_more.status() == 201
        assert {await reader.status() for reader in readers} == {200}
        for reader in readers:
            await reader.close()


async def test_there_are_so_many_connections_and_no_more() -> None:
    async with served(replace(LIMITS, client_timeout=5)) as here:
        clients = [await Client.of(here) for _ in range(5)]
        for client in clients:
            client.get("/presence")
            assert await client.status() == 200
        async with client_of(here) as one_more:
            one_more.get("/presence")
            assert await one_more.status() == 0
        await clients.pop().close()
        await until(lambda: here.service.connections.statistics().pending == 4)
        async with client_of(here) as another:
            another.get("/presence")
            assert await another.status() == 200
        for client in clients:
            await client.close()
