"""The interface behind which timers are measured: the core's own, and those of the older designs."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, ClassVar, Self

import purgatory
from benchmarks.designs.call_at import CallAt
from benchmarks.designs.kafka_timer import SystemTimer
from benchmarks.designs.lazy_heap import LazyHeap
from benchmarks.designs.ticker_wheel import TickerWheel
from benchmarks.designs.timer import Entry, Timer
from benchmarks.suites.waits.alternative import Tally
from purgatory.reaper import reap


class TimerAlternative(ABC):
    """One design of a timer. It is made and used on a running event loop, inside ``async with``.

    An expiration calls `Tally.expire` with the number of its request, which counts from 0 in the order of
    adding. The timeouts that are pending at the end are withdrawn.
    """

    name: ClassVar[str]
    # Functions of the design, of a timeout and of a timeout and a delay. `start` sets them.
    withdraw: Callable[[Any], object]
    reschedule: Callable[[Any, float], object]

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.loop = asyncio.get_running_loop()
        # The pending timeout of each request.
        self.timeouts: list[Any] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @abstractmethod
    async def start(self) -> None:
        """Start the timer."""

    @abstractmethod
    async def close(self) -> None:
        """Withdraw all timeouts, and end the timer."""

    @abstractmethod
    def add(self, delays: Iterable[float]) -> None:
        """Add one timeout for each delay, in seconds, taken as it starts."""

    def cancel(self, requests: Sequence[int]) -> None:
        """Withdraw these pending timeouts."""
        timeouts, withdraw = self.timeouts, self.withdraw
        for request in requests:
            withdraw(timeouts[request])

    def renew(self, requests: Sequence[int], delay: float) -> None:
        """Have these pending timeouts expire `delay` seconds from now instead, as heartbeats do."""
        timeouts, reschedule = self.timeouts, self.reschedule
        for request in requests:
            reschedule(timeouts[request], delay)

    @property
    @abstractmethod
    def wakeups(self) -> int:
        """How often the loop has called the timer."""


class Timeout(purgatory.TimerTask):
    """A user's task of the core's timer."""

    __slots__ = ("request", "tally")

    def __init__(self, request: int, tally: Tally) -> None:
        super().__init__()
        self.request = request
        self.tally = tally

    def run(self) -> None:
        self.tally.expire(self.request)


class CoreTimer(TimerAlternative):
    """A timing wheel under one timer of the loop, and a reaper that works in slices."""

    name = "purgatory's timer"

    async def start(self) -> None:
        self._timer = purgatory.Timer()
        self.withdraw, self.reschedule = self._timer.remove, self._timer.reschedule
        self._timer.start(self.loop)
        self._reaper = self.loop.create_task(reap(self._timer))
        # Let the reaper reach the point where it waits.
        await asyncio.sleep(0)

    async def close(self) -> None:
        self._timer.stop()
        await self._reaper
        for timeout in self.timeouts:
            self._timer.remove(timeout)

    def add(self, delays: Iterable[float]) -> None:
        tally, timeouts, add = self.tally, self.timeouts, self._timer.add
        for request, delay in enumerate(delays, len(timeouts)):
            timeout = Timeout(request, tally)
            timeouts.append(timeout)
            if not add(timeout, delay):
                timeout.run()

    @property
    def wakeups(self) -> int:
        return self._timer.wakeups


class DesignTimeout(Entry):
    """A user's entry of one of the other timers."""

    __slots__ = ("request", "tally")

    def __init__(self, request: int, tally: Tally) -> None:
        self.request = request
        self.tally = tally

    def expire(self) -> None:
        self.tally.expire(self.request)


class DesignTimer(TimerAlternative):
    """Any of the other designs. None of them renews: they cancel and add again."""

    design: ClassVar[type[Timer]]

    async def start(self) -> None:
        self._timer = self.design(self.loop)
        self.withdraw = self._timer.cancel
        self._timer.start()

    async def close(self) -> None:
        for timeout in self.timeouts:
            self._timer.cancel(timeout)
        self._timer.close()

    def add(self, delays: Iterable[float]) -> None:
        tally, timeouts, add = self.tally, self.timeouts, self._timer.add
        for request, delay in enumerate(delays, len(timeouts)):
            timeout = DesignTimeout(request, tally)
            timeouts.append(timeout)
            add(timeout, delay)

    def renew(self, requests: Sequence[int], delay: float) -> None:
        timeouts, cancel, add = self.timeouts, self._timer.cancel, self._timer.add
        for request in requests:
            timeout = timeouts[request]
            cancel(timeout)
            add(timeout, delay)

    @property
    def wakeups(self) -> int:
        return self._timer.wakeups


class KafkaTimer(DesignTimer):
    """Hierarchical timing wheels, driven by a delay queue of their buckets."""

    name = "Kafka's present timer"
    design = SystemTimer


class TickerWheelTimer(DesignTimer):
    """A single wheel, scanned by a ticker."""

    name = "ticker wheel"
    design = TickerWheel


class LazyHeapTimer(DesignTimer):
    """A binary heap with tombstones."""

    name = "lazy heap"
    design = LazyHeap


class CallAtTimer(DesignTimer):
    """A timer of the event loop each."""

    name = "one call_at each"
    design = CallAt


TIMERS: tuple[type[TimerAlternative], ...] = (
    CoreTimer, KafkaTimer, TickerWheelTimer, LazyHeapTimer, CallAtTimer,
)  # fmt: skip
