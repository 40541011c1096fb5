"""One key that ever more waits watch: the cost to take one out, or to try the waits that are left.

Purgatory's watch list beside the containers that come to mind first: a dict, an OrderedDict and a list.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from benchmarks.harness.benchmark import Case, Parts, Sample, Setting, Table, at_sizes, benchmark
from benchmarks.harness.event_loop import CollectorSetting, run
from purgatory import DelayedOperation, Purgatory

# The waits on each key of the control.
SHORT = 1_000
TIMEOUT = 30.0
# The waits that are left at the end, to be checked.
FEW = 32
# The waits that are taken out in random order: all of them would take a list minutes.
SOME = 1_000


class Satisfied:
    """The condition of all waits on a key: how many of them, counted from the first, are satisfied."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class GrowthWait(DelayedOperation[None]):
    __slots__ = ("number", "satisfied")

    def __init__(self, number: int, satisfied: Satisfied) -> None:
        super().__init__(TIMEOUT)
        self.number = number
        self.satisfied = satisfied

    def try_complete(self) -> bool:
        return self.number < self.satisfied.count and self.force_complete()


class ContainerWait:
    """A wait that does nothing but leave its container when it is completed."""

    __slots__ = ("number", "remove", "satisfied")

    def __init__(self, number: int, satisfied: Satisfied, remove: Callable[[ContainerWait], object]) -> None:
        self.number = number
        self.satisfied = satisfied
        self.remove = remove

    def try_complete(self) -> bool:
        return self.number < self.satisfied.count and self.force_complete()

    def force_complete(self) -> bool:
        self.remove(self)
        return True


# The waits on a key; tries those that are left, and tells how many completed; tells how many are left, and in
# a purgatory takes them out.
Filled = tuple[Sequence[Any], Callable[[], int], Callable[[], int]]


def in_purgatory(purgatory: Purgatory, most: int, length: int, satisfied: Satisfied) -> Filled:
    """Waits on one key of a purgatory; or on as many as it takes for at most so many operations on each."""
    watch, keys = purgatory.try_complete_else_watch, range(-(-length // most))
    return (
        [watch(GrowthWait(number, satisfied), (number // most,)) for number in range(length)],
        lambda: purgatory.check_and_complete(keys[-1]),
        lambda: sum([len(purgatory.cancel_for_key(key)) for key in keys]),
    )


def in_container(make: Callable[[], Any], length: int, satisfied: Satisfied) -> Filled:
    """The waits of one key in a bare container, without all the rest of a purgatory.

    A list shifts everything behind the wait that it removes, and first has to find that. A dict removes in
    O(1), but leaves a gap that every walk steps over until the dict happens to be rebuilt. An OrderedDict
    leaves no gap, at the price of about 100 bytes a wait.
    """
    held = make()
    remove = held.remove if isinstance(held, list) else held.__delitem__
    waits = [ContainerWait(number, satisfied, remove) for number in range(length)]
    held.extend(waits) if isinstance(held, list) else held.update(dict.fromkeys(waits))
    return waits, lambda: sum([wait.try_complete() for wait in list(held)]), lambda: len(held)


Fill = Callable[[int, Satisfied], Filled]


@benchmark("growth", "one key that ever more waits watch", (100_000, 1_000, 10_000))
def growth(setting: Setting) -> Parts:
    note = (
        "The rows below purgatory's are bare containers: no timer, no states, no hooks. The row with "
        "many keys is the control: what still grows there is not the watch list, but memory that is not in "
        "the cache."
    )
    each = "n waits watch one key; completed from the head, one by one: microseconds each"
    yield Table(each, setting.growth("head"), note)
    yield Table(each.replace("from the head", "in random order"), setting.growth("random"), note)
    yield Table(
        f"n waits watch one key; {FEW} left, one completes with each check: us per check",
        setting.growth("few"),
        f"A check tries the waits that are left, {FEW // 2} on average; a dict also walks over the "
        "gaps of the others.",
    )
    for name, most in (("purgatory", max(setting.sizes)), (f"purgatory, n / {SHORT:,} keys", SHORT)):
        measured = partial(run, setting.loop, measure_purgatory, setting, most)
        yield from setting.case("n waits", name, measured, interpreted=False)
    for name, make in (("a dict", dict), ("an OrderedDict", OrderedDict), ("a list", list)):
        yield Case("n waits", name, partial(measure, setting, partial(in_container, make)))


async def measure_purgatory(setting: Setting, most: int) -> Sample:
    """The same for waits in a purgatory, at most so many on each key."""
    async with Purgatory() as purgatory:
        return measure(setting, partial(in_purgatory, purgatory, most))


def measure(setting: Setting, fill: Fill) -> Sample:
    """Microseconds each, at each size, and the growth from the smallest to the largest."""

    def once(length: int) -> Sample:
        head, few = _from_the_head(fill, length)
        return {"head": head, "few": few, "random": _in_random_order(fill, length)}

    # The collector's work grows with the number of waits, too, and would be taken for the container's.
    with CollectorSetting.OFF.applied():
        return at_sizes(setting.sizes, once, ("head", "random", "few"), setting.times // 5)


def _from_the_head(fill: Fill, length: int) -> tuple[float, float]:
    satisfied = Satisfied()
    waits, check, _ = fill(length, satisfied)
    few = min(FEW, length // 2)
    head = _complete(waits[:-few])
    checks = []
    for number in range(length - few, length):
        satisfied.count = number + 1
        start = time.perf_counter()
        completed = check()
        checks.append(time.perf_counter() - start)
        if completed != 1:
            raise AssertionError(f"a check that one wait satisfied has completed {completed}")
    # There are few checks: a mean would depend on what else ran on the machine.
    return head, statistics.median(checks) * 1e6


def _in_random_order(fill: Fill, length: int) -> float:
    waits, _, clear = fill(length, Satisfied())
    microseconds = _complete(random.Random(length).sample(waits, min(SOME, length)))
    left = clear()
    if left != max(0, length - SOME):
        raise AssertionError(f"{left} waits were left of {length}")
    return microseconds


def _complete(waits: Iterable[Any]) -> float:
    completed = 0
    start = time.process_time()
    for wait in waits:
        if wait.force_complete():
            completed += 1
    return (time.process_time() - start) / completed * 1e6
