"""The connection to the transport: what is subscribed, what arrives, and whether anything does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NoReturn, final

import anyio
from anyio import CancelScope
from anyio.abc import TaskStatus

from purgatory._cancellation import Foreign
from purgatory.relay.backoff import Backoff
from purgatory.relay.errors import described, in_time
from purgatory.relay.interest import Interest, Shard
from purgatory.relay.texts import read
from purgatory.relay.transport import Transport

logger: Final = logging.getLogger("purgatory.relay")


@final
class Link:
    """Keeps a connection, with subscriptions to a channel of its own and to the shards that have keys.

    It is the `Receiver` of the transport. Its own channel brings its heartbeats back. When no heartbeat has
    arrived for `heartbeat` seconds, it gives the connection up, though it may look alive. A loss makes all
    values unknown. So does the confirmation of the subscriptions after the loss.
    """

    def __init__(
        self,
        transport: Transport,
        interest: Interest,
        sender: str,
        clock: Callable[[], float],
        *,
        heartbeat: float,
        on_connected: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._interest = interest
        self._sender = sender
        self._clock = clock
        self._heartbeat = heartbeat
        self._on_connected = on_connected
        # Set when a shard has got its first key or lost its last one.
        self._wanted_changed = asyncio.Event()
        # The scope of the present connection, or of the attempt to connect.
        self._scope: CancelScope | None = None
        # What has ended the present connection.
        self._end: Exception | None = None
        # When it began, or when its last heartbeat arrived.
        self._alive = 0.0
        # Whether everything is subscribed.
        self.connected = False
        # Set when a heartbeat has arrived over the present connection.
        self.heard = asyncio.Event()
        # When the last heartbeat arrived, over whichever connection.
        self.last_beat: float | None = None
        self.generation = 0
        self.gaps = 0
        self.arrived = 0
        self.unreadable = 0

    # The receiver

    def received(self, text: str) -> None:
        try:
            arrival = read(text)
        except ValueError as error:
            # It may be of a newer version, and mean any key.
            self.unreadable += 1
            logger.warning("a publication cannot be read, so all keys are looked at again: %s", error)
            self.missed()
            return
        if arrival.sender == self._sender:
            # The relay has dealt with its own signals when they were given.
            if arrival.beat:
                self._alive = self.last_beat = self._clock()
                self.heard.set()
            return
        self.arrived += len(arrival.keys)
        for key in arrival.keys:
            self._interest.signalled(key)
        if arrival.shard is not None:
            self.arrived += 1
            self._interest.shard_signalled(self._interest.shards[arrival.shard])

    def missed(self) -> None:
        self.gaps += 1
        self._interest.all_signalled()

    # The connection

    @property
    def hears(self) -> bool:
        """Whether it is subscribed, and a heartbeat has arrived in time over the present connection."""
        return self.connected and self.heard.is_set() and self._clock() - self._alive < self._heartbeat

    def wanted_changed(self) -> None:
        """A shard has got its first key, or has lost its last one."""
        self._wanted_changed.set()

    def check(self) -> None:
        """Give up a connection that is silent. The pulse calls this three times in `heartbeat` seconds."""
        # Two heartbeats have been sent since then. So silence is noticed within `heartbeat` seconds.
        if self._scope is not None and self._clock() - self._alive >= self._heartbeat * 2 / 3:
            self._scope.cancel()

    async def run(self, *, task_status: TaskStatus[None]) -> NoReturn:
        """Be connected until cancelled. Raises what ends a connection before the first heartbeat of all."""
        backoff = Backoff()
        while True:
            try:
                await self._connect(task_status)
            except Exception as error:
                if self.last_beat is None:
                    raise
                # A server may end each connection as soon as everything is subscribed.
                if self.heard.is_set():
                    backoff.reset()
                seconds = backoff.next()
                if self.connected:
                    self.connected = False
                    self.gaps += 1
                    self._interest.unsubscribed(self._interest.shards)
                    logger.warning(
                        "the connection is lost, next attempt in %.2g s: %s", seconds, described(error)
                    )
                else:
                    logger.info("still not connected, next attempt in %.2g s: %s", seconds, described(error))
                await anyio.sleep(seconds)

    async def _connect(self, task_status: TaskStatus[None]) -> NoReturn:
        """One connection, from its beginning to its end, which raises."""
        self._alive = self._clock()
        self._end = None
        self.heard.clear()
        problem: Exception | None = None
        missing = (
            "the server has not answered: check the address, whether both sides use TLS, and whether the "
            "pool has a free connection"
        )
        try:
            async with anyio.create_task_group() as group:
                self._scope = group.cancel_scope
                await group.start(self._serve)
                missing = "the server has not confirmed the subscriptions"
                self._wanted_changed.clear()
                await self._subscribe([self._sender], self._interest.wanted())
                missing = "no heartbeat has come back"
                self._alive = self._clock()
                self.connected = True
                self.generation += 1
                self._on_connected()
                if self.generation == 1:
                    task_status.started()
                while True:
                    await self._wanted_changed.wait()
                    self._wanted_changed.clear()
                    await self._follow()
        except ExceptionGroup as errors:
            # A request can fail because the connection has ended, and be the first of the group all the same.
            problem = self._end or errors.exceptions[0]
        finally:
            self._scope = None
        raise problem or TimeoutError(f"within {self._heartbeat * 2 / 3:.2g} seconds {missing}")

    async def _serve(self, *, task_status: TaskStatus[None]) -> NoReturn:
        try:
            with Foreign("the transport"):
                await self._transport.run(self, task_status=task_status)
            raise ConnectionError("Transport.run has returned")
        except Exception as error:
            self._end = error
            raise

    async def _subscribe(self, more: list[str], shards: list[Shard]) -> None:
        # Heartbeats may go on although the server has ignored this request.
        with in_time(self._heartbeat, "subscribing"), Foreign("the transport"):
            await self._transport.subscribe([*more, *(shard.channel for shard in shards)])
        self._interest.confirmed(shards)

    async def _follow(self) -> None:
        """Subscribe to the shards that have keys, and to no others."""
        unwanted = [shard for shard in self._interest.shards if shard.confirmed and not shard.entries]
        if unwanted:
            self._interest.unsubscribed(unwanted)
            with in_time(self._heartbeat, "unsubscribing"), Foreign("the transport"):
                await self._transport.unsubscribe([shard.channel for shard in unwanted])
        wanted = [shard for shard in self._interest.wanted() if not shard.confirmed]
        if wanted:
            await self._subscribe([], wanted)
