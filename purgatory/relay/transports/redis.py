"""The transport for Redis and Valkey: publish and subscribe."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn, final

from anyio.abc import TaskStatus
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.client import Pipeline
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.client import Pipeline as BlockingPipeline
from redis.exceptions import NoPermissionError

from purgatory.relay.keys import Key, encoded, shard_of
from purgatory.relay.outbox import Outbox
from purgatory.relay.transport import Publication, Receiver

__all__ = ["RedisTransport", "notify", "publications"]

_SUBSCRIBED: Final = b"subscribe"
_MESSAGE: Final = b"message"

_MAX_BYTES: Final = 32_000
# Of more keys of one shard, a signal is for the whole shard.
_MAX_KEYS: Final = 1_000


@final
class RedisTransport:
    """Carries signals over Redis, or over Valkey, which speaks the same protocol (extra `redis`).

    `server` is a URL such as ``redis://localhost:6379``, or a `redis.asyncio.Redis`. A client that you pass
    stays open. Its settings, such as TLS, passwords and Sentinel, hold for the transport's connections, too.
    A Redis Cluster carries publications to all its nodes: pass a client of one node.

    Give each application its own `prefix`: all databases of a server share their channels. The channels are
    ``prefix:00`` to ``prefix:ff``, one for each shard, and one for each relay.

    One connection is for subscriptions. It is lost when Redis restarts, and also when this process reads so
    slowly that Redis drops the connection (``client-output-buffer-limit pubsub``). Then the relay looks at
    all keys. Another connection is for publishing, hundreds of signals in one round trip. Neither connection
    is from the client's pool. The best way to signal is in the transaction that writes, with `notify`, or in
    a script, with `publications`.

    A user of Redis needs the rights ``+subscribe +unsubscribe +publish &prefix:*``, and no others. Without
    one of them, entering the relay raises redis-py's NoPermissionError.

    Raises ValueError for a text that is no URL of Redis, and for a client of Sentinel's replicas. Raises
    TypeError for anything else.
    """

    max_bytes: int = _MAX_BYTES

    def __init__(self, server: str | Redis, *, prefix: str = "purgatory") -> None:
        if isinstance(server, str):
            self._pool = ConnectionPool.from_url(server)
        elif isinstance(server, Redis):
            self._pool = server.connection_pool
        else:
            kind = f"{type(server).__module__}.{type(server).__name__}"
            words = "of a cluster, pass a client of one node"
            raise TypeError(f"server must be a URL or a redis.asyncio.Redis, not {kind}: {words}")
        if isinstance(self._pool, SentinelConnectionPool) and not self._pool.is_master:
            raise ValueError(
                "a replica does not carry signals to the primary: pass master_for(), not slave_for()"
            )
        self._prefix = prefix
        # For publishing. A pipeline of the client takes more than twice the processor time.
        self._publisher: AbstractConnection | None = None
        self._subscriptions: Subscriptions | None = None

    def __repr__(self) -> str:
        state = "connected" if self._subscriptions is not None else "not connected"
        return f"<RedisTransport {self._prefix!r} {state}>"

    async def run(self, receiver: Receiver, *, task_status: TaskStatus[None]) -> NoReturn:
        # A PubSub of the client would connect and subscribe again without a word. By default, five seconds of
        # silence are an error (https://github.com/redis/redis-py/issues/4098).
        connection = self._connection()
        connection.socket_timeout = None
        subscriptions = Subscriptions(connection)
        try:
            with _rights(self._prefix):
                await connection.connect()  # type: ignore[no-untyped-call]  # redis-py gives it no type
                self._subscriptions = subscriptions
                # Otherwise a user who may not unsubscribe would find out long after entering.
                await subscriptions.send(b"UNSUBSCRIBE", [_name(self._prefix, "")])
                task_status.started()
                await subscriptions.read(receiver)
        finally:
            self._subscriptions = None
            subscriptions.end()
            await connection.disconnect(nowait=True)

    async def subscribe(self, channels: Sequence[str]) -> None:
        await self._connected().subscribe(self._names(channels))

    async def unsubscribe(self, channels: Sequence[str]) -> None:
        await self._connected().send(b"UNSUBSCRIBE", self._names(channels))

    async def publish(self, publications: Sequence[Publication]) -> None:
        if self._publisher is None:
            self._publisher = self._connection()
        connection = self._publisher
        commands = [(b"PUBLISH", _name(self._prefix, channel), text) for channel, text in publications]
        try:
            with _rights(self._prefix):
                if not connection.is_connected:
                    # Sending would connect, too, but not to the primary that Sentinel names: redis-py asks it
                    # in `connect` alone.
                    await connection.connect()  # type: ignore[no-untyped-call]  # redis-py gives it no type
                await connection.send_packed_command(connection.pack_commands(commands))
                for _ in commands:
                    await connection.read_response()
        except BaseException:
            # The next call would take the remaining answers for its own.
            await connection.disconnect(nowait=True)
            raise

    async def aclose(self) -> None:
        if self._publisher is not None:
            await self._publisher.disconnect(nowait=True)

    def _connection(self) -> AbstractConnection:
        connection: AbstractConnection = self._pool.make_connection()  # type: ignore[no-untyped-call]  # the same
        # The relay tries again by itself.
        connection.retry = Retry(NoBackoff(), 0)
        return connection

    def _connected(self) -> Subscriptions:
        if self._subscriptions is None:
            raise ConnectionError("there is no connection to Redis")
        return self._subscriptions

    def _names(self, channels: Sequence[str]) -> list[bytes]:
        return [_name(self._prefix, channel) for channel in channels]


@final
class Subscriptions:
    """What is subscribed on one connection. Redis confirms each channel, in the order of the requests."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._requested = 0
        self._confirmed = 0
        self._ended = False
        # Set when there is a confirmation, and when the connection has ended.
        self._changed = asyncio.Event()

    async def read(self, receiver: Receiver) -> NoReturn:
        """Hand over what arrives, until the connection is lost."""
        while True:
            kind, *rest = await self._connection.read_response(disable_decoding=True, push_request=True)
            if kind == _MESSAGE:
                # A text that is no UTF-8 becomes one that is no JSON. The receiver deals with that.
                receiver.received(rest[1].decode(errors="backslashreplace"))
            elif kind == _SUBSCRIBED:
                self._confirmed += 1
                self._changed.set()

    async def subscribe(self, names: list[bytes]) -> None:
        """Return when all of `names` are confirmed."""
        self._requested += len(names)
        last = self._requested
        await self.send(b"SUBSCRIBE", names)
        while self._confirmed < last:
            if self._ended:
                raise ConnectionError("the connection to Redis was lost before all was subscribed")
            self._changed.clear()
            await self._changed.wait()

    async def send(self, command: bytes, names: list[bytes]) -> None:
        if not self._connection.is_connected:
            # Sending would connect again, with nothing subscribed.
            raise ConnectionError("the connection to Redis is lost")
        await self._connection.send_command(command, *names, check_health=False)

    def end(self) -> None:
        """The connection has ended."""
        self._ended = True
        self._changed.set()


def notify(pipeline: Pipeline | BlockingPipeline, *keys: Key, prefix: str = "purgatory") -> None:
    """Signal `keys` with the commands of `pipeline`: the signal leaves when they are executed.

    So the write and its signal take one round trip. A pipeline of redis-py is a transaction, unless you say
    otherwise. In a transaction, each write has its signal, also when this process dies at once. Every relay
    whose transport has the same `prefix` hears the signal, the relay of this process, too. The cost is one
    PUBLISH for each shard of the keys.

    Call it after the commands that write. Raises TypeError or ValueError for a key that has no encoding,
    TypeError for anything but a pipeline, and RuntimeError after ``watch()`` and before ``multi()``, where
    redis-py queues nothing.
    """
    if not isinstance(pipeline, (Pipeline, BlockingPipeline)):
        raise TypeError(
            f"notify() takes a pipeline of redis-py, not {type(pipeline).__name__}: pass client.pipeline(), "
            "and execute it"
        )
    if pipeline.watching and not pipeline.explicit_transaction:
        raise RuntimeError("redis-py queues nothing between watch() and multi(): call notify() after multi()")
    for channel, text in publications(*keys, prefix=prefix):
        pipeline.publish(channel, text)


def publications(*keys: Key, prefix: str = "purgatory") -> list[tuple[bytes, str]]:
    """The channels on which `keys` are signalled, each with the text to publish there.

    For a script of Redis that writes: pass them as arguments, and let it call PUBLISH after the write. A
    script is one command, and takes a third of the processor time of the transaction that `notify` needs.
    Each shard of the keys has one publication, so one key has one. `prefix` is the prefix of the transports
    that are to hear it. Raises TypeError or ValueError for a key that has no encoding.
    """
    outbox = Outbox(_MAX_KEYS)
    for text in map(encoded, keys):
        outbox.add(shard_of(text), text)
    return [(_name(prefix, channel), text) for channel, text in outbox.publications("", _MAX_BYTES)]


@contextmanager
def _rights(prefix: str) -> Iterator[None]:
    """Have an error about a missing right name all rights that a relay needs."""
    try:
        yield
    except NoPermissionError as error:
        rights = f"+subscribe +unsubscribe +publish &{prefix}:*"
        raise NoPermissionError(f"{error}: the user of a relay needs the rights {rights}") from error


def _name(prefix: str, channel: str) -> bytes:
    return f"{prefix}:{channel}".encode()
