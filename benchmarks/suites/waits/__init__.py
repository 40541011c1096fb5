"""Waits for keys or a timeout: purgatory beside asyncio, anyio, code by hand and older designs.

Here are the cost to park a wait and to complete it, and its bytes, the user's own object included.
`expiry` has the waits that time out.
"""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import product, repeat

from benchmarks.designs import OLDER_DESIGNS, callbacks, tasks
from benchmarks.designs.alternative import (
    AWAITED,
    CALLBACK,
    TIMEOUT,
    TURNS_TO_COMPLETE,
    TURNS_TO_PARK,
    WAITS_PER_KEY,
    RoundTrips,
    Tally,
    WaitAlternative,
    signals,
    targets,
)
from benchmarks.designs.purgatory_waits import OperationsAlone, PurgatoryCallback, PurgatoryTask, ValueTask
from benchmarks.harness.benchmark import Parts, Sample, Setting, Table, benchmark, medians, spreads
from benchmarks.harness.event_loop import CollectorSetting, run, turns
from benchmarks.suites.waits.expiry import expiry, one_instant

# Purgatory comes first: the others are set in relation to it.
ONE_KEY: tuple[type[WaitAlternative], ...] = (
    PurgatoryCallback, callbacks.FutureCallback, callbacks.TimedCallback, callbacks.BareCallback,
    OperationsAlone, *OLDER_DESIGNS,
    PurgatoryTask, ValueTask, tasks.CallLaterFuture, tasks.TimeoutFuture, tasks.WaitForEvent,
    tasks.MoveOnAfterEvent, tasks.BareFuture,
)  # fmt: skip
THREE_KEYS: tuple[type[WaitAlternative], ...] = (
    PurgatoryCallback, callbacks.SeveralKeysTimedCallback, *OLDER_DESIGNS,
    PurgatoryTask, tasks.SharedFuture, tasks.WaitFirstOfEvents, tasks.BareFuture,
)  # fmt: skip
ROUND_TRIPS = (PurgatoryCallback, callbacks.SeveralKeysTimedCallback, *OLDER_DESIGNS)
FULL = (100_000, 10_000, 1_000_000)
# The keys of a wait in the steady state, and the waits in one turn of the loop.
KEYS, BATCH = 3, 1_000
# Batches between two counts of the entries: designs that purge hold more and more in between.
COUNT_EVERY = 10
# Enough that every dict that the interpreter and the loop keep for themselves exists before the count begins.
REHEARSAL = 100


@benchmark("one-key", "cost to park and complete a wait on one key", (100_000, 10_000), FULL)
def one_key(setting: Setting) -> Parts:
    return parking(setting, 1, "n waits on one key, parked and completed", ONE_KEY)


@benchmark("three-keys", "cost to park and complete a wait on the first of three keys", (100_000,), FULL)
def three_keys(setting: Setting) -> Parts:
    return parking(setting, 3, "n waits on three keys, one of which is signalled", THREE_KEYS)


def parking(setting: Setting, keys: int, waits: str, alternatives: Sequence[type[WaitAlternative]]) -> Parts:
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
    for style, collector in product((CALLBACK, AWAITED), CollectorSetting if setting.full else (advised,)):
        # With the other settings, one size shows the collector's part.
        shown = setting if collector is advised else replace(setting, sizes=setting.sizes[:1])
        yield from shown.sized(
            f"{style}, {collector.value}",
            [each for each in alternatives if each.style == style],
            partial(run, setting.loop, measure, keys, collector),
            ["total_us"],
            at_least=setting.times // 5,
            interpreted=style == CALLBACK,
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


@benchmark("steady-state", "round trips with as many completed as parked", (1_000,), (1_000, 10_000, 100_000))
def steady_state(setting: Setting) -> Parts:
    headline = setting.sizes[0]
    # Enough that designs which purge now and then have done so.
    round_trips = 2 * setting.times
    yield Table(
        "A wait on three keys is parked, the oldest of n completed: microseconds",
        setting.growth("us"),
        f"Processor time of a round trip; {round_trips:,} of them, {BATCH:,} to a turn of the "
        "loop. Collector as the README advises.",
    )
    yield Table(
        f"The same with n = {headline:,}: what is done per second, and what is held",
        medians(headline, held="entries held") + spreads(headline, per_second="round trips/s"),
        "Entries are those of the watch lists, on average: three for each wait that is alive. "
        "The others are of waits that were completed and not purged yet.",
    )
    for section, checked in (
        ("one of its three keys is checked", 1),
        ("all of its three keys are checked", KEYS),
    ):
        measured = partial(run, setting.loop, turn_over, checked, round_trips)
        yield from setting.sized(section, ROUND_TRIPS, measured, ["us"])


async def turn_over(
    checked: int, round_trips: int, alternative_type: type[RoundTrips], outstanding: int
) -> Sample:
    """Microseconds for each round trip, with so many outstanding; round trips per second; entries held."""
    rounds = -(-round_trips // BATCH)
    # Keys are used again, as most keys are, but not while a wait watches them.
    batches = [
        [tuple(range(key, key + KEYS)) for key in range(first, first + KEYS * BATCH, KEYS)]
        for first in range(0, KEYS * (outstanding + 2 * BATCH), KEYS * BATCH)
    ]
    held = []
    seconds = 0.0
    async with alternative_type(Tally()) as alternative:
        with CollectorSetting.ADVISED.applied():
            # The rounds that fill the lists first are not counted.
            warm_up = range(-len(batches), 0)
            for number in (*warm_up, *range(rounds)):
                start = time.process_time()
                alternative.turn_over(batches[number % len(batches)], outstanding, checked)
                await turns(1)
                if number >= 0:
                    seconds += time.process_time() - start
                    if number % COUNT_EVERY == 0:
                        held.append(alternative.held)
    if min(held) < KEYS * outstanding:
        raise AssertionError(f"{alternative.name}: fewer than {outstanding} waits were outstanding")
    trips = rounds * BATCH
    return {"us": seconds / trips * 1e6, "per_second": trips / seconds, "held": statistics.fmean(held)}


# One repetition: the count that matters does not vary.
@benchmark("memory", "bytes per pending wait", (10_000,), time_limit=0.0)
def memory(setting: Setting) -> Parts:
    """The bytes that a pending wait holds, as tracemalloc counts them.

    It counts what is allocated through Python's allocators: objects with the collector's header, dict tables,
    the compiled core, C futures. The requests, keys and targets that waits refer to are made before the count
    begins. Dicts and lists grow in steps, so the figures hold for this number of waits.
    """
    size = setting.sizes[0]
    yield Table(
        "Bytes per pending wait, the user's own object included",
        spreads(allocated="allocated"),
        f"{size:,} waits, {WAITS_PER_KEY} per key. Allocated: what tracemalloc counts; always the same.",
    )
    for keys, section, alternatives in ((1, "one key", ONE_KEY), (3, "three keys", THREE_KEYS)):
        for style in (CALLBACK, AWAITED):
            yield from setting.cases(
                f"{section}, {style}",
                [each for each in alternatives if each.style == style],
                partial(measure_memory, setting.loop, size, keys),
                interpreted=style == CALLBACK,
            )


BENCHMARKS = (one_key, three_keys, steady_state, expiry, one_instant, memory)


def measure_memory(loop: str, size: int, keys: int, alternative: type[WaitAlternative]) -> Sample:
    """Bytes of each of so many waits."""
    tracemalloc.start()
    try:
        for waits in (REHEARSAL, size):
            before, parked, _ = run(
                loop, park_and_complete, alternative, waits, keys, allocated, nullcontext()
            )
    finally:
        tracemalloc.stop()
    return {"allocated": (parked - before) / size}


def allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
