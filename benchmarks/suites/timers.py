"""Timers alone: timeouts that are cancelled, renewed, or wait while nothing is due."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from benchmarks.designs.alternative import Tally
from benchmarks.designs.timeouts import RENEWED, TIMERS, AsyncioTimeouts
from benchmarks.designs.timer import TimerAlternative
from benchmarks.harness.benchmark import Benchmark, Column, Sample, Table, medians
from benchmarks.harness.event_loop import CollectorSetting, run, turns
from benchmarks.harness.setting import Entry, Setting
from benchmarks.harness.sizes import at, measure_sizes, size_columns

# Timeouts, or heartbeats, in one turn of the loop.
BATCH = 1_000
# Seconds: nothing is due before the measurement is over, and few are due at the same time.
SHORTEST, LONGEST = 60.0, 120.0
# More tasks take too long, and too much memory.
MOST_TASKS = 100_000


def timers(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """A timeout is withdrawn before it is due, with `sizes` of others pending."""

    def measured(alternative: type[TimerAlternative]) -> Sample:
        return measure_sizes(
            sizes,
            lambda size: run(setting.loop, _cancelled(alternative, size, setting.times)),
            growing=("us",),
        )

    headline = sizes[0]
    return Benchmark(
        name="timers",
        summary="timeouts added and cancelled while others are pending",
        cases=setting.cases_of("timers", TIMERS, measured, interpreted=True),
        tables=(
            Table(
                "A timeout is added and cancelled while n others are pending: microseconds",
                size_columns("us", sizes),
                f"Processor time, the user's object included. {setting.times:,} timeouts, {BATCH:,} of "
                "them in each turn of the loop, cancelled in random order. Collector as the README advises.",
            ),
            Table(
                f"The two halves, n = {headline:,}: microseconds each",
                (
                    Column(at("add_us", headline), "add"),
                    Column(at("cancel_us", headline), "cancel, and clear away"),
                ),
            ),
        ),
        time_limit=20.0,
    )


def sessions(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Heartbeats of `sizes` of sessions: each one renews the timeout of its session."""

    def measured(alternative: type[TimerAlternative]) -> Sample:
        return measure_sizes(
            sizes,
            lambda size: run(setting.loop, _renewed(alternative, size, setting.times)),
            growing=("us",),
            at_most=MOST_TASKS if alternative is AsyncioTimeouts else None,
        )

    headline = sizes[0]
    return Benchmark(
        name="sessions",
        summary="heartbeats of sessions, each of which renews a timeout",
        cases=setting.cases_of("renewed by heartbeats", RENEWED, measured, interpreted=True),
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


def idle(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Wake-ups while nothing is due, with the first of `sizes` pending, and with nothing."""
    size = sizes[0]

    def measured(alternative: type[TimerAlternative]) -> Sample:
        return {
            at(metric, pending): figure
            for pending in (0, size)
            for metric, figure in run(setting.loop, _watched(alternative, pending, setting.seconds)).items()
        }

    wakeups = {at("wakeups", 0): "none pending", at("wakeups", size): f"{size:,} pending"}
    busy = {at("busy_ms", 0): "none: ms", at("busy_ms", size): f"{size:,}: ms"}
    return Benchmark(
        name="idle",
        summary="wake-ups while nothing is due",
        cases=setting.cases_of("nothing due", TIMERS, measured),
        tables=(
            Table(
                "Nothing is due: wake-ups in a second, and processor time",
                medians(**wakeups, **busy),
                "Timeouts of one to two minutes. The process that sleeps uses some processor time, too.",
            ),
        ),
        # One repetition: the counts do not vary.
        time_limit=0.0,
    )


BENCHMARKS = {
    "timers": Entry(timers, (100_000, 10_000), (100_000, 10_000, 1_000_000)),
    "sessions": Entry(sessions, (100_000,), (100_000, 10_000, 1_000_000)),
    "idle": Entry(idle, (100_000,), (100_000,)),
}


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


async def _cancelled(alternative_type: type[TimerAlternative], pending: int, times: int) -> Sample:
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


async def _renewed(alternative_type: type[TimerAlternative], pending: int, times: int) -> Sample:
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


async def _watched(alternative_type: type[TimerAlternative], pending: int, seconds: float) -> Sample:
    """Wake-ups, and milliseconds of processor time, per second, with so many pending."""
    async with alternative_type(Tally()) as alternative:
        alternative.add_all(_delays(random.Random(1), pending))
        # Until the timer is at rest.
        await turns(3)
        gc.collect()
        wakeups, busy = alternative.wakeups, time.process_time()
        await asyncio.sleep(seconds)
        return {
            "wakeups": (alternative.wakeups - wakeups) / seconds,
            "busy_ms": (time.process_time() - busy) / seconds * 1e3,
        }
