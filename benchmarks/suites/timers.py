"""Timers alone: timeouts that are cancelled, or renewed.

The core's own timer, and what else holds timeouts, stands behind the interface of the older designs' timers.
"""

import asyncio
import gc
import random
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import purgatory
from benchmarks.designs.alternative import MOST_TASKS, Tally
from benchmarks.designs.kafka_today import SystemTimer
from benchmarks.designs.purgatory_waits import Wait
from benchmarks.designs.timers import CallAt, TickerWheel, TimerAlternative
from benchmarks.harness.benchmark import Parts, Sample, Setting, Table, benchmark, medians, spreads
from benchmarks.harness.event_loop import CollectorSetting, run, turns
from purgatory.reaper import reap

# Timeouts, or heartbeats, in one turn of the loop.
BATCH = 1_000
# Seconds: nothing is due before the measurement is over, and few are due at the same time.
SHORTEST, LONGEST = 60.0, 120.0
FULL = (100_000, 10_000, 1_000_000)


class Timeout(purgatory.TimerTask):
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


# Purgatory comes first: the others are set in relation to it.
TIMERS: tuple[type[TimerAlternative], ...] = (CoreTimer, SystemTimer, TickerWheel, CallAt)
RENEWED: tuple[type[TimerAlternative], ...] = (PurgatoryTimeouts, *TIMERS, AsyncioTimeouts)


@benchmark("timers", "timeouts added and cancelled while others are pending", (100_000, 10_000), FULL)
def timers(setting: Setting) -> Parts:
    """A timeout is withdrawn before it is due."""
    headline = setting.sizes[0]
    yield Table(
        "A timeout is added and cancelled while n others are pending: microseconds",
        setting.growth("us"),
        f"Processor time, the user's object included. {setting.times:,} timeouts, {BATCH:,} of "
        "them in each turn of the loop, cancelled in random order. Collector as the README advises.",
    )
    yield Table(
        f"The two halves, n = {headline:,}: microseconds each",
        spreads(headline, add_us="add", cancel_us="cancel, and clear away"),
    )
    yield from setting.sized(
        "timers", TIMERS, partial(run, setting.loop, add_and_cancel, setting.times), ["us"]
    )


@benchmark("sessions", "heartbeats of sessions, each of which renews a timeout", (100_000,), FULL)
def sessions(setting: Setting) -> Parts:
    headline = setting.sizes[0]
    yield Table(
        "A heartbeat of one of n sessions renews its timeout: microseconds",
        setting.growth("us"),
        f"Processor time. {setting.times:,} heartbeats, {BATCH:,} in each turn of the loop, "
        "each of a session drawn by lot. What cannot renew a timeout cancels it and adds another. "
        "Collector as the README advises.",
    )
    yield Table(
        f"The same, n = {headline:,}: how many heartbeats that makes per second",
        medians(headline, us="microseconds") + spreads(headline, per_second="per second"),
    )
    if setting.instructions:
        # Only the heartbeats grow.
        setting = replace(setting, sizes=(BATCH,))
    measured = partial(run, setting.loop, _renewed, setting.times)
    yield from setting.sized("renewed by heartbeats", RENEWED, measured, ["us"])


def _delays(choice: random.Random, count: int) -> list[float]:
    return [choice.uniform(SHORTEST, LONGEST) for _ in range(count)]


@asynccontextmanager
async def _pending(
    alternative_type: type[TimerAlternative], delays: Sequence[float]
) -> AsyncIterator[TimerAlternative]:
    """An alternative with these timeouts. Raises AssertionError if one of its timeouts expires meanwhile."""
    tally = Tally()
    async with alternative_type(tally) as alternative:
        with CollectorSetting.ADVISED.applied():
            alternative.add_all(delays)
            await turns(2)
            # The collector has seen them before, as it has those of a service that runs for a while.
            gc.collect()
            yield alternative
    if tally.expired:
        raise AssertionError(f"{alternative.name}: {tally.expired} timeouts expired that were not due")


async def add_and_cancel(times: int, alternative_type: type[TimerAlternative], pending: int) -> Sample:
    """Microseconds to add a timeout and to cancel it, with so many pending."""
    timeouts = -(-times // BATCH) * BATCH
    choice = random.Random(1)
    adding = cancelling = 0.0
    async with _pending(alternative_type, _delays(choice, pending)) as alternative:
        for first in range(pending, pending + timeouts, BATCH):
            delays = _delays(choice, BATCH)
            requests = choice.sample(range(first, first + BATCH), BATCH)
            start = time.process_time()
            alternative.add_all(delays)
            added = time.process_time()
            alternative.cancel_all(requests)
            await turns(1)
            adding += added - start
            cancelling += time.process_time() - added
    return {
        "us": (adding + cancelling) / timeouts * 1e6,
        "add_us": adding / timeouts * 1e6,
        "cancel_us": cancelling / timeouts * 1e6,
    }


async def _renewed(times: int, alternative_type: type[TimerAlternative], pending: int) -> Sample:
    """Microseconds for each heartbeat of one of so many sessions, and heartbeats per second."""
    rounds = -(-times // BATCH)
    choice = random.Random(1)
    seconds = 0.0
    async with _pending(alternative_type, [SHORTEST] * pending) as alternative:
        for _ in range(rounds):
            requests = choice.choices(range(pending), k=BATCH)
            start = time.process_time()
            alternative.renew_all(requests, SHORTEST)
            await turns(1)
            seconds += time.process_time() - start
    heartbeats = rounds * BATCH
    return {"us": seconds / heartbeats * 1e6, "per_second": heartbeats / seconds}
