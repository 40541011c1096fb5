"""The figure that stands for several repetitions, and how far they lie apart."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, minimum and maximum."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Self:
        """Those of the repetitions, of which there is at least one."""
        return cls(statistics.median(figures), min(figures), max(figures))


def more_than_a_decade(spreads: Iterable[Spread]) -> bool:
    """Whether a logarithmic scale shows them better; which takes that all are positive."""
    known = list(spreads)
    low, high = min(spread.low for spread in known), max(spread.high for spread in known)
    return low > 0 and high > 10 * low
