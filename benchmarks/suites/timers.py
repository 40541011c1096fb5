"""Timers alone: timeouts that are cancelled, renewed, or wait while nothing is due."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from benchmarks.designs.alternative import Tally
from benchmarks.designs.timeouts import RENEWED, TIMERS
from benchmarks.designs.timers import TimerAlternative
from benchmarks.harness.benchmark import Parts, Sample, Setting, Table, benchmark, medians, spreads
from benchmarks.harness.event_loop import CollectorSetting, run, turns

# Timeouts, or heartbeats, in one turn of the loop.
BATCH = 1_000
# Seconds: nothing is due before the measurement is over, and few are due at the same time.
SHORTEST, LONGEST = 60.0, 120.0
FULL = (100_000, 10_000, 1_000_000)


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
    yield from setting.sized("timers", TIMERS, partial(run, setting.loop, _cancelled, setting.times), ["us"])


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
    measured = partial(run, setting.loop, _renewed, setting.times)
    yield from setting.sized("renewed by heartbeats", RENEWED, measured, ["us"])


# One repetition: the counts do not vary.
@benchmark("idle", "wake-ups while nothing is due", (100_000,), time_limit=0.0)
def idle(setting: Setting) -> Parts:
    """With timeouts pending, and with none."""
    size = setting.sizes[0]
    yield Table(
        "Nothing is due: wake-ups in a second, and processor time",
        medians(0, wakeups="none pending")
        + medians(size, wakeups=f"{size:,} pending")
        + medians(0, busy_ms="none: ms")
        + medians(size, busy_ms=f"{size:,}: ms"),
        "Timeouts of one to two minutes. The process that sleeps uses some processor time, too.",
    )
    measured = partial(run, setting.loop, _watched, setting.seconds)
    pending = replace(setting, sizes=(0, size))
    yield from pending.sized("nothing due", TIMERS, measured, [], interpreted=False)


BENCHMARKS = (timers, sessions, idle)


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


async def _cancelled(times: int, alternative_type: type[TimerAlternative], pending: int) -> Sample:
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


async def _watched(seconds: float, alternative_type: type[TimerAlternative], pending: int) -> Sample:
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
