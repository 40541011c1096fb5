"""Connections in memory instead of over sockets, so that time can be virtual and a client can be slow."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

import uvicorn
from uvicorn.server import ServerState

from examples.longpoll.application import application
from examples.longpoll.connection import Connection, connection_state
from examples.longpoll.service import Service

KERNEL_BYTES: Final = 16 * 1024
"""The bytes of unread answers that the kernels of both sides hold."""

CHUNK_BYTES: Final = 256 * 1024
"""The bytes that a transport of asyncio reads at a time."""

ANSWER: Final = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r]*\r\n((?:[^\r]+\r\n)*)\r\n")
CONTENT_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)

END: Final = b""
"""The chunk that stands for the end of a client's side."""


class MemoryTransport(asyncio.Transport):
    """The server's end of a connection. It behaves as asyncio's transport over a socket does."""

    def __init__(self, protocol: asyncio.Protocol, kernel_bytes: int) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._protocol = protocol
        self._kernel_bytes = kernel_bytes
        self._kernel = bytearray()
        self._unsent = bytearray()
        self._high = 64 * 1024
        self._writing_paused = False
        self._incoming: list[bytes] = []
        self._reading = True
        self._closing = False
        self.lost = False
        self.changed = asyncio.Event()
        """Set when there is more for the client to read, or the connection is lost."""

    # The interface of asyncio.Transport, for the server

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", id(self)) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high is not None
        self._high = high

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._loop.call_soon(self._receive)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self.lost:
            return
        self._unsent += data
        self._send()
        if len(self._unsent) > self._high and not self._writing_paused:
            self._writing_paused = True
            self._protocol.pause_writing()

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._unsent:
                self._loop.call_soon(self._lose)

    def abort(self) -> None:
        self._closing = True
        self._unsent.clear()
        self._loop.call_soon(self._lose)

    # The other end, for the client

    def deliver(self, data: bytes) -> None:
        """Send `data` to the server; `END` closes the client's side."""
        self._incoming += [data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES)] or [END]
        self._loop.call_soon(self._receive)

    def take(self) -> bytes:
        """Return the bytes that the kernel holds for the client, and let the server send more."""
        taken = bytes(self._kernel)
        self._kernel.clear()
        self._send()
        return taken

    def _receive(self) -> None:
        """Hand the protocol one chunk in each turn of the loop."""
        if not self._incoming or not self.is_reading():
            return
        chunk = self._incoming.pop(0)
        if chunk == END:
            self._protocol.eof_received()
            self.close()
        else:
            self._protocol.data_received(chunk)
            self._loop.call_soon(self._receive)

    def _send(self) -> None:
        room = max(self._kernel_bytes - len(self._kernel), 0)
        if self._unsent and room:
            self._kernel += self._unsent[:room]
            del self._unsent[:room]
            self.changed.set()
        if self._writing_paused and len(self._unsent) <= self._high // 4:
            self._writing_paused = False
            self._protocol.resume_writing()
        if self._closing and not self._unsent:
            self._loop.call_soon(self._lose)

    def _lose(self) -> None:
        if not self.lost:
            self.lost = True
            self.changed.set()
            self._protocol.connection_lost(None)


class Client:
    """A client that sends any bytes, and reads only when the test asks for the next answer."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.transport = transport
        self._read = b""

    def send(self, text: str) -> None:
        self.transport.deliver(text.encode())

    def get(self, path: str, times: int = 1) -> None:
        self.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n" * times)

    def leave(self) -> None:
        self.transport.deliver(END)

    async def status(self) -> int:
        """Read the next answer and return its status; 0 when the connection ends before it."""
        while True:
            if head := ANSWER.match(self._read):
                length = CONTENT_LENGTH.search(head[2])
                end = head.end() + (int(length[1]) if length else 0)
                if len(self._read) >= end:
                    self._read = self._read[end:]
                    return int(head[1])
            self.transport.changed.clear()
            if taken := self.transport.take():
                self._read += taken
            elif self.transport.lost:
                return 0
            else:
                await self.transport.changed.wait()

    async def statuses(self, count: int) -> set[int]:
        return {await self.status() for _ in range(count)}

    async def until_lost(self) -> float:
        """Return the loop's time at which the connection ends. Reads nothing."""
        while not self.transport.lost:
            self.transport.changed.clear()
            await self.transport.changed.wait()
        return asyncio.get_running_loop().time()


class MemoryServer:
    """`service` behind uvicorn's protocol, for clients in memory."""

    def __init__(self, service: Service, keep_alive: int) -> None:
        self.service = service
        self._config = uvicorn.Config(
            application(service),
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            timeout_keep_alive=keep_alive,
        )
        self._state = ServerState()

    def connect(self, kernel_bytes: int = KERNEL_BYTES) -> Client:
        state = connection_state(self.service.limits, self.service.connections)
        protocol = Connection(self._config, self._state, state)
        transport = MemoryTransport(protocol, kernel_bytes)
        protocol.connection_made(transport)
        return Client(transport)
