"""The task that publishes signals."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, NoReturn, final

import anyio
from anyio.abc import TaskStatus

from purgatory._cancellation import Foreign
from purgatory.relay.backoff import Backoff
from purgatory.relay.errors import RelayClosed, described, in_time
from purgatory.relay.outbox import Outbox
from purgatory.relay.transport import Transport

logger: Final = logging.getLogger("purgatory.relay")


@final
class Flusher:
    """Publishes the signals that have gathered, one call of the transport at a time.

    After a failure, or after `timeout` seconds, it publishes the same again, with what has come since.
    """

    def __init__(self, transport: Transport, sender: str, max_keys: int, timeout: float) -> None:
        self._transport = transport
        self._sender = sender
        self._max_keys = max_keys
        self._timeout = timeout
        self._gathering = Outbox(max_keys)
        self._flying: Outbox | None = None
        self._filled = asyncio.Event()
        self._reachable = asyncio.Event()
        # Whether it publishes nothing any more.
        self.over = False
        self.signals = 0
        self.published = 0
        self.collapses = 0
        self.failures = 0

    def add(self, shard: int, key: str) -> None:
        """Publish a signal of an encoded key soon."""
        self.signals += 1
        self._gathering.add(shard, key)
        self._filled.set()

    def add_beat(self) -> None:
        """Publish a heartbeat soon."""
        self._gathering.add_beat()
        self._filled.set()

    def taken(self) -> asyncio.Future[None]:
        """Done when the transport has taken everything that was added before this call."""
        future = asyncio.get_running_loop().create_future()
        if self.over:
            future.set_exception(RelayClosed("the relay has ended, and signals nothing any more"))
        self._gathering.waiters.append(future)
        self._filled.set()
        return future

    def retry(self) -> None:
        """The transport can be reached again: do not wait for the next attempt."""
        self._reachable.set()

    async def run(self, *, task_status: TaskStatus[None]) -> NoReturn:
        """Publish until cancelled. The first attempt starts it, or raises."""
        started = False
        backoff = Backoff()
        while True:
            await self._filled.wait()
            self._filled.clear()
            outbox, self._gathering = self._gathering, Outbox(self._max_keys)
            self._flying = outbox
            try:
                with Foreign("the transport"):
                    await self._publish(outbox)
            except Exception as error:
                self.failures += 1
                if not started:
                    raise
                outbox.absorb(self._gathering)
                self._gathering = outbox
                self._flying = None
                self._filled.set()
                seconds = backoff.next()
                logger.warning(
                    "signals could not be published, next attempt in %.2g s: %s", seconds, described(error)
                )
                self._reachable.clear()
                with anyio.move_on_after(seconds):
                    await self._reachable.wait()
            else:
                if not started:
                    started = True
                    task_status.started()
                backoff.reset()
                self._flying = None
                for waiter in outbox.waiters:
                    if not waiter.done():
                        waiter.set_result(None)

    async def _publish(self, outbox: Outbox) -> None:
        publications = outbox.publications(self._sender, self._transport.max_bytes)
        if publications:
            with in_time(self._timeout, "publishing"):
                await self._transport.publish(publications)
        self.published += len(publications)
        self.collapses += outbox.collapses

    def give_up(self) -> None:
        """Publish nothing more. Tasks that wait in `taken` get RelayClosed."""
        self.over = True
        for outbox in (self._flying, self._gathering):
            for waiter in [] if outbox is None else outbox.waiters:
                if not waiter.done():
                    waiter.set_exception(
                        RelayClosed("the relay has ended, and the signal may not have been published")
                    )
