"""The cost of a view of the dashboard, and of a search, for the loop.

A view is one snapshot, in JSON. A search looks for operations by the name of their class. However many
operations are pending, both look at a bounded number of them; the time depends on whether they are many on
one key or on many, and on where in memory they are.
"""

import gc
import random
import time
from collections.abc import Callable, Hashable
from functools import partial

from benchmarks.harness.benchmark import Case, Parts, Sample, Setting, Table, benchmark, medians, spreads
from purgatory import DelayedOperation
from purgatory.testing import ManualClock
from purgatory.web.dashboard.recorder import WINDOW
from purgatory.web.dashboard.search import Search
from purgatory.web.dashboard.shown import Shown
from purgatory.web.dashboard.snapshot import take_snapshot


class Wait(DelayedOperation[None]):
    """The smallest operation that a user can write. Nothing completes it."""

    __slots__ = ()

    def try_complete(self) -> bool:
        return False


VIEWS = 50
TIMEOUTS = (1.0, 5.0, 30.0, 30.0, 60.0, 600.0)
# The key of each operation, by its number.
SHAPES: dict[str, Callable[[random.Random, int], Hashable]] = {
    "each on a key of its own": lambda choice, number: number,
    "a hundred on each key": lambda choice, number: number // 100,
    "a few keys with most of them": lambda choice, number: int(choice.paretovariate(0.5)),
    "all on one key": lambda choice, number: "key",
}


@benchmark("dashboard", "cost of a view", (1_000_000,), time_limit=120.0)
def dashboard(setting: Setting) -> Parts:
    """The first size is the number of pending operations."""
    pending = setting.sizes[0]
    yield Table(
        f"A view of {pending:,} pending operations",
        spreads(median_ms="ms") + medians(worst_ms=f"worst of {VIEWS}", search_ms="a search", bytes="bytes"),
        "Processor time of the loop's thread.",
    )
    for shape, keys in SHAPES.items():
        yield Case("operations", shape, partial(measure, keys, pending), setting.builds[0])


def measure(keys: Callable[[random.Random, int], Hashable], pending: int) -> Sample:
    """Milliseconds for each of VIEWS."""
    choice, clock = random.Random(1), ManualClock()
    purgatory = clock.purgatory()
    shown = Shown(purgatory)
    for number in range(pending):
        operation = Wait(choice.choice(TIMEOUTS))
        purgatory.try_complete_else_watch(operation, (keys(choice, number),))
    gc.collect()
    search = Search(name="wait")
    views, searches = [], []
    size = 0
    for _ in range(VIEWS):
        # Nothing becomes due by this.
        clock.advance(0.9 / VIEWS)
        start = time.thread_time()
        snapshot = take_snapshot(1, clock.time(), [shown], shown, [0.0] * WINDOW)
        size = len(snapshot.encoded())
        views.append((time.thread_time() - start) * 1e3)
        start = time.thread_time()
        search.run(purgatory, shown.recorder, clock.time())
        searches.append((time.thread_time() - start) * 1e3)
    for left in purgatory.operations():
        left.cancel()
    views.sort()
    searches.sort()
    return {
        "median_ms": views[VIEWS // 2],
        "worst_ms": views[-1],
        "search_ms": searches[VIEWS // 2],
        "bytes": size,
    }
