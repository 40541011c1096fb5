"""One key that ever more waits watch: what it costs to take one out, or to look at those that are left."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from benchmarks import sizes
from benchmarks.collector_setting import CollectorSetting
from benchmarks.loops import run
from benchmarks.question import Contender, Question, Sample, Table
from benchmarks.setting import Setting
from benchmarks.stand_ins import (
    DictWatchList,
    ListWatchList,
    OrderedDictWatchList,
    Satisfied,
    StandInWait,
    WatchList,
)
from purgatory import DelayedOperation, Purgatory

# How many watch each key of the control.
SHORT = 1_000
TIMEOUT = 30.0
# How many are left in the end, to be checked.
FEW = 32
# How many are taken out in random order: all would take a list minutes.
SOME = 1_000


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


def growth(setting: Setting, lengths: Sequence[int]) -> Question:
    """The question, for so many waits on the key."""
    at_least = setting.times // 5

    def purgatory(name: str, most: int) -> Iterator[Contender]:
        async def measured() -> Sample:
            async with Purgatory() as purgatory:
                return measure(lambda: WatchedInPurgatory(purgatory, most), lengths, at_least)

        return setting.contenders("n waits", name, lambda: run(setting.loop, measured()))

    def stand_in(make: type[WatchList]) -> Contender:
        return Contender(
            "n waits", make.name, lambda: measure(lambda: WatchedStandIn(make), lengths, at_least)
        )

    note = (
        "The stand-ins are bare containers: no timer, no states, no hooks. The row with many keys is the "
        "control: what still grows there is not the watch list, but memory that is not in the cache."
    )
    return Question(
        name="growth",
        summary="one key that ever more waits watch",
        contenders=(
            *purgatory("purgatory", max(lengths)),
            *purgatory(f"purgatory, n / {SHORT:,} keys", SHORT),
            stand_in(DictWatchList),
            stand_in(OrderedDictWatchList),
            stand_in(ListWatchList),
        ),
        tables=(
            Table(
                title="n waits watch one key; completed from the head, one by one: microseconds each",
                columns=sizes.columns("head", lengths),
                note=note,
            ),
            Table(
                title="n waits watch one key; completed in random order, one by one: microseconds each",
                columns=sizes.columns("random", lengths),
                note=note,
            ),
            Table(
                title=f"n waits watch one key; {FEW} left, one completes with each check: us per check",
                columns=sizes.columns("few", lengths),
                note=f"A check tries those left, {FEW // 2} on average; a dict walks over those gone, too.",
            ),
        ),
        patience=20.0,
    )


def measure(watched: Callable[[], Watched], lengths: Sequence[int], at_least: int) -> Sample:
    """Microseconds each, for each length, and by how much the longest takes longer than the shortest."""

    def once(length: int) -> Sample:
        head, few = _from_the_head(watched(), length)
        return {"head": head, "few": few, "random": _in_random_order(watched(), length)}

    # The collector's work grows with what is pending, too, and would be taken for the container's.
    with CollectorSetting.OFF.applied():
        return sizes.measured(lengths, once, growing=("head", "random", "few"), at_least=at_least)


def _from_the_head(watched: Watched, length: int) -> tuple[float, float]:
    satisfied = Satisfied()
    waits = watched.fill(length, satisfied)
    few = min(FEW, length // 2)
    head = _complete(waits[:-few])
    checks = []
    for number in range(length - few, length):
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
