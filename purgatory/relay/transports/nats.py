"""The transport for NATS: publish and subscribe."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Sequence
from inspect import signature
from typing import Any, Final, NoReturn, final
from urllib.parse import unquote, urlsplit

import anyio
from anyio.abc import TaskStatus
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import SlowConsumerError

from purgatory.relay.errors import described
from purgatory.relay.transport import Publication, Receiver

__all__ = ["NatsTransport"]

_MAX_BYTES: Final = 32_000

# Seconds until all servers of a cluster know what one of them knows.
_SPREAD: Final = 0.25
# Seconds. Nothing but a dead server keeps a connection from being closed.
_PATIENCE: Final = 1.0

_SUBJECT: Final = re.compile(r"[^\s.*>]+(\.[^\s.*>]+)*")
_USERINFO: Final = re.compile(r"^(\w+://)?.*@")

# The relay connects again by itself, and has to hear what it publishes. nats-py tries a server twice then,
# and takes 0 for "for ever" (seen with 2.16).
_OPTIONS: Final[dict[str, Any]] = {
    "allow_reconnect": False,
    "max_reconnect_attempts": 1,
    "reconnect_time_wait": 0,
    "no_echo": False,
}


@final
class NatsTransport:
    """Carries signals over NATS (extra `nats`).

    `server` is a URL such as ``nats://localhost:4222``, or the URLs of the servers of one cluster. Each
    connection goes to the first server of the list that answers. Give all processes the same list: while they
    are on one server, no publication depends on what lies between two servers. `options` are those of
    ``nats.connect``, such as ``user_credentials`` and ``tls``. The transport makes a client of its own,
    because it must hear of each loss of the connection, and a client of nats-py connects again by itself.

    Give each application its own `prefix`. The subjects are ``prefix.00`` to ``prefix.ff``, one for each
    shard, one for each relay, and one for each connection. One connection is for everything. JetStream is not
    used.

    A user of NATS needs the rights to publish and to subscribe to ``prefix.>``, and no others. Without one of
    them, entering the relay raises PermissionError.

    When a server of the cluster comes or goes, the others tell their clients, and the relay looks at all
    keys. Publications that are lost while the network between two servers is cut are made up for when it is
    back, and at the latest after `anti_entropy` seconds. A server with ``no_advertise`` tells nothing of
    that.

    Raises TypeError for a `server` that is neither, and for an option that ``nats.connect`` does not have or
    that the transport sets itself. Raises ValueError for a prefix that is no subject.
    """

    max_bytes: int = _MAX_BYTES

    def __init__(self, server: str | Sequence[str], *, prefix: str = "purgatory", **options: Any) -> None:
        if not isinstance(server, (str, list, tuple)) or not server:
            raise TypeError(
                f"server must be a URL or a list of URLs, not {server!r}: the transport connects by itself"
            )
        own = sorted(options.keys() & {*_OPTIONS, "error_cb", "closed_cb", "discovered_server_cb"})
        if own:
            raise TypeError(f"the transport sets {' and '.join(own)} by itself")
        try:
            signature(Client.connect).bind(Client, server, **options)
        except TypeError as error:
            raise TypeError(f"the options are those of nats.connect: {error}") from None
        if not _SUBJECT.fullmatch(prefix):
            raise ValueError(f"a prefix must be a subject of NATS without wildcards, not {prefix!r}")
        self._servers = [server] if isinstance(server, str) else list(server)
        self._prefix = prefix
        self._options = options
        self._connection: Connection | None = None

    def __repr__(self) -> str:
        state = "connected" if self._connection is not None else "not connected"
        return f"<NatsTransport {self._prefix!r} {state}>"

    async def run(self, receiver: Receiver, *, task_status: TaskStatus[None]) -> NoReturn:
        connection = await self._connect(receiver)
        try:
            self.max_bytes = min(_MAX_BYTES, connection.client.max_payload)
            self._connection = connection
            task_status.started()
            await connection.end()
        finally:
            self._connection = None
            await connection.close()

    async def subscribe(self, channels: Sequence[str]) -> None:
        connection = self._connected()
        await connection.subscribe(channels)
        if connection.clustered:
            # The confirmation is that of one server. A publication that reaches another one before it knows
            # of the subscription is lost.
            await asyncio.sleep(_SPREAD)

    async def unsubscribe(self, channels: Sequence[str]) -> None:
        await self._connected().unsubscribe(channels)

    async def publish(self, publications: Sequence[Publication]) -> None:
        connection = self._connected()
        time = asyncio.get_running_loop().time
        began = time()
        await connection.publish(publications)
        if connection.clustered and time() - began > _SPREAD:
            # The server stood still. It may have heard of subscriptions on other servers meanwhile, and have
            # dealt with the publications first.
            await connection.publish(publications)

    async def aclose(self) -> None:
        """There is nothing to close: `run` has ended its connection."""

    async def _connect(self, receiver: Receiver) -> Connection:
        """A connection to the first server that answers."""
        problems: list[str] = []
        for server in self._servers:
            connection = Connection(receiver, self._prefix)
            try:
                await connection.open(server, self._options)
                return connection
            except BaseException as error:
                await connection.close()
                if not isinstance(error, Exception):
                    raise
                address = _USERINFO.sub(r"\1", server)
                problems.append(f"{address}: {described(connection.problem or error)}")
        # A server that refuses a password may reset the connection before it can say so.
        check = "check the addresses, the user and the password"
        raise ConnectionError(f"there is no connection to NATS, {check}: {'; '.join(problems)}")

    def _connected(self) -> Connection:
        if self._connection is None:
            raise ConnectionError("there is no connection to NATS")
        return self._connection


@final
class Connection:
    """A connection to one server, which answers in the order of the requests.

    It confirms by a publication to itself, which comes back when the server has dealt with everything before
    it. `Client.flush` would not do: nats-py sends its PING before requests that still wait to be sent, and an
    answer after the timeout ends the task that reads (seen with 2.16).
    """

    def __init__(self, receiver: Receiver, prefix: str) -> None:
        self.client = Client()
        # Whether there are other servers.
        self.clustered = False
        # What the client has reported last.
        self.problem: Exception | None = None
        self._receiver = receiver
        self._prefix = prefix
        self._own_subject = f"{prefix}.{secrets.token_hex(8)}"
        self._subscriptions: dict[str, Subscription] = {}
        self._requested = 0
        self._confirmed = 0
        self._end: Exception | None = None
        # Set when there is a confirmation, and when the connection has ended.
        self._changed = asyncio.Event()

    async def open(self, server: str, options: dict[str, Any]) -> None:
        if not options.keys() & {"user", "token"}:
            options = {**options, **_credentials(server)}
        await self.client.connect(
            server,
            error_cb=self._failed,
            closed_cb=self._closed,
            discovered_server_cb=self._cluster_changed,
            **_OPTIONS,
            **options,
        )
        stream = self._stream
        if server.startswith("tls://") and stream and stream.get_extra_info("ssl_object") is None:
            raise ConnectionError("the server does not ask for TLS, and nats-py uses none then")
        self.clustered = bool(self.client.discovered_servers)
        self.client.set_server_pool([])
        await self.client.subscribe(self._own_subject, cb=self._come_back)

    async def confirm(self) -> None:
        """Return when the server has dealt with all requests before this one."""
        self._requested += 1
        number = self._requested
        await self.client.publish(self._own_subject, b"%d" % number)
        while self._confirmed < number and self._end is None:
            await self._change()
        if self._end is not None:
            raise self._end

    async def end(self) -> NoReturn:
        """Raise what ends the connection."""
        while self._end is None:
            await self._change()
        raise self._end

    async def subscribe(self, channels: Sequence[str]) -> None:
        for channel in channels:
            if channel not in self._subscriptions:
                subscription = await self.client.subscribe(f"{self._prefix}.{channel}", cb=self._hear)
                self._subscriptions[channel] = subscription
        await self.confirm()

    async def unsubscribe(self, channels: Sequence[str]) -> None:
        for channel in channels:
            await self._subscriptions.pop(channel).unsubscribe()

    async def publish(self, publications: Sequence[Publication]) -> None:
        for channel, text in publications:
            await self.client.publish(f"{self._prefix}.{channel}", text.encode())
        await self.confirm()

    async def close(self) -> None:
        self._ended(ConnectionError("the connection to NATS is closed"))
        if self.client.is_connected or self.client.is_connecting:
            with anyio.move_on_after(_PATIENCE, shield=True):
                await self.client.close()
        if self._stream is not None:
            # The client closes only after everything is sent, and may not get that far.
            self._stream.transport.abort()

    @property
    def _stream(self) -> asyncio.StreamWriter | None:
        # nats-py has no public name for it.
        return getattr(self.client._transport, "_io_writer", None)

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _ended(self, reason: Exception) -> None:
        self._end = self._end or reason
        self._changed.set()

    # What the client calls

    async def _hear(self, message: Msg) -> None:
        # A text that is no UTF-8 becomes one that is no JSON. The receiver deals with that.
        self._receiver.received(message.data.decode(errors="backslashreplace"))

    async def _come_back(self, message: Msg) -> None:
        self._confirmed = int(message.data)
        self._changed.set()

    async def _failed(self, error: Exception) -> None:
        self.problem = error
        if isinstance(error, SlowConsumerError):
            self._receiver.missed()
        elif "permissions violation" in str(error):
            rights = f"the user of a relay needs the rights to publish and to subscribe to {self._prefix}.>"
            self._ended(PermissionError(f"{error}: {rights}"))

    async def _cluster_changed(self) -> None:
        """Another server has come or gone. Publications between the two may be lost.

        The client calls this when the server names one that is not in the pool. So the pool stays empty.
        """
        self.client.set_server_pool([])
        self.clustered = True
        asyncio.get_running_loop().call_later(_SPREAD, self._miss)

    def _miss(self) -> None:
        if self._end is None:
            self._receiver.missed()

    async def _closed(self) -> None:
        self._ended(ConnectionError(f"NATS has ended the connection: {self.client.last_error}"))


def _credentials(server: str) -> dict[str, str]:
    """The user and the password of a URL, or its token. nats-py would not decode %40 (seen with 2.16)."""
    parts = urlsplit(server if "://" in server else f"nats://{server}")
    if parts.username is None:
        return {}
    if parts.password is None:
        return {"token": unquote(parts.username)}
    return {"user": unquote(parts.username), "password": unquote(parts.password)}
