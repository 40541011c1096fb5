"""Who waits: the keys with the most watchers, and the operations that wait for longest.

Of a million operations a bounded number is looked at, a few milliseconds' worth.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from typing import Any, Final

from purgatory import DelayedOperation, Purgatory
from purgatory._core.operation import Operation
from purgatory._core.watchers import Chunk, keys_at
from purgatory.web.dashboard.label import TEXT_LENGTH, label

KEYS: Final = 400
"""How many keys are looked at."""

SHOWN: Final = 10

# Watchers counted in each of the rounds that find out which of the longest lists are the longest.
COUNTED: Final = 32_000
ROUNDS: Final = 3

SHOWN_KEYS: Final = 3
"""How many keys are shown of one operation."""


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key, and how many operations watch it; or, where it has `more`, so many at least."""

    key: str
    watchers: int
    more: bool


@dataclass(frozen=True, slots=True)
class WaitingOperation:
    """Why is this still pending? Times in seconds; `due` is None where it never expires.

    `age` and `tries` are None where it waited before anybody observed its purgatory.
    """

    kind: str
    keys: list[str]
    more_keys: int
    age: float | None
    tries: int | None
    due: float | None
    # Its repr(), where its class has one of its own.
    text: str | None


@dataclass(frozen=True, slots=True)
class PendingSample:
    """Who waits. When it is `sampled`, there are more keys than were looked at."""

    sampled: bool
    hottest: list[HotKey]
    oldest: list[WaitingOperation]


def look_around(purgatory: Purgatory, busiest: Iterable[Hashable], now: float) -> PendingSample:
    """The pending_sample in `purgatory`, of whose keys those `busiest` lately are looked at in any case."""
    statistics = purgatory.statistics()
    sampled = statistics.keys > KEYS
    keys = list(dict.fromkeys([*purgatory.watched_keys(KEYS), *busiest]))
    watchers, longest = _count(purgatory, keys)
    if len(longest) == 1 and not sampled:
        # All the others are known, and so is their sum.
        (key,) = longest
        watchers[key] += statistics.watched - sum(watchers.values())
        longest.clear()
    # First come, first on each key. By the number in which they were parked, which is their own.
    first = {operation._parked: operation for key in keys for operation in purgatory.watching(key, SHOWN)}
    return PendingSample(
        sampled=sampled,
        hottest=[
            HotKey(label(key), count, key in longest)
            for key, count in nlargest(SHOWN, watchers.items(), key=lambda item: item[1])
            if count
        ],
        oldest=[_waiting(first[number], now) for number in nsmallest(SHOWN, first)],
    )


def _count(purgatory: Purgatory, keys: list[Hashable]) -> tuple[dict[Hashable, int], list[Hashable]]:
    """How many watch each of `keys`; and the keys on which counting has not come to an end."""
    watchers: dict[Hashable, int] = {}
    uncounted = keys
    for _ in range(ROUNDS):
        if uncounted:
            limit = max(1, COUNTED // len(uncounted))
            watchers.update({key: purgatory.count_watching(key, limit) for key in uncounted})
            uncounted = [key for key in uncounted if watchers[key] >= limit]
    return watchers, uncounted


def _waiting(operation: DelayedOperation[Any], now: float) -> WaitingOperation:
    # Not all of its keys, of which there may be thousands.
    places = operation._watched
    several = not isinstance(places, Chunk)
    timing = getattr(operation, "_timing", None)
    own_repr = type(operation).__repr__ is not Operation.__repr__
    return WaitingOperation(
        kind=type(operation).__name__,
        keys=[label(key) for key in keys_at(places[:SHOWN_KEYS] if several else places)],
        more_keys=max(0, len(places) - SHOWN_KEYS) if several else 0,
        age=None if timing is None else now - timing.offered,
        tries=None if timing is None else timing.tries,
        due=None if operation.deadline is None else operation.deadline - now,
        text=label(operation, TEXT_LENGTH) if own_repr else None,
    )
