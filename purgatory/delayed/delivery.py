"""Delivers the messages that are due, and tries again what fails."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from itertools import islice
from typing import Final

from purgatory._cancellation import Foreign, part
from purgatory.delayed.loader import Loader
from purgatory.delayed.message import Message
from purgatory.delayed.schedule import LONGEST_BACKOFF, PATIENCE
from purgatory.delayed.waiting_message import Attempt
from purgatory.errors import safe_repr

Deliver = Callable[[str, bytes, float], Awaitable[object]]

# Deliveries that a warning names, at most.
_NAMED: Final = 10

logger = logging.getLogger("purgatory.delayed")


class Delivery:
    """A number of tasks that call `deliver` for one message each.

    A message whose delivery raises waits `backoff` seconds, then twice as long, up to a minute. After
    `attempts` failures it is set aside. `ended` is called when a message needs no further attempt. When
    `deliver` returns what cannot be awaited, `run` raises TypeError.
    """

    def __init__(
        self,
        deliver: Deliver,
        workers: int,
        attempts: int,
        backoff: float,
        ended: Callable[[Message], None],
    ) -> None:
        self._deliver = deliver
        self._workers = workers
        self._attempts = attempts
        self._backoff = backoff
        self._ended = ended
        self._waiting: deque[Attempt] = deque()
        # By token, the ids of the messages that are being delivered.
        self.under_way: dict[int, str] = {}
        # How many attempts wait for a worker; when closing, also one for each worker.
        self._signals = asyncio.Semaphore(0)
        self.closing = False
        self.delivered = 0
        self.failures = 0
        self.dead = 0

    def due(self, attempt: Attempt) -> None:
        """Deliver a message as soon as a worker is free. It stays on the disk if the store ends before."""
        if not self.closing:
            self._waiting.append(attempt)
            self._signals.release()

    async def run(self, loader: Loader) -> None:
        """Deliver until `close`, and then what is being delivered."""
        # anyio's task group cancels its tasks at each turn of the loop until they end. This one cancels once.
        async with asyncio.TaskGroup() as workers:
            for _ in range(self._workers):
                workers.create_task(part("the disk or the clock", self._work, loader))

    def close(self) -> None:
        """Take no more messages. Those that wait for a worker stay on the disk."""
        self.closing = True
        self._waiting.clear()
        for _ in range(self._workers):
            self._signals.release()

    async def ended(self, running: asyncio.Task[None], seconds: float | None, how: str) -> None:
        """Wait until the task of `run` has ended, at most `seconds`. A warning names slow deliveries.

        `how` says how it waits.
        """
        patience = PATIENCE if seconds is None else min(seconds, PATIENCE)
        _, late = await asyncio.wait([running], timeout=patience)
        if late:
            names = [*map(repr, islice(self.under_way.values(), _NAMED))]
            if len(self.under_way) > _NAMED:
                names.append(f"and {len(self.under_way) - _NAMED} others")
            logger.warning("closing waits for deliveries, %s: %s", how, ", ".join(names))
            await asyncio.wait([running], timeout=None if seconds is None else seconds - patience)

    @property
    def waiting(self) -> int:
        """How many messages wait for a worker. Any thread may ask."""
        return len(self._waiting)

    @property
    def next_due(self) -> float | None:
        """Since when the first of them is due, in seconds since the epoch. Any thread may ask."""
        try:
            return self._waiting[0].due
        except IndexError:
            return None

    async def _work(self, loader: Loader) -> None:
        task = asyncio.current_task()
        assert task is not None
        # `deliver` may have swallowed the cancellation.
        while not task.cancelling():
            await self._signals.acquire()
            if self.closing:
                return
            attempt = self._waiting.popleft()
            self.under_way[attempt.message.token] = attempt.message.id
            try:
                await self._try(attempt, loader)
            finally:
                del self.under_way[attempt.message.token]
            # Neither of the two may have waited for anything.
            await asyncio.sleep(0)

    async def _try(self, attempt: Attempt, loader: Loader) -> None:
        message = attempt.message
        if loader.is_early(attempt):
            loader.put_back(message)
            return
        try:
            with Foreign("deliver"):
                delivering = self._deliver(message.id, message.payload, message.due / 1000)
                was_awaited = isawaitable(delivering)
                if was_awaited:
                    await delivering
        except Exception as error:
            await self._failed(attempt, error, loader)
        else:
            if not was_awaited:
                # Another attempt would do again what this call has done. No other worker may call it either.
                self.close()
                raise TypeError(
                    f"deliver must be a coroutine function: it returned {safe_repr(delivering)}, "
                    "which cannot be awaited; write `async def`"
                )
            self.delivered += 1
            self._end(message, loader)

    async def _failed(self, attempt: Attempt, error: Exception, loader: Loader) -> None:
        message = attempt.message
        self.failures += 1
        seconds = min(self._backoff * 2.0 ** min(attempt.failures, 1000), LONGEST_BACKOFF)
        if attempt.failures + 1 >= self._attempts:
            try:
                await loader.set_aside(message, safe_repr(error))
            except OSError as full:
                logger.error("message %r cannot be set aside, and is tried again: %s", message.id, full)
                seconds = LONGEST_BACKOFF
            else:
                logger.error("message %r was set aside, after %d failures", message.id, self._attempts)
                self.dead += 1
                self._end(message, loader)
                return
        logger.warning(
            "message %r failed, and is tried again in %g s: %s", message.id, seconds, safe_repr(error)
        )
        loader.wait_again(attempt, seconds)

    def _end(self, message: Message, loader: Loader) -> None:
        self._ended(message)
        loader.room.left(message)
