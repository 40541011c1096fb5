"""A transport within one process, for tests: it has the faults that it is told to have."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NoReturn, final

from anyio.abc import TaskStatus

from purgatory.relay.transport import Publication, Receiver


@final
class InProcessBroker:
    """Stands in for a server, such as a Redis. The transports that it makes reach each other.

    Several purgatories with a ``Relay(purgatory, broker.transport())`` each behave as if they were in
    different processes. A request takes `latency` seconds, an answer does, too, and so does the delivery of a
    publication. While `losing` is true, publications vanish without a word.
    """

    def __init__(self, *, latency: float = 0.0, max_bytes: int = 8_000) -> None:
        self.latency = latency
        self.losing = False
        self._max_bytes = max_bytes
        self._connections: list[InProcessConnection] = []
        self._stopped = False
        self._awake = asyncio.Event()
        self._awake.set()

    def __repr__(self) -> str:
        state = "stopped" if self._stopped else "running" if self._awake.is_set() else "frozen"
        return f"<InProcessBroker {state} connections={len(self._connections)}>"

    def transport(self) -> InProcessTransport:
        """A new transport, for one relay."""
        return InProcessTransport(self, self._max_bytes)

    def cut(self) -> None:
        """End all connections. What is on its way is lost. The clients notice the end, and connect again."""
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.lost.set()

    def silence(self) -> None:
        """Forget all connections without telling the clients, to whom they look open."""
        self._connections = []

    def stop(self) -> None:
        """End all connections, and refuse everything until `start`."""
        self._stopped = True
        # Requests that wait are refused, too.
        self._awake.set()
        self.cut()

    def freeze(self) -> None:
        """Answer nothing until `start`, as a process does after a SIGSTOP. Connections stay open."""
        self._awake.clear()

    def start(self) -> None:
        """Go on after `stop` or `freeze`."""
        self._stopped = False
        self._awake.set()

    def overflow(self) -> None:
        """Tell all relays that they have missed publications."""
        for connection in self._connections:
            connection.receiver.missed()

    async def _reach(self) -> None:
        """The way of a request to the server. Raises when the server is stopped."""
        await asyncio.sleep(self.latency)
        await self._awake.wait()
        if self._stopped:
            raise ConnectionRefusedError("the broker is stopped: call start()")

    async def _accept(self, receiver: Receiver) -> InProcessConnection:
        await asyncio.sleep(self.latency)
        await self._reach()
        connection = InProcessConnection(receiver)
        self._connections.append(connection)
        return connection

    async def _subscribe(self, connection: InProcessConnection, channels: Sequence[str]) -> None:
        await self._reach()
        if connection not in self._connections:
            # After `silence`, nobody hears this request.
            await connection.lost.wait()
            raise ConnectionResetError("the broker has ended the connection")
        connection.channels.update(channels)
        await asyncio.sleep(self.latency)

    async def _publish(self, publications: Sequence[Publication]) -> None:
        await self._reach()
        if not self.losing:
            loop = asyncio.get_running_loop()
            for connection in self._connections:
                for publication in publications:
                    if publication.channel in connection.channels:
                        loop.call_later(self.latency, self._deliver, connection, publication.text)
        await asyncio.sleep(self.latency)

    def _deliver(self, connection: InProcessConnection, text: str) -> None:
        # By then it may be lost.
        if connection in self._connections:
            connection.receiver.received(text)


@final
class InProcessConnection:
    """A connection to the broker, and what is subscribed on it."""

    __slots__ = ("channels", "lost", "receiver")

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self.channels: set[str] = set()
        # Set when the client notices that it has ended.
        self.lost = asyncio.Event()


@final
class InProcessTransport:
    """The `Transport` of one relay, by way of an `InProcessBroker`."""

    def __init__(self, broker: InProcessBroker, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.closed = False
        self._broker = broker
        self._connection: InProcessConnection | None = None

    def __repr__(self) -> str:
        return f"<InProcessTransport {'connected' if self._connection is not None else 'not connected'}>"

    async def run(self, receiver: Receiver, *, task_status: TaskStatus[None]) -> NoReturn:
        connection = self._connection = await self._broker._accept(receiver)
        try:
            task_status.started()
            await connection.lost.wait()
            raise ConnectionResetError("the broker has ended the connection")
        finally:
            self._connection = None
            if connection in self._broker._connections:
                self._broker._connections.remove(connection)

    async def subscribe(self, channels: Sequence[str]) -> None:
        await self._broker._subscribe(self._connected(), channels)

    async def unsubscribe(self, channels: Sequence[str]) -> None:
        self._connected().channels.difference_update(channels)
        await asyncio.sleep(0)

    async def publish(self, publications: Sequence[Publication]) -> None:
        await self._broker._publish(publications)

    async def aclose(self) -> None:
        self.closed = True

    def _connected(self) -> InProcessConnection:
        if self._connection is None:
            raise ConnectionError("there is no connection to the broker")
        return self._connection
