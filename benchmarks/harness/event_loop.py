"""Runs a measurement on a fresh event loop, and watches for how long the loop is held."""

import asyncio
import enum
import gc
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

LOOPS = ("asyncio", "uvloop")
T = TypeVar("T")

# The README's advice for millions of pending operations.
ADVISED_THRESHOLDS = (50_000, 100, 50)
HEARTBEAT_SECONDS = 0.001
# Longer than the slowest case takes on a slow machine.
HEARTBEAT_LIMIT = 600.0


def run(loop: str, measure: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
    """Run one measurement on a fresh event loop. ImportError when uvloop is asked for and not installed."""
    with asyncio.Runner(loop_factory=import_module(loop).new_event_loop) as runner:
        return runner.run(measure(*arguments))


async def turns(count: int) -> None:
    """Let the loop iterate so many times: everything that was ready has then run as often."""
    for _ in range(count):
        await asyncio.sleep(0)


class CollectorSetting(enum.Enum):
    """How the garbage collector is set during a measurement."""

    # The README's thresholds, and gc.freeze() before anything is parked.
    ADVISED = "collector as advised"
    DEFAULT = "collector on"
    # The control, which shows the cost without the collector's part.
    OFF = "collector off"

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the setting within a ``with`` block, which begins with nothing to collect."""
        gc.collect()
        usual, frozen = gc.get_threshold(), gc.get_freeze_count()
        if self is CollectorSetting.ADVISED:
            gc.freeze()
            gc.set_threshold(*ADVISED_THRESHOLDS)
        elif self is CollectorSetting.OFF:
            gc.disable()
        try:
            yield
        finally:
            gc.enable()
            gc.set_threshold(*usual)
            # Objects that were frozen before stay frozen.
            if not frozen:
                gc.unfreeze()


class CollectorPauses:
    """The garbage collector's pauses within `watched`, in seconds."""

    def __init__(self) -> None:
        self.total = self._start = 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        gc.callbacks.append(self._called)
        try:
            yield
        finally:
            gc.callbacks.remove(self._called)

    def _called(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._start = time.perf_counter()
        else:
            self.total += time.perf_counter() - self._start


class Heartbeat:
    """The worst stalls of the loop: the delay of a beat that is due a millisecond after the last, in seconds.

    `worst` is the stall as other tasks see it. `worst_apart` leaves out the collector's pauses, beat by
    beat. `worst_busy` is the most processor time that the thread used between two beats, without these
    pauses: where it is much less than the stall, the machine gave the processor to another process.
    """

    def __init__(self) -> None:
        self.worst = self.worst_apart = self.worst_busy = 0.0

    async def until(self, done: Callable[[], bool], pauses: CollectorPauses) -> None:
        """Beat until `done()`. Raises TimeoutError after ten minutes."""
        start = last = time.perf_counter()
        paused, busy = pauses.total, time.thread_time()
        while not done():
            await asyncio.sleep(HEARTBEAT_SECONDS)
            now = time.perf_counter()
            stall = now - last - HEARTBEAT_SECONDS
            paused = pauses.total - paused
            self.worst = max(self.worst, stall)
            self.worst_apart = max(self.worst_apart, stall - paused)
            self.worst_busy = max(self.worst_busy, time.thread_time() - busy - paused)
            last, paused, busy = now, pauses.total, time.thread_time()
            if now - start > HEARTBEAT_LIMIT:
                raise TimeoutError(f"the measurement is not over after {HEARTBEAT_LIMIT} seconds")
