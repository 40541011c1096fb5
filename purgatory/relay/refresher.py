"""The task that brings the shared state here, and checks what waits for it."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final, NoReturn, TypeAlias, final

import anyio

from purgatory._cancellation import Foreign
from purgatory.bulk import pause
from purgatory.purgatory import Purgatory
from purgatory.relay.backoff import Backoff
from purgatory.relay.errors import described, in_time
from purgatory.relay.interest import Interest
from purgatory.relay.keys import Key

Refresh: TypeAlias = Callable[[Collection[Key]], Awaitable[object]]

# Seconds for which checks hold the loop before others have their turn.
_SLICE: Final = 0.005

logger: Final = logging.getLogger("purgatory.relay")


@final
class Retries:
    """The batches that could not be refreshed, by the time of their next attempt.

    A batch that fails is halved, until the key that makes it fail is alone.
    """

    __slots__ = ("_batches", "_failed")

    def __init__(self) -> None:
        # The time, a number that makes each entry different, the failures so far, and the keys.
        self._batches: list[tuple[float, int, int, list[Key]]] = []
        self._failed = 0

    def __len__(self) -> int:
        return sum(len(keys) for _, _, _, keys in self._batches)

    @property
    def due(self) -> float | None:
        """When the next batch is due."""
        return self._batches[0][0] if self._batches else None

    def add(self, keys: list[Key], failures: int, now: float) -> None:
        """`keys` have failed, after this many earlier failures."""
        middle = (len(keys) + 1) // 2
        for half in filter(None, (keys[:middle], keys[middle:])):
            self._failed += 1
            when = now + Backoff(failures).next()
            heapq.heappush(self._batches, (when, self._failed, failures + 1, half))

    def pop(self) -> tuple[int, list[Key]]:
        """The failures and the keys of the next batch."""
        _, _, failures, keys = heapq.heappop(self._batches)
        return failures, keys


@final
class Refresher:
    """Refreshes the keys that are watched and unknown, in batches, one call at a time, and checks them.

    A call that raises or lasts longer than `timeout` is reported, and its keys are tried again. Meanwhile the
    other keys go on. Only when several calls in a row fail, it waits between them.
    """

    def __init__(
        self,
        purgatory: Purgatory,
        interest: Interest,
        refresh: Refresh | None,
        changed: asyncio.Event,
        clock: Callable[[], float],
        *,
        max_batch: int,
        timeout: float,
    ) -> None:
        self._purgatory = purgatory
        self._interest = interest
        self._refresh = refresh
        # Set when there may be something to take.
        self._changed = changed
        self._clock = clock
        self._max_batch = max_batch
        self._timeout = timeout
        self._retries = Retries()
        self.calls = 0
        self.refreshed = 0
        self.failures = 0

    @property
    def waiting(self) -> int:
        """How many keys and shards wait for a refresh."""
        return self._interest.waiting + len(self._retries)

    async def run(self) -> NoReturn:
        """Refresh until cancelled."""
        in_a_row = Backoff()
        failed_last = False
        while True:
            failures, keys = self._next()
            if not keys:
                await self._wait()
                continue
            try:
                with Foreign("refresh"):
                    await self._bring(keys)
            except Exception as error:
                self.failures += 1
                self._interest.give_back(keys)
                self._retries.add(keys, failures, self._clock())
                logger.error(
                    "the refresh of %d keys failed, and is tried again: %s",
                    len(keys),
                    described(error),
                    exc_info=error,
                )
                if failed_last:
                    await anyio.sleep(in_a_row.next())
                failed_last = True
            else:
                failed_last = False
                in_a_row.reset()
                # A refresh that never suspends would hold the loop for all batches.
                await pause()

    def _next(self) -> tuple[int, list[Key]]:
        """The next batch, and how often it has failed."""
        due = self._retries.due
        if due is not None and due <= self._clock():
            failures, keys = self._retries.pop()
            return failures, self._interest.take_again(keys)
        return 0, self._interest.take(self._max_batch)

    async def _wait(self) -> None:
        """Wait until there may be something to do."""
        if self._interest.waiting:
            # It has looked at many keys that nobody watches.
            await pause()
            return
        due = self._retries.due
        self._changed.clear()
        with anyio.move_on_after(None if due is None else due - self._clock()):
            await self._changed.wait()

    async def _bring(self, keys: list[Key]) -> None:
        if self._refresh is not None:
            self.calls += 1
            with in_time(self._timeout, "the refresh"):
                await self._refresh(tuple(keys))
        await self._check(keys)
        self.refreshed += len(keys)

    async def _check(self, keys: list[Key]) -> None:
        until = self._clock() + _SLICE
        for key in keys:
            await self._purgatory.sweep(key)
            if self._clock() >= until:
                await pause()
                until = self._clock() + _SLICE
