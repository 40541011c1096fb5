"""The garbage collector's part of parking, with its default thresholds and as the README advises.

Operations are freed by reference count; the collector only looks through those that wait, again and again
as more are parked. The README's advice on thresholds comes from these figures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from benchmarks.harness.benchmark import Benchmark, Case, Sample, Table
from benchmarks.harness.event_loop import CollectorSetting, run
from benchmarks.harness.setting import Entry, Setting
from benchmarks.harness.sizes import measure_sizes, size_columns
from purgatory import DelayedOperation, Purgatory


class Wait(DelayedOperation[None]):
    """The smallest operation that a user can write. Nothing completes it."""

    __slots__ = ()

    def try_complete(self) -> bool:
        return False


def collector(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """`sizes` of operations, ten to a key, with a timeout of 30 s."""

    def measured(collector: CollectorSetting) -> Sample:
        with collector.applied():
            return measure_sizes(sizes, lambda size: run(setting.loop, _parked(size)), growing=())

    build = setting.builds[0]
    return Benchmark(
        name="collector",
        summary="the garbage collector's part of parking",
        cases=tuple(Case(build, each.value, partial(measured, each), build) for each in CollectorSetting),
        tables=(Table("Microseconds to park one of n operations", size_columns("us", sizes)),),
        time_limit=60.0,
    )


BENCHMARKS = {"collector": Entry(collector, (100_000,), (100_000, 1_000_000))}


async def _parked(size: int) -> Sample:
    async with Purgatory() as purgatory:
        begun = time.process_time()
        for count in range(size):
            purgatory.try_complete_else_watch(Wait(30.0), (count // 10,))
        spent = time.process_time() - begun
        await purgatory.aclose(cancel_pending=True)
    return {"us": spent / size * 1e6}
