"""A sample of the pending operations: the hottest keys, and the oldest operations.

Of a million operations it reads a bounded number, which takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from operator import itemgetter
from typing import Any, Final

from purgatory import DelayedOperation, Purgatory
from purgatory._core.operation import NO_KEY
from purgatory.observer import arrival, timing_of, watched_keys
from purgatory.web.dashboard.ended_sample import SHOWN_KEYS
from purgatory.web.dashboard.label import TEXT_LENGTH, kind_of, label

KEY_LIMIT: Final = 400
"""The most keys in the sample, besides the busy keys."""

SHOWN: Final = 10
"""Keys on the page, and operations on the page."""

COUNTED: Final = 32_000
"""Watchers counted in each round."""

ROUNDS: Final = 3
"""Rounds of counting. Each round counts further on the lists that the round before did not finish."""


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key, how many operations watch it, and how many its checks try in a second.

    When `more` is true, more operations watch it. `tries` is None for a key that is not a busy key.
    """

    key: str
    watchers: int
    more: bool
    tries: float | None


@dataclass(frozen=True, slots=True)
class PendingOperation:
    """What a viewer needs to know why an operation is still pending. Times are in seconds.

    `due` is None when the operation never expires. `age` and `tries` are None when it was offered before
    anybody observed its purgatory. `text` is its repr, or None when its class has no repr of its own.
    """

    number: int
    kind: str
    keys: list[str]
    more_keys: int
    age: float | None
    tries: int | None
    due: float | None
    text: str | None


@dataclass(frozen=True, slots=True)
class PendingSample:
    """The keys with the most watchers, the keys with the most tries, and the oldest operations.

    When `sampled`, there are more keys than were read.
    """

    sampled: bool
    hottest: list[HotKey]
    busiest: list[HotKey]
    oldest: list[PendingOperation]


def sample_pending(purgatory: Purgatory, busy_keys: Mapping[Hashable, float], now: float) -> PendingSample:
    """The sample of `purgatory` at the loop's time `now`. It always includes the `busy_keys`."""
    statistics = purgatory.statistics()
    sampled = statistics.keys > KEY_LIMIT
    # Operations without a key are on a list of their own.
    keys = [NO_KEY, *sampled_keys(purgatory, busy_keys)]
    watchers, uncounted = _count_watchers(purgatory, keys)
    if len(uncounted) == 1 and not sampled:
        # All other lists are counted to their ends, so this list holds the other watchers.
        (key,) = uncounted
        watchers[key] += statistics.watched - sum(watchers.values())
        uncounted.clear()
    del watchers[NO_KEY]

    def hot(counts: Mapping[Hashable, float]) -> list[HotKey]:
        return [
            HotKey(label(key), watchers[key], key in uncounted, busy_keys.get(key))
            for key, count in nlargest(SHOWN, counts.items(), key=itemgetter(1))
            if count
        ]

    # The oldest of each key are the first on its list.
    oldest, _ = oldest_of(operation for key in keys for operation in purgatory.watching(key, SHOWN))
    return PendingSample(
        sampled=sampled,
        hottest=hot(watchers),
        busiest=hot(busy_keys),
        oldest=[describe(operation, now) for operation in oldest],
    )


def sampled_keys(purgatory: Purgatory, busy_keys: Iterable[Hashable]) -> list[Hashable]:
    """All keys that are watched, or the oldest, the newest and the `busy_keys`."""
    return list(dict.fromkeys([*purgatory.watched_keys(KEY_LIMIT), *busy_keys]))


def oldest_of(operations: Iterable[DelayedOperation[Any]]) -> tuple[list[DelayedOperation[Any]], int]:
    """The oldest of `operations`, the oldest first, and the number of different operations."""
    by_arrival = {arrival(operation): operation for operation in operations}
    return [by_arrival[number] for number in nsmallest(SHOWN, by_arrival)], len(by_arrival)


def describe(operation: DelayedOperation[Any], now: float) -> PendingOperation:
    """What the page says of a pending operation at the loop's time `now`."""
    keys, key_count = watched_keys(operation, SHOWN_KEYS)
    timing = timing_of(operation)
    own_repr = type(operation).__repr__ is not DelayedOperation.__repr__
    return PendingOperation(
        number=arrival(operation),
        kind=kind_of(operation),
        keys=[label(key) for key in keys],
        more_keys=max(0, key_count - SHOWN_KEYS),
        age=None if timing is None else now - timing.offered,
        tries=None if timing is None else timing.tries,
        due=None if operation.deadline is None else operation.deadline - now,
        text=label(operation, TEXT_LENGTH) if own_repr else None,
    )


def _count_watchers(purgatory: Purgatory, keys: list[Hashable]) -> tuple[dict[Hashable, int], list[Hashable]]:
    """The number of watchers of each of `keys`; and the keys of which only a part is counted."""
    watchers: dict[Hashable, int] = {}
    uncounted = keys
    for _ in range(ROUNDS):
        if uncounted:
            limit = max(1, COUNTED // len(uncounted))
            watchers.update({key: purgatory.count_watching(key, limit) for key in uncounted})
            uncounted = [key for key in uncounted if watchers[key] >= limit]
    return watchers, uncounted
