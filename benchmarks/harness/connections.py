"""Connections as light as possible: thousands of them in the process that measures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

Answer = tuple[Any, float]
"""What `parse` made of an answer, and when its last bytes came, by time.perf_counter()."""


class Connection(asyncio.Protocol):
    """A connection that is kept, with one request at a time.

    `parse` gets what has been received, and returns None until that is a whole answer.
    """

    transport: asyncio.Transport

    def __init__(self, parse: Callable[[bytes], Any]) -> None:
        self._parse = parse
        self._received = b""
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def ask(self, request: bytes) -> asyncio.Future[Answer]:
        """Send a request. The future gets its answer, or ConnectionError."""
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answer

    def close(self) -> None:
        """Close the connection, even with a request in progress."""
        self._answer.cancel()
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        at = time.perf_counter()
        self._received += data
        content = self._parse(self._received)
        if content is not None:
            self._received = b""
            if not self._answer.done():
                self._answer.set_result((content, at))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("the server closed a connection"))


@asynccontextmanager
async def connected(
    address: tuple[str, int], number: int, parse: Callable[[bytes], Any]
) -> AsyncIterator[list[Connection]]:
    """So many connections, for a ``with`` block."""
    loop = asyncio.get_running_loop()
    connections: list[Connection] = []
    try:
        for _ in range(number):
            transport, connection = await loop.create_connection(lambda: Connection(parse), *address)
            connection.transport = transport
            connections.append(connection)
        yield connections
    finally:
        for connection in connections:
            connection.close()
