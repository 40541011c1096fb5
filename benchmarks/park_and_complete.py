"""What it costs to park a wait and to complete it, the creation of the user's own object included."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

from benchmarks.constructs import (
    ONE_KEY_AWAITED,
    ONE_KEY_CALLBACK,
    SEVERAL_KEYS_AWAITED,
    SEVERAL_KEYS_CALLBACK,
    Construct,
    K,
    Key,
    Tally,
)
from benchmarks.loops import run, turns
from benchmarks.question import Column, Contender, Question, Sample, Table

TIMEOUT = 30.0
WAITS_PER_KEY = 10
ONE_KEY = 100_000
THREE_KEYS = 20_000

# A task starts in the first turn after it is made, the task that wait_for makes within it in the second.
TURNS_TO_PARK = 3
# As many to wake up and to undo what was made for the wait; and some to clear cancelled timers away.
TURNS_TO_COMPLETE = 6

COLUMNS = (Column("total_us", "total"), Column("park_us", "park"), Column("complete_us", "complete"))
COLLECTORS = {"collector on": True, "collector off": False}


def one_key(loop: str) -> Question:
    """The question for a wait on one key."""
    targets = one_key_targets(ONE_KEY)
    signals = range(ONE_KEY // WAITS_PER_KEY)
    return Question(
        name="one-key",
        summary="cost to park and complete a wait on one key",
        contenders=tuple(
            contender
            for constructs in (ONE_KEY_CALLBACK, ONE_KEY_AWAITED)
            for contender in _contenders(loop, constructs, targets, signals)
        ),
        tables=(
            Table(
                title="A wait on one key with a timeout of 30 s, parked and completed: microseconds each",
                columns=COLUMNS,
                note=f"Processor time; {ONE_KEY:,} waits, {WAITS_PER_KEY} per key. Includes making the "
                "user's object, waking tasks, clearing cancelled timers. Slow ones are measured fewer times.",
            ),
        ),
        patience=7.0,
    )


def three_keys(loop: str) -> Question:
    """The question for a wait on the first of three keys."""
    targets = three_key_targets(THREE_KEYS)
    signals = range(0, 3 * THREE_KEYS // WAITS_PER_KEY, 3)
    return Question(
        name="three-keys",
        summary="cost to park and complete a wait on the first of three keys",
        contenders=tuple(
            contender
            for constructs in (SEVERAL_KEYS_CALLBACK, SEVERAL_KEYS_AWAITED)
            for contender in _contenders(loop, constructs, targets, signals)
        ),
        tables=(
            Table(
                title="A wait on three keys, one of which is signalled: microseconds each",
                columns=COLUMNS,
                note=f"Processor time; {THREE_KEYS:,} waits, {WAITS_PER_KEY} per key. Includes leaving the "
                "other two keys.",
            ),
        ),
        patience=5.0,
    )


def one_key_targets(waits: int) -> list[Key]:
    """A key for each wait, the keys taking turns."""
    return list(range(waits // WAITS_PER_KEY)) * WAITS_PER_KEY


def three_key_targets(waits: int) -> list[tuple[Key, ...]]:
    """Three keys for each wait. Those that share one share all three: the first of them completes it."""
    threes: list[tuple[Key, ...]] = [
        (key, key + 1, key + 2) for key in range(0, 3 * waits // WAITS_PER_KEY, 3)
    ]
    return threes * WAITS_PER_KEY


def _contenders(
    loop: str, constructs: Sequence[type[Construct[K]]], targets: Sequence[K], signals: Sequence[Key]
) -> Iterator[Contender]:
    def measured(construct: type[Construct[K]], collector: bool) -> Callable[[], Sample]:
        return lambda: run(loop, measure(construct, targets, signals, collector))

    for description, collector in COLLECTORS.items():
        for construct in constructs:
            yield Contender(
                f"{construct.style.value}, {description}", construct.name, measured(construct, collector)
            )


async def measure(
    construct_type: type[Construct[K]], targets: Sequence[K], signals: Sequence[Key], collector: bool
) -> Sample:
    """Microseconds per wait, parked on its target, then completed by `signals`.

    Of processor time: nothing here sleeps, and what other processes take is not the construct's.
    """
    tally = Tally()
    requests = list(range(len(targets)))
    async with construct_type(tally) as construct:
        gc.collect()
        if not collector:
            gc.disable()
        try:
            start = time.process_time()
            construct.park(requests, targets, repeat(TIMEOUT))
            await turns(TURNS_TO_PARK)
            parked = time.process_time()
            tally.ready = True
            construct.signal(signals)
            await turns(TURNS_TO_COMPLETE)
            completed = time.process_time()
        finally:
            gc.enable()
    if tally.completed != len(targets):
        raise AssertionError(f"{construct.name}: {tally.completed} of {len(targets)} waits completed")
    return {
        "park_us": (parked - start) / len(targets) * 1e6,
        "complete_us": (completed - parked) / len(targets) * 1e6,
        "total_us": (completed - start) / len(targets) * 1e6,
    }
