"""Clients as light as they can be: a socket each, one request at a time."""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.longpoll.servers import Running

# How many connections are made at the same time.
TOGETHER = 100
# Files of a process that are no clients.
OTHERS = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, and when, by time.perf_counter()."""

    content: Any
    at: float


class Client(asyncio.Protocol):
    """A connection that is kept."""

    # What uvloop makes is one in all but its class.
    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._answer: asyncio.Future[Answer] | None = None
        self._received = b""

    @classmethod
    async def connected(cls, server: Running) -> Client:
        loop = asyncio.get_running_loop()
        transport, client = await loop.create_connection(cls, server.host, server.port)
        client._transport = transport
        return client

    def close(self) -> None:
        """Hang up, whatever is under way."""
        if self._answer is not None:
            self._answer.cancel()
        self._transport.abort()

    def ask(self, method: str, target: str, body: str = "") -> asyncio.Future[Answer]:
        """Send a request; its answer, or ConnectionError."""
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
            self._answer.set_exception(ConnectionError("the server hung up before it answered"))


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


async def connect(server: Running, number: int) -> list[Client]:
    """So many clients. OSError where so many files may not be open."""
    allow_open_files(number + OTHERS)
    clients: list[Client] = []
    for start in range(0, number, TOGETHER):
        clients += await asyncio.gather(
            *(Client.connected(server) for _ in range(min(TOGETHER, number - start)))
        )
    return clients


def close(clients: Iterable[Client]) -> None:
    for client in clients:
        client.close()


def allow_open_files(needed: int) -> None:
    """For this process and those it starts. OSError where that is not possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
        except ValueError as error:
            raise OSError(f"{needed} open files are needed, and {hard} allowed") from error
