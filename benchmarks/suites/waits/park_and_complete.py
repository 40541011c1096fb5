"""The cost to park a wait and to complete it, including the creation of the user's own object."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
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
from benchmarks.harness.benchmark import Benchmark, Case, Column, Sample, Table
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


def one_key(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """A wait on one key."""
    waits = "n waits on one key, parked and completed"
    return _benchmark("one-key", "a wait on one key", waits, setting, ONE_KEY, sizes, 1)


def three_keys(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """A wait on the first of three keys."""
    waits = "n waits on three keys, one of which is signalled"
    return _benchmark("three-keys", "a wait on the first of three keys", waits, setting, THREE_KEYS, sizes, 3)


def _benchmark(
    name: str,
    wait: str,
    waits: str,
    setting: Setting,
    alternatives: Sequence[type[WaitAlternative]],
    sizes: Sequence[int],
    keys: int,
) -> Benchmark:
    headline = sizes[0]
    return Benchmark(
        name=name,
        summary=f"cost to park and complete {wait}",
        cases=tuple(_cases(setting, alternatives, sizes, keys)),
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


def _cases(
    setting: Setting, alternatives: Sequence[type[WaitAlternative]], sizes: Sequence[int], keys: int
) -> Iterator[Case]:
    def measured(alternative: type[WaitAlternative], collector: CollectorSetting) -> Callable[[], Sample]:
        limited = alternative.style is Style.AWAITED and alternative not in CHEAPEST
        return lambda: measure_sizes(
            # With the other settings, one size shows the collector's part.
            sizes if collector is CollectorSetting.ADVISED else sizes[:1],
            lambda size: run(setting.loop, measure(alternative, size, keys, collector)),
            growing=("total_us",),
            at_least=setting.times // 5,
            at_most=MOST_TASKS if limited else None,
        )

    for style in Style:
        for collector in CollectorSetting if setting.full else (CollectorSetting.ADVISED,):
            section = f"{style.value}, {collector.value}"
            for each in (each for each in alternatives if each.style is style):
                both = style is Style.CALLBACK
                yield from setting.cases(section, each.name, measured(each, collector), interpreted=both)


async def measure(
    alternative_type: type[WaitAlternative], size: int, keys: int, collector: CollectorSetting
) -> Sample:
    """Microseconds for each of `size` waits on so many keys, one of which is signalled.

    Of processor time: nothing here sleeps, and the time of other processes is not the alternative's.
    """
    tally = Tally()
    requests, waited_for, signalled = list(range(size)), targets(size, keys), signals(size, keys)
    async with alternative_type(tally) as alternative:
        with collector.applied():
            start = time.process_time()
            alternative.park(requests, waited_for, repeat(TIMEOUT))
            await turns(TURNS_TO_PARK)
            parked = time.process_time()
            tally.ready = True
            alternative.signal(signalled)
            await turns(TURNS_TO_COMPLETE)
            completed = time.process_time()
    tally.expect(alternative, completed=size)
    return {
        "park_us": (parked - start) / size * 1e6,
        "complete_us": (completed - parked) / size * 1e6,
        "total_us": (completed - start) / size * 1e6,
    }
