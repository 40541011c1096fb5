"""How many bytes a pending wait holds.

There are two methods:

- ``allocated``: tracemalloc hooks Python's allocators, so it sees every allocation made through them with
  its exact size: objects with the collector's header, dict tables, and what extensions allocate that
  way, among them the compiled core, asyncio's C futures and tasks and uvloop's timers. The result is the
  same each time, so it is the one to quote. (`sys.getsizeof` would miss what an object refers to.)
- ``resident``: by how much the resident set of the process grows. It has all that the first cannot see,
  such as rounding up to 16 bytes, pages used in part, and plain malloc; and some noise. A cross-check.

Each has a process of its own, because a second count would miss what the first has left to be used again.

The requests, keys and targets that waits refer to are made before the count begins. Dicts and lists grow in
steps, so the figures hold for this number of waits.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import repeat
from pathlib import Path

from benchmarks.constructs import (
    ONE_KEY_AWAITED,
    ONE_KEY_CALLBACK,
    SEVERAL_KEYS_AWAITED,
    SEVERAL_KEYS_CALLBACK,
    TIMEOUT,
    Construct,
    Style,
    Tally,
)
from benchmarks.loops import run, turns
from benchmarks.question import Column, Question, Sample, Table
from benchmarks.setting import Setting
from benchmarks.waits import TURNS_TO_COMPLETE, TURNS_TO_PARK, WAITS_PER_KEY, signals, targets

# Where Linux tells how many pages are resident.
STATM = Path("/proc/self/statm")

# Enough that every dict the interpreter and the loop keep for themselves exists before the count begins.
REHEARSAL = 100

# The heading of the section, how many keys a wait has, and who is measured.
SECTIONS: tuple[tuple[str, int, tuple[type[Construct], ...]], ...] = (
    ("one key, callback style", 1, ONE_KEY_CALLBACK),
    ("one key, awaited in tasks", 1, ONE_KEY_AWAITED),
    ("three keys, callback style", 3, SEVERAL_KEYS_CALLBACK),
    ("three keys, awaited in tasks", 3, SEVERAL_KEYS_AWAITED),
)


def memory(setting: Setting, numbers: Sequence[int]) -> Question:
    """The question, with the first of `numbers` pending."""
    number = numbers[0]

    def measured(construct: type[Construct], keys: int) -> Callable[[], Sample]:
        return lambda: measure(setting.loop, construct, number, keys)

    return Question(
        name="memory",
        summary="bytes per pending wait",
        contenders=tuple(
            contender
            for section, keys, constructs in SECTIONS
            for construct in constructs
            for contender in setting.contenders(
                section,
                construct.name,
                measured(construct, keys),
                interpreted=construct.style is Style.CALLBACK,
            )
        ),
        tables=(
            Table(
                title="Bytes per pending wait, the user's own object included",
                columns=(Column("allocated", "allocated"), Column("resident", "resident set")),
                note=f"{number:,} waits, {WAITS_PER_KEY} per key. Allocated: what tracemalloc counts; always "
                "the same. Resident set: what the process grows by, as a cross-check.",
            ),
        ),
        # Once: the count that matters does not vary.
        patience=0.0,
    )


def measure(loop: str, construct: type[Construct], number: int, keys: int) -> Sample:
    """Bytes of each of so many waits, by both methods; the second one where there is a /proc."""
    sample = {"allocated": count(loop, construct, number, keys, allocated)}
    if STATM.exists():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            sample["resident"] = pool.apply(count, (loop, construct, number, keys, resident))
    return sample


def allocated() -> int:
    """Bytes that Python's allocators have given out since tracemalloc was started."""
    return tracemalloc.get_traced_memory()[0]


def resident() -> int:
    """Bytes of the process that are in memory."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def count(loop: str, construct: type[Construct], number: int, keys: int, method: Callable[[], int]) -> float:
    """Bytes of each of so many waits by one method, which is the first to count in this process."""
    if method is allocated:
        tracemalloc.start()
    try:
        run(loop, _bytes(construct, REHEARSAL, keys, method))
        return run(loop, _bytes(construct, number, keys, method)) / number
    finally:
        tracemalloc.stop()


async def _bytes(construct_type: type[Construct], number: int, keys: int, method: Callable[[], int]) -> int:
    tally = Tally()
    requests, watched, signalled = list(range(number)), targets(number, keys), signals(number, keys)
    async with construct_type(tally) as construct:
        gc.collect()
        before = method()
        construct.park(requests, watched, repeat(TIMEOUT))
        await turns(TURNS_TO_PARK)
        gc.collect()
        used = method() - before
        tally.ready = True
        construct.signal(signalled)
        await turns(TURNS_TO_COMPLETE)
    if tally.completed != number:
        raise AssertionError(f"{construct.name}: {tally.completed} of {number} waits were pending")
    return used
