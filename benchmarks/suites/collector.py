"""The garbage collector's part of parking, with its default thresholds and as the README advises.

Operations are freed by reference count; the collector only looks through those that wait, again and again
as more are parked. The README's advice on thresholds comes from these figures.
"""

import time
from functools import partial

from benchmarks.harness.benchmark import Case, Parts, Sample, Setting, Table, at_sizes, benchmark
from benchmarks.harness.event_loop import CollectorSetting, run
from purgatory import DelayedOperation, Purgatory


class Wait(DelayedOperation[None]):
    """The smallest operation that a user can write. Nothing completes it."""

    __slots__ = ()

    def try_complete(self) -> bool:
        return False


@benchmark("collector", "the garbage collector's part of parking", (100_000,), (100_000, 1_000_000), 60.0)
def collector(setting: Setting) -> Parts:
    """Operations, ten to a key, with a timeout of 30 s."""
    yield Table("Microseconds to park one of n operations", setting.growth("us"))
    build = setting.builds[0]
    for collector in CollectorSetting:
        yield Case(build, collector.value, partial(measure, setting, collector), build)


def measure(setting: Setting, collector: CollectorSetting) -> Sample:
    with collector.applied():
        return at_sizes(setting.sizes, partial(run, setting.loop, _parked))


async def _parked(size: int) -> Sample:
    async with Purgatory() as purgatory:
        begun = time.process_time()
        for count in range(size):
            purgatory.try_complete_else_watch(Wait(30.0), (count // 10,))
        spent = time.process_time() - begun
        await purgatory.aclose(cancel_pending=True)
    return {"us": spent / size * 1e6}
