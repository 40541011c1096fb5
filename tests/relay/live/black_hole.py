"""A proxy between a relay and its server that can swallow everything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from typing import Protocol

import anyio
from anyio import CancelScope
from anyio.abc import SocketStream

from purgatory.relay import Transport
from tests.tcp_server import tcp_server


class Hole(Protocol):
    """Makes transports. What goes over them can be swallowed."""

    def transport(self) -> Transport: ...

    def swallowing(self) -> AbstractContextManager[None]: ...


class Connection:
    """A connection of a client, by way of the proxy."""

    def __init__(self, scope: CancelScope, swallowed: bool) -> None:
        self.scope = scope
        # It stays so: what was swallowed is missing in the middle of the stream.
        self.swallowed = swallowed


class BlackHole:
    """Passes everything on, except within `swallowing`: then it accepts connections, reads what comes from
    either side, passes nothing on, and closes nothing. A connection that it has swallowed stays like that.
    """

    def __init__(self, server_port: int, transport: Callable[[int], Transport]) -> None:
        # The proxy's own port, once it listens.
        self.port = 0
        self._server_port = server_port
        self._transport = transport
        # Seconds that it keeps what it passes on.
        self.delay = 0.0
        self._swallowing = False
        self._connections: set[Connection] = set()

    def transport(self) -> Transport:
        return self._transport(self.port)

    @contextmanager
    def swallowing(self) -> Iterator[None]:
        self._swallowing = True
        for connection in self._connections:
            connection.swallowed = True
        try:
            yield
        finally:
            self._swallowing = False

    async def _serve(self, client: SocketStream) -> None:
        async with (
            client,
            await anyio.connect_tcp("127.0.0.1", self._server_port) as server,
            anyio.create_task_group() as group,
        ):
            connection = Connection(group.cancel_scope, self._swallowing)
            self._connections.add(connection)
            group.start_soon(self._to_server, connection, client, server)
            group.start_soon(self._to_client, connection, server, client)
        self._connections.remove(connection)

    async def _to_server(self, connection: Connection, client: SocketStream, server: SocketStream) -> None:
        await self._pass_on(connection, client, server)
        connection.scope.cancel()

    async def _to_client(self, connection: Connection, server: SocketStream, client: SocketStream) -> None:
        await self._pass_on(connection, server, client)
        if not connection.swallowed:
            connection.scope.cancel()

    async def _pass_on(self, connection: Connection, source: SocketStream, sink: SocketStream) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                data = await source.receive()
                await anyio.sleep(self.delay)
                if not connection.swallowed:
                    await sink.send(data)


@asynccontextmanager
async def black_hole(server_port: int, transport: Callable[[int], Transport]) -> AsyncIterator[BlackHole]:
    """A proxy of a server. `transport` makes a transport that connects to a port."""
    hole = BlackHole(server_port, transport)
    async with tcp_server(hole._serve) as hole.port:
        yield hole
