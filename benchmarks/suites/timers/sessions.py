"""Heartbeats: each one renews the timeout of its session."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Sequence

from benchmarks.designs.alternative import Tally
from benchmarks.designs.timer import TimerAlternative
from benchmarks.harness.benchmark import Benchmark, Column, Sample, Table
from benchmarks.harness.event_loop import CollectorSetting, run, turns
from benchmarks.harness.setting import Setting
from benchmarks.harness.sizes import at, measure_sizes, size_columns
from benchmarks.suites.timers.alternatives import RENEWED, AsyncioTimeouts

# Heartbeats in one turn of the loop.
BATCH = 1_000
TIMEOUT = 60.0
# More tasks take too long, and too much memory.
MOST_TASKS = 100_000


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


async def measure(alternative_type: type[TimerAlternative], pending: int, times: int) -> Sample:
    """Microseconds for each heartbeat of one of so many sessions, and heartbeats per second."""
    rounds = -(-times // BATCH)
    choice = random.Random(1)
    seconds = 0.0
    tally = Tally()
    async with alternative_type(tally) as alternative:
        with CollectorSetting.ADVISED.applied():
            alternative.add_all([TIMEOUT] * pending)
            await turns(2)
            # The collector has seen them before, as it has those of a service that runs for a while.
            gc.collect()
            for _ in range(rounds):
                requests = choice.choices(range(pending), k=BATCH)
                start = time.process_time()
                alternative.renew_all(requests, TIMEOUT)
                await turns(1)
                seconds += time.process_time() - start
    if tally.expired:
        raise AssertionError(f"{alternative.name}: {tally.expired} sessions expired that were alive")
    heartbeats = rounds * BATCH
    return {"us": seconds / heartbeats * 1e6, "per_second": heartbeats / seconds}
