"""Delivers the messages that are due, and tries again what fails."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

from purgatory._cancellation import Foreign, is_cancelled
from purgatory.delayed import schedule
from purgatory.delayed.committer import Committer
from purgatory.delayed.loader import Loader
from purgatory.delayed.message import Message
from purgatory.errors import safe_repr

Deliver = Callable[[str, bytes, float], Awaitable[object]]

# Deliveries that a warning names, at most.
_NAMED: Final = 10

logger = logging.getLogger("purgatory.delayed")


def check_function(name: str, function: Callable[..., object], *arguments: str) -> None:
    """Raises TypeError for what cannot be called with these arguments."""
    if not callable(function):
        raise TypeError(f"{name} must be a function, not {type(function).__name__}")
    # Some functions that are written in C have no signature.
    with suppress(ValueError):
        try:
            inspect.signature(function).bind(*arguments)
        except TypeError as error:
            raise TypeError(f"{name} is called with ({', '.join(arguments)}): {error}") from None


@dataclass(eq=False, repr=False)
class Delivery:
    """A number of workers, tasks that call `deliver` for one message each.

    A message whose delivery raises waits `backoff` seconds, then twice as long, up to a minute. After
    `attempts` failures it is set aside. `work` raises TypeError if `deliver` returns what cannot be awaited.
    """

    deliver: Deliver
    workers: int
    attempts: int
    backoff: float
    loader: Loader
    committer: Committer

    def __post_init__(self) -> None:
        # The messages that wait for a worker, and since when each is due.
        self.waiting: deque[tuple[Message, float]] = deque()
        # By token, the ids of the messages that are being delivered.
        self.under_way: dict[int, str] = {}
        # How many attempts wait for a worker; when closing, also one for each worker.
        self._signals = asyncio.Semaphore(0)
        self.closing = False
        self.delivered = 0
        self.failures = 0
        self.dead = 0

    def due(self, message: Message, since: float) -> None:
        """Deliver a message as soon as a worker is free. It stays on the disk if the store ends before."""
        if not self.closing:
            self.waiting.append((message, since))
            self._signals.release()

    def close(self) -> None:
        """Take no more messages. The messages that wait for a worker stay on the disk."""
        self.closing = True
        self.waiting.clear()
        for _ in range(self.workers):
            self._signals.release()

    async def ended(self, running: asyncio.Task[None], seconds: float | None, how: str) -> None:
        """Wait `seconds` until the workers' task has ended. A warning says `how` it waits, and for what."""
        patience = schedule.PATIENCE if seconds is None else min(seconds, schedule.PATIENCE)
        _, late = await asyncio.wait([running], timeout=patience)
        if late:
            names = [*map(repr, islice(self.under_way.values(), _NAMED))]
            if len(self.under_way) > _NAMED:
                names.append(f"and {len(self.under_way) - _NAMED} others")
            logger.warning("closing waits for deliveries, %s: %s", how, ", ".join(names))
            await asyncio.wait([running], timeout=None if seconds is None else seconds - patience)

    @property
    def next_due(self) -> float | None:
        """Since when the first message waits for a worker, in seconds since the epoch. Any thread may ask."""
        try:
            return self.waiting[0][1]
        except IndexError:
            return None

    async def work(self) -> None:
        """Be a worker until `close`."""
        # `deliver` may have swallowed the cancellation.
        while not is_cancelled():
            await self._signals.acquire()
            if self.closing:
                return
            message, _ = self.waiting.popleft()
            self.under_way[message.token] = message.id
            try:
                await self._try(message)
            finally:
                del self.under_way[message.token]
            # The other tasks of the loop get a turn, too.
            await asyncio.sleep(0)

    async def _try(self, message: Message) -> None:
        # The wall clock may be set back while a message waits for a worker.
        if self.loader.room.put_off(message):
            return
        try:
            with Foreign("deliver"):
                delivering = self.deliver(message.id, message.payload, message.due / 1000)
                was_awaited = inspect.isawaitable(delivering)
                if was_awaited:
                    await delivering
        except Exception as error:
            await self._failed(message, error)
        else:
            if not was_awaited:
                # Another attempt would do again what this call has done. No other worker may call it either.
                self.close()
                raise TypeError(
                    f"deliver must be a coroutine function: it returned {safe_repr(delivering)}, "
                    "which cannot be awaited; write `async def`"
                )
            self.delivered += 1
            self._end(message)

    async def _failed(self, message: Message, error: Exception) -> None:
        self.failures += 1
        seconds = min(self.backoff * 2.0 ** min(message.failures, 1000), schedule.LONGEST_BACKOFF)
        if message.failures + 1 >= self.attempts:
            try:
                add = self.loader.store.dead_letters.add
                await self.loader.threads.move(add, message, safe_repr(error))
            except OSError as full:
                logger.error("message %r cannot be set aside, and is tried again: %s", message.id, full)
                seconds = schedule.LONGEST_BACKOFF
            else:
                logger.error("message %r was set aside, after %d failures", message.id, self.attempts)
                self.dead += 1
                self._end(message)
                return
        words = "message %r failed, and is tried again in %g s: %s"
        logger.warning(words, message.id, seconds, safe_repr(error))
        self.loader.room.fail(message, seconds)

    def _end(self, message: Message) -> None:
        self.committer.note(message)
        self.loader.room.left(message)
