"""One key that ever more waits watch: what it costs to take one out, or to look at those that are left."""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from benchmarks.loops import run
from benchmarks.question import Column, Contender, Question, Sample, Table
from benchmarks.stand_ins import (
    DictWatchList,
    ListWatchList,
    OrderedDictWatchList,
    Satisfied,
    StandInWait,
    WatchList,
)
from purgatory import DelayedOperation, Purgatory

LENGTHS = (1_000, 10_000, 100_000)
# How many watch each key of the control.
SHORT = 1_000
TIMEOUT = 30.0
# How many are left in the end, to be checked.
FEW = 32
# How many are taken out in random order: all would take a list minutes.
SOME = 1_000
# Short lists are measured again and again, until so many waits have been through.
AT_LEAST = 20_000


class Completable(Protocol):
    """What a purgatory's operation and a stand-in's wait have in common."""

    def force_complete(self) -> bool: ...


class GrowthWait(DelayedOperation[None]):
    """The operation that watches the key."""

    __slots__ = ("number", "satisfied")

    def __init__(self, number: int, satisfied: Satisfied) -> None:
        super().__init__(TIMEOUT)
        self.number = number
        self.satisfied = satisfied

    def try_complete(self) -> bool:
        return self.number < self.satisfied.count and self.force_complete()


class Watched(Protocol):
    """One key and what watches it."""

    def fill(self, length: int, satisfied: Satisfied) -> Sequence[Completable]:
        """Have so many waits watch it, in that order."""
        ...

    def check(self) -> int:
        """Try those on the (last) key; how many completed."""
        ...

    def clear(self) -> int:
        """Take out what is left; how many those were."""
        ...


class WatchedInPurgatory:
    """One key of a purgatory; or as many keys as it takes for at most so many operations on each."""

    def __init__(self, purgatory: Purgatory, most: int) -> None:
        self._purgatory = purgatory
        self._most = most
        self._keys = range(0)

    def fill(self, length: int, satisfied: Satisfied) -> Sequence[Completable]:
        watch, most = self._purgatory.try_complete_else_watch, self._most
        self._keys = range((length + most - 1) // most)
        return [watch(GrowthWait(number, satisfied), (number // most,)) for number in range(length)]

    def check(self) -> int:
        return self._purgatory.check_and_complete(self._keys[-1])

    def clear(self) -> int:
        return sum([len(self._purgatory.cancel_for_key(key)) for key in self._keys])


class WatchedStandIn:
    """A stand-in for one key's watch list, without all the rest of a purgatory."""

    def __init__(self, make: Callable[[], WatchList]) -> None:
        self._watchers = make()

    def fill(self, length: int, satisfied: Satisfied) -> Sequence[Completable]:
        waits = [StandInWait(number, satisfied, self._watchers) for number in range(length)]
        for wait in waits:
            self._watchers.append(wait)
        return waits

    def check(self) -> int:
        return self._watchers.check()

    def clear(self) -> int:
        return len(self._watchers.waits())


def growth(loop: str) -> Question:
    """The question."""

    def purgatory(name: str, most: int) -> Contender:
        async def measured() -> Sample:
            async with Purgatory() as purgatory:
                return measure(lambda: WatchedInPurgatory(purgatory, most))

        return Contender("n waits", name, lambda: run(loop, measured()))

    def stand_in(make: type[WatchList]) -> Contender:
        return Contender("n waits", make.name, lambda: measure(lambda: WatchedStandIn(make)))

    note = (
        "The stand-ins are bare containers: no timer, no states, no hooks. The row with many keys is the "
        "control: what still grows there is not the watch list, but memory that is not in the cache."
    )
    return Question(
        name="growth",
        summary=f"one key watched by {LENGTHS[0]:,} to {LENGTHS[-1]:,} waits",
        contenders=(
            purgatory("purgatory", LENGTHS[-1]),
            purgatory(f"purgatory, n / {SHORT:,} keys", SHORT),
            stand_in(DictWatchList),
            stand_in(OrderedDictWatchList),
            stand_in(ListWatchList),
        ),
        tables=(
            _table("head", "completed from the head, one by one: microseconds each", note),
            _table("random", "completed in random order, one by one: microseconds each", note),
            _table(
                "few",
                f"{FEW} left, one completes with each check: microseconds per check",
                f"A check tries what is left, {FEW // 2} on average; a dict walks over what has left, too.",
            ),
        ),
        patience=8.0,
    )


def _table(metric: str, what: str, note: str) -> Table:
    longest, *shorter = reversed(LENGTHS)
    return Table(
        title=f"n waits watch one key; {what}",
        columns=(
            Column(f"{metric}_{longest}", f"n = {longest:,}"),
            *(Column(f"{metric}_{length}", f"n = {length:,}") for length in shorter),
            Column(f"{metric}_growth", "growth", spread=False),
        ),
        note=note,
    )


def measure(watched: Callable[[], Watched]) -> Sample:
    """Microseconds each, for each length, and by how much the longest takes longer than the shortest."""
    sample: dict[str, float] = {}
    gc.collect()
    # Its work grows with what is pending, too, and would be taken for the container's.
    gc.disable()
    try:
        for length in LENGTHS:
            rounds = range(max(1, AT_LEAST // length))
            head, few = zip(*(_from_the_head(watched(), length) for _ in rounds), strict=True)
            sample[f"head_{length}"] = statistics.fmean(head)
            sample[f"few_{length}"] = statistics.fmean(few)
            sample[f"random_{length}"] = statistics.fmean(_in_random_order(watched(), length) for _ in rounds)
    finally:
        gc.enable()
    for metric in ("head", "random", "few"):
        sample[f"{metric}_growth"] = sample[f"{metric}_{LENGTHS[-1]}"] / sample[f"{metric}_{LENGTHS[0]}"]
    return sample


def _from_the_head(watched: Watched, length: int) -> tuple[float, float]:
    satisfied = Satisfied()
    waits = watched.fill(length, satisfied)
    head = _complete(waits[:-FEW])
    checks = []
    for number in range(length - FEW, length):
        satisfied.count = number + 1
        start = time.perf_counter()
        completed = watched.check()
        checks.append(time.perf_counter() - start)
        if completed != 1:
            raise AssertionError(f"a check that one wait satisfied has completed {completed}")
    # They are few: the mean would be that of whatever else ran on the machine.
    return head, statistics.median(checks) * 1e6


def _in_random_order(watched: Watched, length: int) -> float:
    waits = watched.fill(length, Satisfied())
    microseconds = _complete(random.Random(length).sample(waits, min(SOME, length)))
    left = watched.clear()
    if left != max(0, length - SOME):
        raise AssertionError(f"{left} waits were left of {length}")
    return microseconds


def _complete(waits: Iterable[Completable]) -> float:
    """Microseconds for each."""
    completed = 0
    start = time.process_time()
    for wait in waits:
        if wait.force_complete():
            completed += 1
    return (time.process_time() - start) / completed * 1e6
