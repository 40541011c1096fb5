"""A timeout that is withdrawn before it is due, while many others are pending."""

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
from benchmarks.suites.timers.alternatives import TIMERS

# Timeouts in one turn of the loop.
BATCH = 1_000
# Seconds: nothing is due before the measurement is over, and few are due at the same time.
SHORTEST, LONGEST = 60.0, 120.0


def timers(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Timeouts with `sizes` of others pending."""

    def measured(alternative: type[TimerAlternative]) -> Sample:
        return measure_sizes(
            sizes, lambda size: run(setting.loop, measure(alternative, size, setting.times)), growing=("us",)
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


async def measure(alternative_type: type[TimerAlternative], pending: int, times: int) -> Sample:
    """Microseconds to add a timeout and to cancel it, with so many pending."""
    rounds = -(-times // BATCH)
    choice = random.Random(1)
    adding = cancelling = 0.0
    tally = Tally()
    async with alternative_type(tally) as alternative:
        with CollectorSetting.ADVISED.applied():
            alternative.add_all([choice.uniform(SHORTEST, LONGEST) for _ in range(pending)])
            await turns(1)
            # The collector has seen them before, as it has those of a service that runs for a while.
            gc.collect()
            for first in range(pending, pending + rounds * BATCH, BATCH):
                delays = [choice.uniform(SHORTEST, LONGEST) for _ in range(BATCH)]
                requests = choice.sample(range(first, first + BATCH), BATCH)
                start = time.process_time()
                alternative.add_all(delays)
                added = time.process_time()
                alternative.cancel_all(requests)
                await turns(1)
                adding += added - start
                cancelling += time.process_time() - added
    if tally.expired:
        raise AssertionError(f"{alternative.name}: {tally.expired} timeouts expired that were not due")
    timeouts = rounds * BATCH
    return {
        "us": (adding + cancelling) / timeouts * 1e6,
        "add_us": adding / timeouts * 1e6,
        "cancel_us": cancelling / timeouts * 1e6,
    }
