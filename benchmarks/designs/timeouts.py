"""The core's own timer, and what else holds timeouts, behind the interface of the older designs' timers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import purgatory
from benchmarks.designs.alternative import MOST_TASKS, Tally
from benchmarks.designs.kafka_today import SystemTimer
from benchmarks.designs.purgatory_waits import Wait
from benchmarks.designs.timers import CallAt, LazyHeap, TickerWheel, TimerAlternative
from purgatory.reaper import reap


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

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._timer = purgatory.Timer()
        self.cancel, self.reschedule = self._timer.remove, self._timer.reschedule
        self._timer.start(self.loop)
        self._reaper = self.loop.create_task(reap(self._timer))

    async def close(self) -> None:
        self._timer.stop()
        await self._reaper
        for timeout in self.timeouts:
            self._timer.remove(timeout)

    def add_all(self, delays: Iterable[float]) -> None:
        tally, timeouts, add = self.tally, self.timeouts, self._timer.add
        for request, delay in enumerate(delays, len(timeouts)):
            timeout = Timeout(request, tally)
            timeouts.append(timeout)
            if not add(timeout, delay):
                timeout.run()

    @property
    def wakeups(self) -> int:
        return self._timer.wakeups


class Session(Wait):
    """A user's operation: it lasts until there has been no heartbeat for too long."""

    __slots__ = ()

    def on_expiration(self) -> None:
        self.tally.expire(self.request)


class PurgatoryTimeouts(TimerAlternative):
    """An operation each, which watches a key of its own."""

    name = "purgatory's operations"

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._purgatory = purgatory.Purgatory("benchmark")
        self.cancel, self.reschedule = Session.cancel, Session.reschedule
        self._purgatory.start()

    async def close(self) -> None:
        await self._purgatory.aclose(cancel_pending=True)

    def add_all(self, delays: Iterable[float]) -> None:
        tally, sessions, watch = self.tally, self.timeouts, self._purgatory.try_complete_else_watch
        for request, delay in enumerate(delays, len(sessions)):
            session = Session(delay, request, tally)
            sessions.append(session)
            watch(session, (request,))

    @property
    def wakeups(self) -> int:
        return self._purgatory.statistics().wakeups


class AsyncioTimeouts(TimerAlternative):
    """A session is a task within its timeout; a heartbeat calls `asyncio.Timeout.reschedule`."""

    name = "asyncio.timeout().reschedule"
    most = MOST_TASKS

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._sessions: list[asyncio.Task[None]] = []

    async def close(self) -> None:
        self.cancel_all(range(len(self._sessions)))
        await asyncio.gather(*self._sessions, return_exceptions=True)

    def add_all(self, delays: Iterable[float]) -> None:
        """Add them. The tasks begin a turn of the loop later, and can be renewed from then on."""
        for request, delay in enumerate(delays, len(self.timeouts)):
            timeout = asyncio.timeout(delay)
            self.timeouts.append(timeout)
            self._sessions.append(self.loop.create_task(self._session(request, timeout)))

    async def _session(self, request: int, timeout: asyncio.Timeout) -> None:
        try:
            async with timeout:
                await self.loop.create_future()
        except TimeoutError:
            self.tally.expire(request)

    def cancel_all(self, requests: Sequence[int]) -> None:
        for request in requests:
            self._sessions[request].cancel()

    def renew_all(self, requests: Sequence[int], delay: float) -> None:
        timeouts, time = self.timeouts, self.loop.time
        for request in requests:
            timeouts[request].reschedule(time() + delay)

    @property
    def wakeups(self) -> int:
        return self.tally.expired


# Purgatory comes first: the others are set in relation to it.
TIMERS: tuple[type[TimerAlternative], ...] = (CoreTimer, SystemTimer, TickerWheel, LazyHeap, CallAt)
RENEWED: tuple[type[TimerAlternative], ...] = (PurgatoryTimeouts, *TIMERS, AsyncioTimeouts)
