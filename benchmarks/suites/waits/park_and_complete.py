"""The cost to park a wait and to complete it, including the creation of the user's own object."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import product, repeat

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
from benchmarks.harness.benchmark import Parts, Sample, Setting, Table, benchmark, spreads
from benchmarks.harness.event_loop import CollectorSetting, run, turns

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
FULL = (100_000, 10_000, 1_000_000)


@benchmark("one-key", "cost to park and complete a wait on one key", (100_000, 10_000), FULL)
def one_key(setting: Setting) -> Parts:
    return parking(setting, 1, "n waits on one key, parked and completed", ONE_KEY)


@benchmark("three-keys", "cost to park and complete a wait on the first of three keys", (100_000,), FULL)
def three_keys(setting: Setting) -> Parts:
    return parking(setting, 3, "n waits on three keys, one of which is signalled", THREE_KEYS)


def parking(setting: Setting, keys: int, waits: str, alternatives: Sequence[type[WaitAlternative]]) -> Parts:
    """The cases and tables for waits on the first of so many keys."""
    headline = setting.sizes[0]
    yield Table(
        f"{waits}: microseconds each",
        setting.growth("total_us"),
        f"Processor time; {WAITS_PER_KEY} waits per key, timeout {TIMEOUT:.0f} s. Includes making "
        "the user's object, waking tasks, leaving all keys, clearing cancelled timers; not what a "
        "design puts off, such as a purge (see steady-state). Slow cases are measured fewer times. "
        "The collector as the README advises: raised thresholds, and gc.freeze() after start-up.",
    )
    yield Table(
        f"The two halves, n = {headline:,}: microseconds each",
        spreads(headline, park_us="park", complete_us="complete"),
    )
    advised = CollectorSetting.ADVISED
    for style, collector in product(Style, CollectorSetting if setting.full else (advised,)):
        # With the other settings, one size shows the collector's part.
        shown = setting if collector is advised else replace(setting, sizes=setting.sizes[:1])
        yield from shown.sized(
            f"{style.value}, {collector.value}",
            [each for each in alternatives if each.style is style],
            partial(run, setting.loop, measure, keys, collector),
            ["total_us"],
            at_least=setting.times // 5,
            interpreted=style is Style.CALLBACK,
        )


async def measure(
    keys: int, collector: CollectorSetting, alternative: type[WaitAlternative], size: int
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
