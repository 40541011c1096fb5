"""Heartbeats: each one renews the timeout of its session."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Iterable, Sequence

from benchmarks.harness.benchmark import Benchmark, Column, Sample, Table
from benchmarks.harness.event_loop import CollectorSetting, run, turns
from benchmarks.harness.setting import Setting
from benchmarks.harness.sizes import at, measure_sizes, size_columns
from benchmarks.suites.timers.alternative import TIMERS, TimerAlternative
from benchmarks.suites.waits.alternative import Tally
from benchmarks.suites.waits.purgatory_waits import Wait
from purgatory import Purgatory

# Heartbeats in one turn of the loop.
BATCH = 1_000
TIMEOUT = 60.0
# More tasks take too long, and too much memory.
MOST_TASKS = 100_000


class Session(Wait):
    """A user's operation: it lasts until there has been no heartbeat for too long."""

    __slots__ = ()

    def on_expiration(self) -> None:
        self.tally.expire(self.request)


class PurgatoryTimeouts(TimerAlternative):
    """An operation each, which watches a key of its own."""

    name = "purgatory's operations"

    async def start(self) -> None:
        self._purgatory = Purgatory("benchmark")
        self.withdraw, self.reschedule = Session.cancel, Session.reschedule
        self._purgatory.start()

    async def close(self) -> None:
        await self._purgatory.aclose(cancel_pending=True)

    def add(self, delays: Iterable[float]) -> None:
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

    async def start(self) -> None:
        self._sessions: list[asyncio.Task[None]] = []

    async def close(self) -> None:
        for session in self._sessions:
            session.cancel()
        await asyncio.gather(*self._sessions, return_exceptions=True)

    def add(self, delays: Iterable[float]) -> None:
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

    def cancel(self, requests: Sequence[int]) -> None:
        for request in requests:
            self._sessions[request].cancel()

    def renew(self, requests: Sequence[int], delay: float) -> None:
        timeouts, time = self.timeouts, self.loop.time
        for request in requests:
            timeouts[request].reschedule(time() + delay)

    @property
    def wakeups(self) -> int:
        return self.tally.expired


ALTERNATIVES: tuple[type[TimerAlternative], ...] = (PurgatoryTimeouts, *TIMERS, AsyncioTimeouts)


def sessions(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Heartbeats of `sizes` of sessions."""

    def measured(alternative: type[TimerAlternative]) -> Sample:
        return measure_sizes(
            sizes,
            lambda size: run(setting.loop, measure(alternative, size, setting.times)),
            growing=("us",),
            at_most=MOST_TASKS if alternative is AsyncioTimeouts else None,
        )

    headline = sizes[0]
    return Benchmark(
        name="sessions",
        summary="heartbeats of sessions, each of which renews a timeout",
        cases=setting.cases_of("renewed by heartbeats", ALTERNATIVES, measured, interpreted=True),
        tables=(
            Table(
                "A heartbeat of one of n sessions renews its timeout: microseconds",
                size_columns("us", sizes),
                f"Processor time. {setting.times:,} heartbeats, {BATCH:,} in each turn of the loop, "
                "each of a session drawn by lot. What cannot renew a timeout cancels it and adds another. "
                "Collector as the README advises.",
            ),
            Table(
                f"The same, n = {headline:,}: how many heartbeats that makes per second",
                (
                    Column(at("us", headline), "microseconds", spread=False),
                    Column(at("per_second", headline), "per second"),
                ),
            ),
        ),
        time_limit=20.0,
    )


async def measure(alternative_type: type[TimerAlternative], pending: int, times: int) -> Sample:
    """Microseconds for each heartbeat of one of so many sessions, and heartbeats per second."""
    rounds = -(-times // BATCH)
    choice = random.Random(1)
    seconds = 0.0
    tally = Tally()
    async with alternative_type(tally) as alternative:
        with CollectorSetting.ADVISED.applied():
            alternative.add([TIMEOUT] * pending)
            await turns(2)
            # The collector has seen them before, as it has those of a service that runs for a while.
            gc.collect()
            for _ in range(rounds):
                requests = choice.choices(range(pending), k=BATCH)
                start = time.process_time()
                alternative.renew(requests, TIMEOUT)
                await turns(1)
                seconds += time.process_time() - start
    if tally.expired:
        raise AssertionError(f"{alternative.name}: {tally.expired} sessions expired that were alive")
    heartbeats = rounds * BATCH
    return {"us": seconds / heartbeats * 1e6, "per_second": heartbeats / seconds}
