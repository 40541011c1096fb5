"""A network between one process and the brokers, which can be cut.

Run with the ports of a network as JSON, it is ``python -m examples.delayed`` behind that network.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, Self

import anyio
from aiokafka.conn import AIOKafkaConnection  # type: ignore[import-untyped]  # has no types
from anyio.abc import SocketStream, TaskGroup

from examples.delayed.command import main
from examples.delayed.demo.instances import Instances
from tests.tcp_server import tcp_server


class Network:
    """A proxy for each broker. While the network is cut, no byte passes, and neither side hears of that.

    `ports` has the port of the proxy for each port of a broker.
    """

    def __init__(self) -> None:
        self.ports: dict[int, int] = {}
        self._passing = anyio.Event()

    @classmethod
    @asynccontextmanager
    async def to(cls, bootstrap: str) -> AsyncIterator[Self]:
        network = cls()
        network.mend()
        async with AsyncExitStack() as proxies:
            for address in bootstrap.split(","):
                host, _, port = address.rpartition(":")
                proxy = tcp_server(partial(network._connect, host, int(port)))
                network.ports[int(port)] = await proxies.enter_async_context(proxy)
            yield network

    def cut(self) -> None:
        self._passing = anyio.Event()

    def mend(self) -> None:
        self._passing.set()

    async def _connect(self, host: str, port: int, client: SocketStream) -> None:
        async with client, anyio.create_task_group() as tasks:
            await self._passing.wait()
            async with await anyio.connect_tcp(host, port) as broker:
                tasks.start_soon(self._pass, client, broker, tasks)
                await self._pass(broker, client, tasks)

    async def _pass(self, source: SocketStream, sink: SocketStream, connection: TaskGroup) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for data in source:
                await self._passing.wait()
                await sink.send(data)
        # Nobody hears of the end of a connection either.
        await self._passing.wait()
        connection.cancel_scope.cancel()


def behind(network: Network) -> type[Instances]:
    """Instances, of which "a" reaches the brokers by the network."""

    class Behind(Instances):
        def program(self, name: str) -> list[str]:
            proxied = ["tests.examples.delayed.network", json.dumps(network.ports)]
            return proxied if name == "a" else super().program(name)

    return Behind


if __name__ == "__main__":
    ports = {int(port): proxy for port, proxy in json.loads(sys.argv[1]).items()}
    connect = AIOKafkaConnection.connect

    async def connect_to_proxy(connection: Any) -> object:
        connection._port = ports[connection._port]
        return await connect(connection)

    AIOKafkaConnection.connect = connect_to_proxy
    sys.exit(main(sys.argv[2:]))
