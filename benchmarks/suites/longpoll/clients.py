"""Clients as light as possible: a socket each, one request at a time."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from benchmarks.harness.processes import allow_open_files, started

# Connections that are made at the same time.
TOGETHER = 100
# Open files of a process that are no clients.
OTHERS = 200
# Seconds for a step that should take no time.
PATIENCE = 120.0
# Seconds between two looks whether all polls wait.
AGAIN = 0.05
# The timeout of a poll in seconds, longer than any measurement.
WAIT = 600


@dataclass(frozen=True)
class Server:
    """A running server."""

    host: str
    port: int
    process_id: int


@contextmanager
def running(way: str, loop: str) -> Iterator[Server]:
    """A server that waits this way, for a ``with`` block. Raises RuntimeError when it does not start."""
    # Killed at the end: otherwise it would wait for the polls.
    with started("benchmarks.suites.longpoll.server", way, loop, kill=True) as (line, process_id):
        host, port = line.split()
        yield Server(host, int(port), process_id)


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of an answer, and when it came, by time.perf_counter()."""

    content: Any
    at: float


class Client(asyncio.Protocol):
    """A connection that is kept."""

    # uvloop's transports have another class.
    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._answer: asyncio.Future[Answer] | None = None
        self._received = b""

    @classmethod
    async def connected(cls, server: Server) -> Client:
        loop = asyncio.get_running_loop()
        transport, client = await loop.create_connection(cls, server.host, server.port)
        client._transport = transport
        return client

    def close(self) -> None:
        """Close the connection, even with a request in progress."""
        if self._answer is not None:
            self._answer.cancel()
        self._transport.abort()

    def ask(self, method: str, target: str, body: str = "") -> asyncio.Future[Answer]:
        """Send a request. The future gets its answer, or ConnectionError."""
        self._answer = asyncio.get_running_loop().create_future()
        head = f"{method} {target} HTTP/1.1\r\nHost: benchmark\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write((head + body).encode())
        return self._answer

    def data_received(self, data: bytes) -> None:
        at = time.perf_counter()
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or len(body) < _content_length(head):
            return
        self._received = b""
        answer, self._answer = self._answer, None
        if answer is None or answer.done():
            return
        if head.startswith(b"HTTP/1.1 200 "):
            answer.set_result(Answer(json.loads(body), at))
        else:
            answer.set_exception(ConnectionError(f"the server answered {head.decode()!r}"))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server closed the connection before it answered"))


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


@dataclass(frozen=True, slots=True)
class Figures:
    """The server's counts since its start, and the worst stall since it began to watch its loop."""

    waiting: int
    looks: int
    stall_ms: float
    processor_seconds: float


class Clients:
    """Connected clients, each with the topic that `topic_of` gives for its number, and one that posts."""

    def __init__(self, clients: list[Client], poster: Client, topic_of: Callable[[int], str]) -> None:
        self._clients = clients
        self._poster = poster
        self._topic_of = topic_of

    def poll(self, number: int, offset: int) -> asyncio.Future[Answer]:
        """Have one client ask for its news."""
        query = urlencode({"client": number, "offset": offset, "wait": WAIT})
        return self._clients[number].ask("GET", f"/topics/{self._topic_of(number)}?{query}")

    async def post(self, number: int, value: str, *, alone: bool) -> Answer:
        """Send a record to the topic of a client, for that client `alone` or for all."""
        query = f"?to={number}" if alone else ""
        return await self._poster.ask("POST", f"/topics/{self._topic_of(number)}{query}", value)

    async def all_poll(self) -> list[asyncio.Future[Answer]]:
        """Have all clients ask from the beginning. Returns when they wait."""
        answers = [self.poll(number, 0) for number in range(len(self._clients))]
        await self.all_wait()
        return answers

    async def all_wait(self) -> None:
        """Return when all polls wait. Raises TimeoutError when they do not in time."""
        deadline = time.monotonic() + PATIENCE
        while (waiting := (await self.figures()).waiting) < len(self._clients):
            if time.monotonic() > deadline:
                counts = f"of {len(self._clients)} polls, {waiting} wait"
                raise TimeoutError(f"{counts} after {PATIENCE:g} seconds")
            await asyncio.sleep(AGAIN)

    async def watch(self) -> None:
        """Have the server watch its loop, until the next `figures`."""
        await self._poster.ask("POST", "/figures")

    async def figures(self) -> Figures:
        """The server's figures, as they are now."""
        content: dict[str, Any] = (await self._poster.ask("GET", "/figures")).content
        return Figures(**content)


@asynccontextmanager
async def connected(server: Server, number: int, topic_of: Callable[[int], str]) -> AsyncIterator[Clients]:
    """So many clients, connected and nothing more. ValueError where so many files may not be open."""
    allow_open_files(number + OTHERS)
    clients: list[Client] = []
    for start in range(0, number + 1, TOGETHER):
        connecting = (Client.connected(server) for _ in range(min(TOGETHER, number + 1 - start)))
        clients += await asyncio.gather(*connecting)
    # The collector's pauses of this process would count as the server's latency.
    gc.collect()
    gc.disable()
    try:
        yield Clients(clients[1:], clients[0], topic_of)
    finally:
        gc.enable()
        for client in clients:
            client.close()
