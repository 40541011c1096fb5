"""The length of a watch list's chunks that measures best.

A key's watch list is a chain of short lists. Long ones cost less memory per operation, short ones less
searching when an operation leaves from within. The length is a constant of the core, which only the
interpreted build looks up at run time; so this measures that build. For the compiled core, build it once for
each length and run ``python -m benchmarks waits --only growth one-key``.
"""

import random
import time
import tracemalloc
from functools import partial
from itertools import product
from unittest.mock import patch

import purgatory._core.watch_list
from benchmarks.designs.alternative import TIMEOUT, Tally
from benchmarks.designs.purgatory_waits import CountedWait
from benchmarks.harness.benchmark import Case, Parts, Sample, Setting, Table, benchmark, medians, spreads
from benchmarks.harness.event_loop import CollectorSetting, run
from purgatory import Purgatory

# The default comes first: the others are set in relation to it.
LENGTHS = (16, 4, 8, 32, 64)
DENSITIES = {"one wait per key": 1, "10 waits per key": 10, "1,000 waits per key": 1_000}


@benchmark("watch-lists", "lengths of a watch list's chunks", (50_000,), time_limit=60.0)
def watch_lists(setting: Setting) -> Parts:
    """The first size is the number of operations."""
    waits = setting.sizes[0]
    yield Table(
        "Watching a key in chunks: microseconds, and bytes, per operation",
        spreads(in_order_us="in order", in_random_order_us="in random order") + medians(bytes="bytes"),
        f"{waits:,} operations parked, then completed: by checks in order of arrival, or one by "
        "one in random order. Collector off.",
    )
    for (section, per_key), length in product(DENSITIES.items(), LENGTHS):
        measured = partial(measure, waits, -(-waits // per_key), length)
        yield Case(section, f"chunks of {length}", measured, "interpreted")


def measure(waits: int, keys: int, length: int) -> Sample:
    """Microseconds to park and complete an operation, in both orders; bytes of a pending one."""
    with patch.object(purgatory._core.watch_list, "CHUNK_LENGTH", length), CollectorSetting.OFF.applied():
        return {
            "in_order_us": run("asyncio", _microseconds, waits, keys, False),
            "in_random_order_us": run("asyncio", _microseconds, waits, keys, True),
            "bytes": run("asyncio", _bytes, waits, keys),
        }


def _park(held: Purgatory, waits: int, keys: int, tally: Tally) -> list[CountedWait]:
    watch = held.try_complete_else_watch
    return [watch(CountedWait(TIMEOUT, wait, tally), (wait % keys,)) for wait in range(waits)]


async def _microseconds(waits: int, keys: int, shuffled: bool) -> float:
    tally = Tally()
    async with Purgatory() as held:
        start = time.process_time()
        operations = _park(held, waits, keys, tally)
        parking = time.process_time() - start
        if shuffled:
            random.Random(1).shuffle(operations)
        tally.ready = True
        start = time.process_time()
        if shuffled:
            for operation in operations:
                operation.force_complete()
        else:
            for key in range(keys):
                held.check_and_complete(key)
        seconds = parking + time.process_time() - start
    if tally.completed != waits:
        raise AssertionError(f"{tally.completed} of {waits} operations completed")
    return seconds / waits * 1e6


async def _bytes(waits: int, keys: int) -> float:
    async with Purgatory() as held:
        tracemalloc.start()
        try:
            # Without the list of them, which is the benchmark's.
            _park(held, waits, keys, Tally()).clear()
            return tracemalloc.get_traced_memory()[0] / waits
        finally:
            tracemalloc.stop()
            for key in range(keys):
                held.cancel_for_key(key)
