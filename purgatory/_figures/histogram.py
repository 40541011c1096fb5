"""Histograms of durations, for the metrics and the dashboard."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final


def powers_of_two(first: int, last: int) -> tuple[float, ...]:
    """The bounds 2**first to 2**last milliseconds, in seconds.

    The usual tick is a millisecond, and no usual timeout is a power of two of it. An operation that expires
    has waited a little longer than its timeout, so with a bound at 30 s it would count as a wait of a minute.
    """
    return tuple(2**power / 1000 for power in range(first, last + 1))


WAIT_BOUNDS: Final = powers_of_two(0, 18)
"""For waits: 1 ms to 262 s. A wait of 30 s counts between 16.4 and 32.8 s."""

LATENESS_BOUNDS: Final = powers_of_two(-2, 12)
"""For lateness: a quarter of a tick to 4 s.

An idle loop is late by less than a tick, a busy one by about a slice (5 ms). A blocked loop is late by as
long as it is blocked.
"""


class Histogram:
    """Counts durations, in seconds, by the first of the ascending `bounds` that they do not exceed.

    `counts` has one number for each bound, and a last one for the durations that exceed all bounds.

    (The histogram of prometheus_client takes a lock for each duration, which makes it several times as slow.
    Here one thread counts, the loop's, and other threads only read.)
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def __repr__(self) -> str:
        return f"<Histogram of {sum(self.counts)} durations>"

    def count(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds

    def add(self, others: Iterable[Histogram]) -> None:
        """Count what `others`, with the same bounds, have counted."""
        for other in others:
            self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
            self.sum += other.sum

    def quantile(self, share: float) -> float | None:
        """The first bound that at least this `share` of the durations, from 0 to 1, does not exceed.

        None when nothing is counted, and when the quantile exceeds all bounds.
        """
        wanted = share * sum(self.counts)
        total = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            total += count
            if total and total >= wanted:
                return bound
        return None
