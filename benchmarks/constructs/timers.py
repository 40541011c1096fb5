"""The core's timer, and those of the older designs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import ClassVar, Self

import purgatory
from benchmarks.constructs.construct import Tally
from benchmarks.constructs.timer_construct import TimerConstruct
from benchmarks.designs.call_at import CallAt
from benchmarks.designs.kafka_timer import SystemTimer
from benchmarks.designs.lazy_heap import LazyHeap
from benchmarks.designs.ticker_wheel import TickerWheel
from benchmarks.designs.timer import Entry, Timer
from purgatory.reaper import reap


class Timeout(purgatory.TimerTask):
    """What a user of the core's timer writes."""

    __slots__ = ("request", "tally")

    def __init__(self, request: int, tally: Tally) -> None:
        super().__init__()
        self.request = request
        self.tally = tally

    def run(self) -> None:
        self.tally.expire(self.request)


class CoreTimer(TimerConstruct):
    """The core's: a timing wheel under one timer of the loop, and a reaper that works in slices."""

    name = "purgatory's timer"

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._timer = purgatory.Timer()
        self._timeouts: list[Timeout] = []

    async def __aenter__(self) -> Self:
        self._timer.start(self.loop)
        self._reaper = self.loop.create_task(reap(self._timer))
        # Let it come to wait.
        await asyncio.sleep(0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.stop()
        await self._reaper
        for timeout in self._timeouts:
            self._timer.remove(timeout)

    def add(self, delays: Iterable[float]) -> None:
        tally, timeouts, add = self.tally, self._timeouts, self._timer.add
        for request, delay in enumerate(delays, len(timeouts)):
            timeout = Timeout(request, tally)
            timeouts.append(timeout)
            if not add(timeout, delay):
                timeout.run()

    def cancel(self, requests: Sequence[int]) -> None:
        timeouts, remove = self._timeouts, self._timer.remove
        for request in requests:
            remove(timeouts[request])

    def renew(self, requests: Sequence[int], delay: float) -> None:
        timeouts, reschedule = self._timeouts, self._timer.reschedule
        for request in requests:
            reschedule(timeouts[request], delay)

    @property
    def wakeups(self) -> int:
        return self._timer.wakeups


class DesignTimeout(Entry):
    """What a user of one of the others writes."""

    __slots__ = ("request", "tally")

    def __init__(self, request: int, tally: Tally) -> None:
        self.request = request
        self.tally = tally

    def expire(self) -> None:
        self.tally.expire(self.request)


class DesignTimer(TimerConstruct):
    """Any of the other designs. None of them renews: they cancel and add again."""

    design: ClassVar[type[Timer]]

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._timer = self.design(self.loop)
        self._timeouts: list[DesignTimeout] = []

    async def __aenter__(self) -> Self:
        self._timer.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for timeout in self._timeouts:
            self._timer.cancel(timeout)
        self._timer.close()

    def add(self, delays: Iterable[float]) -> None:
        tally, timeouts, add = self.tally, self._timeouts, self._timer.add
        for request, delay in enumerate(delays, len(timeouts)):
            timeout = DesignTimeout(request, tally)
            timeouts.append(timeout)
            add(timeout, delay)

    def cancel(self, requests: Sequence[int]) -> None:
        timeouts, cancel = self._timeouts, self._timer.cancel
        for request in requests:
            cancel(timeouts[request])

    def renew(self, requests: Sequence[int], delay: float) -> None:
        timeouts, cancel, add = self._timeouts, self._timer.cancel, self._timer.add
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


TIMERS: tuple[type[TimerConstruct], ...] = (
    CoreTimer,
    KafkaTimer,
    TickerWheelTimer,
    LazyHeapTimer,
    CallAtTimer,
)
