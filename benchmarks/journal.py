"""What it costs an operation to be recorded, or counted: what the loop pays, and the writer's thread."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import sizes
from benchmarks.collector_setting import CollectorSetting
from benchmarks.constructs import TIMEOUT, Tally
from benchmarks.constructs.purgatory_waits import PurgatoryCallback
from benchmarks.loops import run, turns
from benchmarks.question import Column, Contender, Question, Sample, Table
from benchmarks.setting import Setting
from benchmarks.waits import WAITS_PER_KEY, signals, targets
from purgatory import DelayedOperation
from purgatory.journal import JournalWriter
from purgatory.journal.schema import GAPS
from purgatory.metrics import HistogramObserver
from purgatory.observer import Observer, Timing

# So many are parked, then completed, then the loop goes round.
AT_A_TIME = 1_000
# With and without are measured in turns, so that a slow spell falls on both.
ROUNDS = 3


class Bystander:
    """The least that an observer costs: it does nothing."""

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        pass

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        pass


@asynccontextmanager
async def nobody() -> AsyncIterator[tuple[Observer, ...]]:
    yield ()


@asynccontextmanager
async def bystander() -> AsyncIterator[tuple[Observer, ...]]:
    yield (Bystander(),)


@asynccontextmanager
async def written() -> AsyncIterator[tuple[Observer, ...]]:
    """A journal in a directory for the moment. Raises AssertionError when rows were lost."""
    with tempfile.TemporaryDirectory() as directory:
        async with JournalWriter(directory) as writer:
            yield (writer,)
        gaps = pq.read_table(Path(directory) / GAPS).to_pylist()
        if gaps:
            raise AssertionError(f"the disk is too slow for this: {gaps}")


@asynccontextmanager
async def collected() -> AsyncIterator[tuple[Observer, ...]]:
    """What a `PurgatoryCollector` has observe a purgatory."""
    yield (HistogramObserver(),)


OBSERVED = {
    "purgatory, not observed": nobody,
    "purgatory, observer that does nothing": bystander,
    "purgatory, metrics": collected,
    "purgatory, journal": written,
}


def journal(setting: Setting, numbers: Sequence[int]) -> Question:
    """The question, of `numbers` of operations, with one key and with three."""

    def measured(name: str, keys: int) -> Callable[[], Sample]:
        return lambda: sizes.measured(
            numbers,
            lambda number: measure(setting.loop, name, number, keys),
            growing=("loop_us",),
        )

    headline = numbers[0]
    return Question(
        name="journal",
        summary="cost of a journal, and of metrics",
        contenders=tuple(
            Contender(
                f"{build}, {'one key' if keys == 1 else 'three keys'}", name, measured(name, keys), build
            )
            for build in setting.builds
            for keys in (1, 3)
            for name in OBSERVED
        ),
        tables=(
            Table(
                title="n operations parked, completed and recorded: microseconds of the loop's thread each",
                columns=sizes.columns("loop_us", numbers),
                note=f"Processor time; {WAITS_PER_KEY} operations per key, {AT_A_TIME:,} pending at a time; "
                "with ten rows of operations goes one of checks.",
            ),
            Table(
                title=f"What of it is added, and what other threads take, of {headline:,}: microseconds each",
                columns=(
                    Column(sizes.at("added_us", headline), "added"),
                    Column(sizes.at("thread_us", headline), "writer's thread"),
                ),
                note="Added: to the same without observers, measured in turns. The writer's thread: until "
                "all is on the disk.",
            ),
        ),
        patience=40.0,
    )


def measure(loop: str, name: str, number: int, keys: int) -> Sample:
    """Microseconds of each of so many operations: in the loop, what of it is added, and in other threads."""
    samples = [
        [run(loop, _recorded(observed, number, keys)) for observed in (nobody, OBSERVED[name])]
        for _ in range(ROUNDS)
    ]
    return {
        "loop_us": statistics.median(own[0] for _, own in samples),
        "added_us": statistics.median(own[0] - base[0] for base, own in samples),
        "thread_us": statistics.median(own[1] for _, own in samples),
    }


async def _recorded(observed: Callable[[], Any], number: int, keys: int) -> tuple[float, float]:
    tally = Tally()
    at_a_time = min(number, AT_A_TIME)
    waited_for, signalled = targets(at_a_time, keys), signals(at_a_time, keys)
    requests = range(at_a_time)
    busy = 0.0
    with CollectorSetting.ADVISED.applied():
        async with observed() as observers, PurgatoryCallback(tally, observers) as construct:
            begun, begun_here = time.process_time(), time.thread_time()
            for _ in range(number // at_a_time):
                start = time.thread_time()
                tally.ready = False
                construct.park(requests, waited_for, repeat(TIMEOUT))
                tally.ready = True
                construct.signal(signalled)
                busy += time.thread_time() - start
                await turns(1)
        others = time.process_time() - begun - (time.thread_time() - begun_here)
    if tally.completed != number // at_a_time * at_a_time:
        raise AssertionError(f"{tally.completed} of {number} operations completed")
    return busy / tally.completed * 1e6, max(others, 0.0) / tally.completed * 1e6
