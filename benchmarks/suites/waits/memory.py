"""The bytes that a pending wait holds.

There are two methods:

- ``allocated``: tracemalloc hooks Python's allocators, so it sees every allocation made through them with
  its exact size: objects with the collector's header, dict tables, and the allocations of extensions, among
  them the compiled core, asyncio's C futures and tasks and uvloop's timers. The result is the same each time,
  so it is the one to quote. (`sys.getsizeof` would miss the objects that an object refers to.)
- ``resident``: the growth of the process's resident set. It has everything that the first method cannot see,
  such as rounding up to 16 bytes, pages used in part, and plain malloc; and some noise. A cross-check.

Each has a process of its own: a second count would miss the memory that the first has left to be used again.

The requests, keys and targets that waits refer to are made before the count begins. Dicts and lists grow in
steps, so the figures hold for this number of waits.
"""

from __future__ import annotations

import gc
import multiprocessing
import tracemalloc
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

from benchmarks.designs.alternative import WAITS_PER_KEY, Style, WaitAlternative
from benchmarks.harness import processes
from benchmarks.harness.benchmark import Parts, Sample, Setting, Table, benchmark, spreads
from benchmarks.harness.event_loop import run
from benchmarks.suites.waits.park_and_complete import ONE_KEY, THREE_KEYS, park_and_complete

# Enough that every dict that the interpreter and the loop keep for themselves exists before the count begins.
REHEARSAL = 100


# One repetition: the count that matters does not vary.
@benchmark("memory", "bytes per pending wait", (10_000,), time_limit=0.0)
def memory(setting: Setting) -> Parts:
    size = setting.sizes[0]
    yield Table(
        "Bytes per pending wait, the user's own object included",
        spreads(allocated="allocated", resident="resident set"),
        f"{size:,} waits, {WAITS_PER_KEY} per key. Allocated: what tracemalloc counts; always "
        "the same. Resident set: what the process grows by, as a cross-check.",
    )
    for keys, section, alternatives in ((1, "one key", ONE_KEY), (3, "three keys", THREE_KEYS)):
        for style in Style:
            yield from setting.cases(
                f"{section}, {style.value}",
                [each for each in alternatives if each.style is style],
                partial(measure, setting.loop, size, keys),
                interpreted=style is Style.CALLBACK,
            )


def measure(loop: str, size: int, keys: int, alternative: type[WaitAlternative]) -> Sample:
    """Bytes of each of so many waits, by both methods; by the second one where there is a /proc."""
    tracemalloc.start()
    try:
        sample = {"allocated": count(loop, alternative, size, keys, allocated)}
    finally:
        tracemalloc.stop()
    if processes.AVAILABLE:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            sample["resident"] = pool.apply(count, (loop, alternative, size, keys, resident))
    return sample


def allocated() -> int:
    """Bytes that Python's allocators have given out since tracemalloc was started."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    return processes.resident_bytes("self")


def count(
    loop: str, alternative: type[WaitAlternative], size: int, keys: int, method: Callable[[], int]
) -> float:
    """Bytes of each of so many waits by one method, which is the first to count in this process."""
    for waits in (REHEARSAL, size):
        before, parked, _ = run(loop, park_and_complete, alternative, waits, keys, method, nullcontext())
    return (parked - before) / size
