"""Which length of a watch list's chunks measures best: ``python -m benchmarks.watch_lists``, by hand.

A key's watch list is a chain of short lists. Long ones cost less memory per operation, short ones less
searching when an operation leaves from within. The length is a constant of `purgatory.watchers`, which only
the interpreted core looks up at run time; so this measures that one. For the compiled core, build it once for
each length and run ``python -m benchmarks growth one-key``.
"""

from __future__ import annotations

import gc
import random
import sys
import time
import tracemalloc
from collections.abc import Sequence
from unittest.mock import patch

import purgatory._core.watchers
from benchmarks import tables
from benchmarks.arguments import command_line
from benchmarks.constructs import Tally
from benchmarks.constructs.purgatory_waits import CountedWait
from benchmarks.interleaving import ask_all
from benchmarks.loops import run
from benchmarks.question import Column, Contender, Question, Sample, Table
from purgatory import COMPILED, Purgatory

# The default comes first, because the others are set in relation to it.
LENGTHS = (16, 4, 8, 32, 64)
WAITS = 50_000
DENSITIES = {"one wait per key": 1, "10 waits per key": 10, "1,000 waits per key": 1_000}
TIMEOUT = 30.0
REPETITIONS = 5


def watch_lists() -> Question:
    """The question."""

    def contender(density: str, length: int) -> Contender:
        keys = WAITS // DENSITIES[density]
        return Contender(density, f"chunks of {length}", lambda: run("asyncio", measure(keys, length)))

    return Question(
        name="watch-lists",
        summary="lengths of a watch list's chunks",
        contenders=tuple(contender(density, length) for density in DENSITIES for length in LENGTHS),
        tables=(
            Table(
                title="Watching a key in chunks: microseconds, and bytes, per operation",
                columns=(
                    Column("in_order_us", "in order"),
                    Column("in_random_order_us", "in random order"),
                    Column("bytes", "bytes", spread=False),
                ),
                note=f"{WAITS:,} operations parked, then completed: by checks in order of arrival, or one by "
                "one in random order. Collector off.",
            ),
        ),
        patience=60.0,
    )


async def measure(keys: int, length: int) -> Sample:
    """Microseconds to park and complete one, in both orders; bytes of one that is pending."""
    with patch.object(purgatory._core.watchers, "CHUNK_LENGTH", length):
        gc.collect()
        gc.disable()
        try:
            return {
                "in_order_us": await _in_order(keys),
                "in_random_order_us": await _in_random_order(keys),
                "bytes": await _bytes(keys),
            }
        finally:
            gc.enable()


async def _in_order(keys: int) -> float:
    tally = Tally()
    async with Purgatory() as held:
        start = time.process_time()
        _park(held, keys, tally)
        tally.ready = True
        for key in range(keys):
            held.check_and_complete(key)
        return _each(time.process_time() - start, tally)


async def _in_random_order(keys: int) -> float:
    tally = Tally()
    choice = random.Random(1)
    async with Purgatory() as held:
        start = time.process_time()
        operations = _park(held, keys, tally)
        parking = time.process_time() - start
        choice.shuffle(operations)
        start = time.process_time()
        for operation in operations:
            operation.force_complete()
        return _each(parking + time.process_time() - start, tally)


async def _bytes(keys: int) -> float:
    async with Purgatory() as held:
        tracemalloc.start()
        try:
            # Without the list of them, which is the benchmark's.
            _park(held, keys, Tally()).clear()
            return tracemalloc.get_traced_memory()[0] / WAITS
        finally:
            tracemalloc.stop()
            for key in range(keys):
                held.cancel_for_key(key)


def _park(held: Purgatory, keys: int, tally: Tally) -> list[CountedWait]:
    watch = held.try_complete_else_watch
    return [watch(CountedWait(TIMEOUT, wait, tally), (wait % keys,)) for wait in range(WAITS)]


def _each(seconds: float, tally: Tally) -> float:
    if tally.completed != WAITS:
        raise AssertionError(f"{tally.completed} of {WAITS} operations completed")
    return seconds / WAITS * 1e6


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    command_line("python -m benchmarks.watch_lists", __doc__ or "", "").parse_args(arguments)
    if COMPILED:
        raise SystemExit("the compiled core has its length built in: run this with the interpreted one")
    console = tables.console()
    tables.introduce(console, "asyncio", ("interpreted",), REPETITIONS)
    for answer in ask_all([watch_lists()], REPETITIONS, console):
        tables.show(answer, console)


if __name__ == "__main__":
    main(sys.argv[1:])
