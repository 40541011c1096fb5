"""The work of a timer while nothing is due."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Sequence

from benchmarks.designs.alternative import Tally
from benchmarks.designs.timer import TimerAlternative
from benchmarks.harness.benchmark import Benchmark, Sample, Table, medians
from benchmarks.harness.event_loop import run, turns
from benchmarks.harness.setting import Setting
from benchmarks.harness.sizes import at
from benchmarks.suites.timers.alternatives import TIMERS
from benchmarks.suites.timers.timers import LONGEST, SHORTEST


def idle(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Wake-ups, with the first of `sizes` pending, and with nothing."""
    size = sizes[0]

    def measured(alternative: type[TimerAlternative]) -> Sample:
        return measure(setting.loop, alternative, size, setting.seconds)

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


def measure(loop: str, alternative: type[TimerAlternative], pending: int, seconds: float) -> Sample:
    """Wake-ups, and milliseconds of processor time, per second, with nothing and with so many pending."""
    return {
        at(metric, size): figure
        for size in (0, pending)
        for metric, figure in run(loop, _watched(alternative, size, seconds)).items()
    }


async def _watched(alternative_type: type[TimerAlternative], pending: int, seconds: float) -> Sample:
    choice = random.Random(1)
    async with alternative_type(Tally()) as alternative:
        alternative.add_all([choice.uniform(SHORTEST, LONGEST) for _ in range(pending)])
        # Until the timer is at rest.
        await turns(3)
        gc.collect()
        wakeups, busy = alternative.wakeups, time.process_time()
        await asyncio.sleep(seconds)
        return {
            "wakeups": (alternative.wakeups - wakeups) / seconds,
            "busy_ms": (time.process_time() - busy) / seconds * 1e3,
        }
