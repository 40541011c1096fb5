"""A socket in memory, so that the timeouts of a connection run in virtual time."""

import math
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from anyio import create_memory_object_stream, create_task_group
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from examples.broker.protocol.apis import HEARTBEAT, SYNC_GROUP
from examples.broker.protocol.connection import Connection, ConnectionLimits, Handler
from examples.broker.protocol.gate import Gate
from tests.examples.broker.protocol.server_and_client import RawClient

_ADDRESS: Final = ("127.0.0.1", 40_000)


class MemorySocket(SocketStream):
    """One end of a connection. A send waits until the other end receives it, unless there is a buffer."""

    def __init__(
        self, incoming: MemoryObjectReceiveStream[bytes], outgoing: MemoryObjectSendStream[bytes]
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        return {SocketAttribute.remote_address: lambda: _ADDRESS}

    @property
    def _raw_socket(self) -> socket.socket:
        raise NotImplementedError("a socket in memory has no file descriptor")

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._incoming.receive()

    async def send(self, item: bytes) -> None:
        await self._outgoing.send(item)

    async def send_eof(self) -> None:
        await self._outgoing.aclose()

    async def aclose(self) -> None:
        await self._incoming.aclose()
        await self._outgoing.aclose()


@asynccontextmanager
async def connected(
    handler: Handler,
    limits: ConnectionLimits | None = None,
    *,
    gate: Gate | None = None,
    buffer: float = math.inf,
) -> AsyncIterator[RawClient]:
    """Serve one client, whose requests ``handler`` answers.

    The server can send ``buffer`` unread responses.
    """
    requests_in, requests_out = create_memory_object_stream[bytes](0)
    responses_in, responses_out = create_memory_object_stream[bytes](buffer)
    connection = Connection(
        MemorySocket(requests_out, responses_in),
        {HEARTBEAT.key: handler, SYNC_GROUP.key: handler},
        gate or Gate(),
        limits or ConnectionLimits(),
    )
    async with MemorySocket(responses_out, requests_in) as client, create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        yield RawClient(client)
        tasks.cancel_scope.cancel()
