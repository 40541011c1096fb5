"""A sample of the pending operations: the keys with the most watchers, and the oldest operations.

Of a million operations it reads a bounded number, which takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from typing import Any, Final

from purgatory import DelayedOperation, Purgatory
from purgatory._core import inspection
from purgatory.web.dashboard.label import TEXT_LENGTH, label

KEY_LIMIT: Final = 400
"""Keys in the sample, besides the busiest ones."""

SHOWN: Final = 10
"""Keys on the page, and operations on the page."""

SHOWN_KEYS: Final = 3
"""Keys on the page for each operation."""

COUNTED: Final = 32_000
"""Watchers counted in each round."""

ROUNDS: Final = 3
"""Rounds of counting. Each later round counts further on the lists that the earlier ones did not finish."""


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key, and how many operations watch it. When `more` is true, there are more of them."""

    key: str
    watchers: int
    more: bool


@dataclass(frozen=True, slots=True)
class PendingOperation:
    """What a viewer needs to know why an operation is still pending. Times are in seconds.

    `due` is None when it never expires. `age` and `tries` are None when it was offered before anybody
    observed its purgatory. `text` is its repr, or None when its class has no repr of its own.
    """

    kind: str
    keys: list[str]
    more_keys: int
    age: float | None
    tries: int | None
    due: float | None
    text: str | None


@dataclass(frozen=True, slots=True)
class PendingSample:
    """The hottest keys and the oldest operations. When `sampled`, there are more keys than were read."""

    sampled: bool
    hottest: list[HotKey]
    oldest: list[PendingOperation]


def sample_pending(purgatory: Purgatory, busiest: Iterable[Hashable], now: float) -> PendingSample:
    """The sample of `purgatory` at the loop's time `now`. It always includes the keys `busiest`."""
    statistics = purgatory.statistics()
    sampled = statistics.keys > KEY_LIMIT
    keys = list(dict.fromkeys([*purgatory.watched_keys(KEY_LIMIT), *busiest]))
    watchers, uncounted = _count_watchers(purgatory, keys)
    if len(uncounted) == 1 and not sampled:
        # All other lists are counted to their ends, so this one holds the rest.
        (key,) = uncounted
        watchers[key] += statistics.watched - sum(watchers.values())
        uncounted.clear()
    # The oldest of each key are the first on its list.
    by_arrival = {
        inspection.arrival(operation): operation
        for key in keys
        for operation in purgatory.watching(key, SHOWN)
    }
    return PendingSample(
        sampled=sampled,
        hottest=[
            HotKey(label(key), count, key in uncounted)
            for key, count in nlargest(SHOWN, watchers.items(), key=lambda item: item[1])
            if count
        ],
        oldest=[_describe(by_arrival[number], now) for number in nsmallest(SHOWN, by_arrival)],
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


def _describe(operation: DelayedOperation[Any], now: float) -> PendingOperation:
    keys, key_count = inspection.watched_keys(operation, SHOWN_KEYS)
    timing = inspection.timing_of(operation)
    own_repr = type(operation).__repr__ is not DelayedOperation.__repr__
    return PendingOperation(
        kind=type(operation).__name__,
        keys=[label(key) for key in keys],
        more_keys=max(0, key_count - SHOWN_KEYS),
        age=None if timing is None else now - timing.offered,
        tries=None if timing is None else timing.tries,
        due=None if operation.deadline is None else operation.deadline - now,
        text=label(operation, TEXT_LENGTH) if own_repr else None,
    )
