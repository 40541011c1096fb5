"""What a view of the dashboard costs the loop: ``python -m benchmarks.dashboard``, by hand.

A view is one snapshot, in JSON. However many operations are pending, a bounded number is looked at; how long
that takes depends on whether they are many on one key or on many, and on where in memory they are.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Final

from benchmarks import tables
from benchmarks.arguments import command_line, whole
from benchmarks.builds import build
from benchmarks.interleaving import ask_all
from benchmarks.question import Column, Contender, Question, Sample, Table
from purgatory import DelayedOperation
from purgatory.testing import ManualClock
from purgatory.web.dashboard.recorder import WINDOW, Recorder
from purgatory.web.dashboard.snapshot import take_snapshot

PENDING: Final = 1_000_000
REPETITIONS: Final = 3
VIEWS: Final = 50
TIMEOUTS: Final = (1.0, 5.0, 30.0, 30.0, 60.0, 600.0)

# Which key each is on, by its number.
SHAPES: Final[dict[str, Callable[[random.Random, int], Hashable]]] = {
    "each on a key of its own": lambda choice, number: number,
    "a hundred on each key": lambda choice, number: number // 100,
    "a few keys with most of them": lambda choice, number: int(choice.paretovariate(0.5)),
    "all on one key": lambda choice, number: "key",
}


class Waiting(DelayedOperation[None]):
    """As small as a user's operation gets."""

    __slots__ = ()

    def try_complete(self) -> bool:
        return False


def dashboard(pending: int) -> Question:
    """The question."""
    return Question(
        name="dashboard",
        summary="cost of a view",
        contenders=tuple(
            Contender("operations", shape, partial(measure, keys, pending)) for shape, keys in SHAPES.items()
        ),
        tables=(
            Table(
                title=f"A view of {pending:,} pending operations",
                columns=(
                    Column("median_ms", "ms"),
                    Column("worst_ms", "worst of 50, ms"),
                    Column("bytes", "bytes"),
                ),
                note="Processor time of the loop's thread.",
            ),
        ),
        patience=120.0,
    )


def measure(keys: Callable[[random.Random, int], Hashable], pending: int) -> Sample:
    """Milliseconds for each of VIEWS."""
    choice = random.Random(1)
    clock = ManualClock()
    recorder = Recorder()
    purgatory = clock.purgatory(observers=[recorder])
    for number in range(pending):
        operation = Waiting(choice.choice(TIMEOUTS))
        purgatory.try_complete_else_watch(operation, (keys(choice, number),))
    gc.collect()
    views = []
    size = 0
    for _ in range(VIEWS):
        # Not so far that anything is due.
        clock.advance(0.9 / VIEWS)
        start = time.thread_time()
        snapshot = take_snapshot(1, clock.time(), (purgatory,), purgatory, recorder, [0.0] * WINDOW)
        size = len(snapshot.encoded())
        views.append((time.thread_time() - start) * 1e3)
    for left in purgatory.operations():
        left.cancel()
    views.sort()
    return {"median_ms": views[VIEWS // 2], "worst_ms": views[-1], "bytes": size}


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = command_line("python -m benchmarks.dashboard", __doc__ or "", "")
    parser.add_argument(
        "pending", nargs="?", type=whole(), default=PENDING, help="operations that wait (default: a million)"
    )
    pending: int = parser.parse_args(arguments).pending
    console = tables.console()
    tables.introduce(console, "no loop", (build(),), REPETITIONS)
    for answer in ask_all([dashboard(pending)], REPETITIONS, console):
        tables.show(answer, console)


if __name__ == "__main__":
    main(sys.argv[1:])
