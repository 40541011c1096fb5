"""The cost to park a wait and to complete it, including the creation of the user's own object."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import repeat

from benchmarks.designs import OLDER_DESIGNS, callbacks, tasks
from benchmarks.designs.alternative import (
    TIMEOUT,
    TURNS_TO_COMPLETE,
    TURNS_TO_PARK,
    WAITS_PER_KEY,
    Style,
    Tally,
    WaitAlternative,
    signals,
    targets,
)
from benchmarks.designs.purgatory_waits import OperationsAlone, PurgatoryCallback, PurgatoryTask
from benchmarks.harness.benchmark import Benchmark, Column, Sample, Table
from benchmarks.harness.event_loop import CollectorSetting, run, turns
from benchmarks.harness.setting import Setting
from benchmarks.harness.sizes import at, measure_sizes, size_columns

# Purgatory comes first: the others are set in relation to it.
ONE_KEY: tuple[type[WaitAlternative], ...] = (
    PurgatoryCallback, callbacks.FutureCallback, callbacks.TimedCallback, callbacks.BareCallback,
    OperationsAlone, *OLDER_DESIGNS,
    PurgatoryTask, tasks.CallLaterFuture, tasks.TimeoutFuture, tasks.WaitForEvent, tasks.MoveOnAfterEvent,
    tasks.BareFuture,
)  # fmt: skip
THREE_KEYS: tuple[type[WaitAlternative], ...] = (
    PurgatoryCallback, callbacks.SeveralKeysTimedCallback, *OLDER_DESIGNS,
    PurgatoryTask, tasks.SharedFuture, tasks.WaitFirstOfEvents, tasks.BareFuture,
)  # fmt: skip
# More tasks than these take minutes, and gigabytes, except with the alternatives that need the least.
MOST_TASKS = 100_000
CHEAPEST: tuple[type[WaitAlternative], ...] = (PurgatoryTask, tasks.CallLaterFuture, tasks.SharedFuture)


# By the number of keys.
WAITS = {
    1: ("one-key", "a wait on one key", "n waits on one key, parked and completed", ONE_KEY),
    3: (
        "three-keys",
        "a wait on the first of three keys",
        "n waits on three keys, one of which is signalled",
        THREE_KEYS,
    ),
}


def parking(keys: int, setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """`sizes` of waits on the first of so many keys."""
    name, wait, waits, alternatives = WAITS[keys]

    def measured(collector: CollectorSetting, alternative: type[WaitAlternative]) -> Sample:
        limited = alternative.style is Style.AWAITED and alternative not in CHEAPEST
        return measure_sizes(
            # With the other settings, one size shows the collector's part.
            sizes if collector is CollectorSetting.ADVISED else sizes[:1],
            lambda size: run(setting.loop, measure(alternative, size, keys, collector)),
            growing=("total_us",),
            at_least=setting.times // 5,
            at_most=MOST_TASKS if limited else None,
        )

    headline = sizes[0]
    return Benchmark(
        name=name,
        summary=f"cost to park and complete {wait}",
        cases=tuple(
            case
            for style in Style
            for collector in (CollectorSetting if setting.full else (CollectorSetting.ADVISED,))
            for case in setting.cases_of(
                f"{style.value}, {collector.value}",
                [each for each in alternatives if each.style is style],
                partial(measured, collector),
                interpreted=style is Style.CALLBACK,
            )
        ),
        tables=(
            Table(
                f"{waits}: microseconds each",
                size_columns("total_us", sizes),
                f"Processor time; {WAITS_PER_KEY} waits per key, timeout {TIMEOUT:.0f} s. Includes making "
                "the user's object, waking tasks, leaving all keys, clearing cancelled timers; not what a "
                "design puts off, such as a purge (see steady-state). Slow cases are measured fewer times. "
                "The collector as the README advises: raised thresholds, and gc.freeze() after start-up.",
            ),
            Table(
                f"The two halves, n = {headline:,}: microseconds each",
                (Column(at("park_us", headline), "park"), Column(at("complete_us", headline), "complete")),
            ),
        ),
        time_limit=20.0,
    )


async def measure(
    alternative: type[WaitAlternative], size: int, keys: int, collector: CollectorSetting
) -> Sample:
    """Microseconds for each of `size` waits on so many keys, one of which is signalled.

    Of processor time: nothing here sleeps, and the time of other processes is not the alternative's.
    """
    start, parked, completed = await park_and_complete(
        alternative, size, keys, time.process_time, collector.applied()
    )
    return {
        "park_us": (parked - start) / size * 1e6,
        "complete_us": (completed - parked) / size * 1e6,
        "total_us": (completed - start) / size * 1e6,
    }


async def park_and_complete(
    alternative_type: type[WaitAlternative],
    size: int,
    keys: int,
    read: Callable[[], float],
    collector: AbstractContextManager[object],
) -> tuple[float, float, float]:
    """What `read` reads before so many waits are parked, when all are parked, and when all have completed."""
    tally = Tally()
    requests, waited_for, signalled = list(range(size)), targets(size, keys), signals(size, keys)
    async with alternative_type(tally) as alternative:
        with collector:
            start = read()
            alternative.park(requests, waited_for, repeat(TIMEOUT))
            await turns(TURNS_TO_PARK)
            parked = read()
            tally.ready = True
            alternative.signal(signalled)
            await turns(TURNS_TO_COMPLETE)
            completed = read()
    tally.expect(alternative, completed=size)
    return start, parked, completed
