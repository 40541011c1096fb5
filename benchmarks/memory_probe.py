"""Parks waits and prints how many bytes each holds. Run by `memory`, in a process of its own.

Alone in its process, because what an earlier measurement has freed would be used again and not be seen.
There are two methods:

- ``allocated``: tracemalloc hooks Python's allocators, so it sees every allocation made through them with
  its exact size: objects with the collector's header, dict tables, and what extensions allocate that
  way, among them the compiled core, asyncio's C futures and tasks and uvloop's timers. The result is the
  same each time, so it is the one to quote. (`sys.getsizeof` would miss what an object refers to.)
- ``resident``: by how much the resident set of the process grows. It has all that the first cannot see,
  such as rounding up to 16 bytes, pages used in part, and plain malloc; and some noise. A cross-check.

The requests, keys and targets that waits refer to are made before the count begins. Dicts and lists grow in
steps, so the figures hold for this number of waits.
"""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

from benchmarks.constructs import (
    ONE_KEY_AWAITED,
    ONE_KEY_CALLBACK,
    SEVERAL_KEYS_AWAITED,
    SEVERAL_KEYS_CALLBACK,
    Construct,
    Tally,
)
from benchmarks.loops import run, turns
from benchmarks.park_and_complete import TIMEOUT, TURNS_TO_PARK, one_key_targets, three_key_targets

WAITS = 10_000
# Enough that every dict the interpreter and the loop keep for themselves exists before the count begins.
REHEARSAL = 100

GROUPS: dict[str, tuple[type[Construct[Any]], ...]] = {
    "one key, callback style": ONE_KEY_CALLBACK,
    "one key, awaited in tasks": ONE_KEY_AWAITED,
    "three keys, callback style": SEVERAL_KEYS_CALLBACK,
    "three keys, awaited in tasks": SEVERAL_KEYS_AWAITED,
}


def allocated() -> int:
    """Bytes that Python's allocators have given out since tracemalloc was started."""
    return tracemalloc.get_traced_memory()[0]


def resident() -> int:
    """Bytes of the process that are in memory. Raises OSError where there is no /proc, as on macOS."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


METHODS: dict[str, Callable[[], int]] = {"allocated": allocated, "resident": resident}


async def bytes_per_wait(
    construct_type: type[Construct[Any]], targets: list[Any], method: Callable[[], int]
) -> float:
    """Park a wait for each target and see what has come up to."""
    await _park(construct_type, targets[:REHEARSAL], lambda: 0)
    return await _park(construct_type, targets, method) / len(targets)


async def _park(construct_type: type[Construct[Any]], targets: list[Any], method: Callable[[], int]) -> int:
    tally = Tally()
    requests = list(range(len(targets)))
    async with construct_type(tally) as construct:
        gc.collect()
        before = method()
        construct.park(requests, targets, repeat(TIMEOUT))
        await turns(TURNS_TO_PARK)
        gc.collect()
        used = method() - before
        tally.ready = True
        construct.signal(sorted({target if isinstance(target, int) else target[0] for target in targets}))
        await turns(TURNS_TO_PARK)
    if tally.completed != len(targets):
        raise AssertionError(f"{construct.name}: {tally.completed} of {len(targets)} waits were pending")
    return used


def main(loop: str, section: str, name: str, method: str) -> None:
    """Print the bytes per wait of the construct `name` in `section`."""
    [construct] = [construct for construct in GROUPS[section] if construct.name == name]
    targets: list[Any] = three_key_targets(WAITS) if section.startswith("three") else one_key_targets(WAITS)
    if method == "allocated":
        tracemalloc.start()
    print(run(loop, bytes_per_wait(construct, targets, METHODS[method])))


if __name__ == "__main__":
    main(*sys.argv[1:])
