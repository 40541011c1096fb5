"""How long the event loop is held: the gaps between the beats of a task that sleeps for milliseconds."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

INTERVAL = 0.001
# Longer than the slowest takes on a slow machine: only what never ends gets there.
LIMIT = 600.0


class CollectorPauses:
    """The garbage collector's own pauses within a ``with`` block, by its callbacks, in seconds."""

    def __init__(self) -> None:
        self.total = 0.0
        self.longest = 0.0
        self._start = 0.0

    def __enter__(self) -> Self:
        gc.callbacks.append(self._called)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        gc.callbacks.remove(self._called)

    def _called(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._start = time.perf_counter()
        else:
            pause = time.perf_counter() - self._start
            self.total += pause
            self.longest = max(self.longest, pause)


class Heartbeat:
    """The worst stalls: by how much a beat came later than a millisecond after the last one, in seconds.

    `worst` is what a user of the loop sees; `worst_apart` leaves out the collector's pauses, beat by beat.
    `worst_busy` is the most processor time that the thread used between two beats, these left out again:
    where it is much less than the stall, the machine had given the processor to somebody else.
    """

    def __init__(self) -> None:
        self.worst = 0.0
        self.worst_apart = 0.0
        self.worst_busy = 0.0

    async def until(self, over: Callable[[], bool], pauses: CollectorPauses) -> None:
        """Beat until it is `over`. Raises TimeoutError when it does not get there."""
        start = last = time.perf_counter()
        paused, busy = pauses.total, time.thread_time()
        while not over():
            await asyncio.sleep(INTERVAL)
            now = time.perf_counter()
            stall = now - last - INTERVAL
            paused = pauses.total - paused
            self.worst = max(self.worst, stall)
            self.worst_apart = max(self.worst_apart, stall - paused)
            self.worst_busy = max(self.worst_busy, time.thread_time() - busy - paused)
            last, paused, busy = now, pauses.total, time.thread_time()
            if now - start > LIMIT:
                raise TimeoutError(f"not over after {LIMIT} seconds")
