"""Histograms of durations, for the metrics and the dashboard."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final


def powers_of_two(first: int, last: int) -> tuple[float, ...]:
    """The bounds 2**first to 2**last milliseconds, in seconds.

    A bound must not be a usual timeout. An operation that expires has waited a little longer than its
    timeout. With bounds at 30 s and at 60 s, an operation with a timeout of 30 s would count as a wait of up
    to 60 s. No usual timeout is a power of two of milliseconds.
    """
    return tuple(2**power / 1000 for power in range(first, last + 1))


WAIT_BOUNDS: Final = powers_of_two(0, 18)
"""The bounds for waits, from 1 ms to 262 s. A wait of 30 s counts between 16.4 and 32.8 s."""

LATENESS_BOUNDS: Final = powers_of_two(-2, 12)
"""The bounds for lateness, from a quarter of a tick to 4 s.

On an idle loop, an operation expires less than a tick late. On a busy loop, it expires about a slice (5 ms)
late. On a blocked loop, it is late for as long as the loop is blocked.
"""


class Histogram:
    """Counts durations, in seconds. A duration counts at the first bound that it does not exceed.

    The `bounds` ascend. `counts` has one number for each bound, and a last number for the durations that
    exceed all bounds.

    The histogram of prometheus_client takes a lock for each duration, so it is several times as slow. This
    histogram needs no lock: only the loop's thread counts, and other threads only read.
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
        """Add the counts of other histograms, which have the same bounds."""
        for other in others:
            self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
            self.sum += other.sum

    def quantile(self, share: float) -> float | None:
        """The first bound that at least this `share` of the durations does not exceed. A share is 0 to 1.

        Returns None if nothing is counted, or if the quantile exceeds all bounds.
        """
        wanted = share * sum(self.counts)
        total = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            total += count
            if total and total >= wanted:
                return bound
        return None
