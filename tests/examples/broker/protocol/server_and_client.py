"""A server with test handlers, and clients that send raw bytes to it. A heartbeat stands for any request."""

import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from anyio import (
    BrokenResourceError,
    EndOfStream,
    Event,
    connect_tcp,
    create_task_group,
    fail_after,
    move_on_after,
    sleep,
)
from anyio.abc import SocketAttribute, SocketStream
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4 import HeartbeatRequest, HeartbeatResponse

from examples.broker.protocol.apis import HEARTBEAT, Api, RequestContext
from examples.broker.protocol.connection import Handler
from examples.broker.protocol.frames import FrameBuffer
from examples.broker.protocol.server import Server
from tests.examples.broker.protocol.plain_messages import message
from tests.examples.broker.protocol.wire_messages import request_frame, with_size

# Seconds. Far longer than any step takes, so that a test that would hang fails instead.
PATIENCE = 10.0
ALIVE: Final[HeartbeatResponse] = message(HeartbeatResponse, {"error_code": ErrorCode.none})


def heartbeat(correlation_id: int = 7, *, generation: int = 0, group: str = "group") -> bytes:
    """Return the bytes of a request, with its length prefix."""
    request = message(HeartbeatRequest, {"group_id": group, "generation_id": generation})
    return with_size(request_frame(request, correlation_id=correlation_id))


async def answer_at_once(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    return ALIVE


class LongPoll:
    """A handler that answers when ``answer`` is set. It counts the requests that began or were cancelled."""

    def __init__(self) -> None:
        self.begun = 0
        self.cancelled = 0
        self.answer = Event()
        self._changed = Event()

    async def __call__(self, context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        self.begun += 1
        self._notify()
        try:
            await self.answer.wait()
        except BaseException:
            self.cancelled += 1
            self._notify()
            raise
        return ALIVE

    async def until(self, *, begun: int = 0, cancelled: int = 0) -> None:
        with fail_after(PATIENCE):
            while self.begun < begun or self.cancelled < cancelled:
                await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = Event()


class RawClient:
    """Sends bytes and reads frames."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._received = FrameBuffer(4, 2**31 - 1)

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def frame(self) -> bytes:
        with fail_after(PATIENCE):
            while (frame := self._received.take()) is None:
                self._received.feed(await self._stream.receive())
        return frame

    async def correlation_id(self) -> int:
        """Return the correlation id of the next response."""
        return int.from_bytes((await self.frame())[:4], "big")

    async def is_answered(self, correlation_id: int) -> bool:
        await self.send(heartbeat(correlation_id))
        return await self.correlation_id() == correlation_id

    async def closed(self) -> bytes:
        """Wait until the server closes the connection; return the bytes that come before."""
        rest = b""
        with fail_after(PATIENCE), suppress(EndOfStream, BrokenResourceError):
            while True:
                rest += await self._stream.receive()
        return rest

    async def some(self) -> bytes:
        """Return the next bytes, which may be a part of a frame."""
        with fail_after(PATIENCE):
            return await self._stream.receive()

    async def hears_nothing(self) -> bool:
        """Return whether no bytes come for a second of virtual time."""
        with move_on_after(1):
            await self._stream.receive()
            return False
        return True

    async def drip(self, data: bytes, interval: float) -> None:
        """Send one byte every ``interval`` seconds, until the server closes the connection."""
        with suppress(BrokenResourceError):
            for byte in data:
                await self._stream.send(bytes([byte]))
                await sleep(interval)

    async def go(self) -> None:
        await self._stream.aclose()

    async def vanish(self) -> None:
        """Reset the connection, as a killed process may, instead of closing it."""
        raw_socket = self._stream.extra(SocketAttribute.raw_socket)
        raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self._stream.aclose()


class Port:
    """The port of a running server."""

    def __init__(self, server: Server, number: int) -> None:
        self.server = server
        self.number = number

    async def until_connections(self, count: int) -> None:
        """Wait until the server has this many connections. It has no event for that."""
        with fail_after(PATIENCE):
            while self.server.connection_count != count:  # noqa: ASYNC110 - there is no event to wait for
                await sleep(0.001)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[RawClient]:
        async with await connect_tcp("127.0.0.1", self.number) as stream:
            yield RawClient(stream)


@asynccontextmanager
async def serving(handler: Handler, *, api: Api = HEARTBEAT, **settings: Any) -> AsyncIterator[Port]:
    """Run a server that answers ``api`` with ``handler``. It is cancelled when the block ends."""
    server = Server({api.key: handler}, **settings)
    async with create_task_group() as tasks:
        yield Port(server, await tasks.start(server.serve))
        tasks.cancel_scope.cancel()
    assert server.connection_count == 0
