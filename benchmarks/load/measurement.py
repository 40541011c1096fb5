"""What one run under one load has given."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from benchmarks.load.generator import BEHIND

# The part of the target rate below which a design counts as saturated.
ACHIEVED = 0.95


@dataclass(frozen=True)
class Measurement:
    """The figures of one run; None where a design cannot be asked."""

    # Requests per second, from the start to the end of the last one; without the time by which that was
    # planned to end after the last arrival.
    achieved: float
    # Milliseconds by which the last arrival came later than planned.
    behind_ms: float
    sent: int
    completed: int | None = None
    expired: int | None = None
    # Processor time of the whole process in the run.
    cpu_seconds: float | None = None
    # By how much requests expired after their timeout; None where none expired.
    late_p50_ms: float | None = None
    late_p99_ms: float | None = None
    # Entries in the watch lists when the last request had ended.
    held: int | None = None
    # By how much the process had grown at its largest, in MB of a million bytes.
    rss_mb: float | None = None


@dataclass(frozen=True)
class Point:
    """A design under one load: all repetitions."""

    rate: int
    measurements: list[Measurement] = field(default_factory=list)

    @property
    def saturated(self) -> bool:
        """Whether it could not keep up, by the medians."""
        achieved = statistics.median(measured.achieved for measured in self.measurements)
        behind = statistics.median(measured.behind_ms for measured in self.measurements)
        return achieved < ACHIEVED * self.rate or behind > BEHIND * 1e3

    def figures(self, metric: str) -> list[float]:
        """One metric, in the order of the repetitions; without those that have no figure."""
        figures = map(attrgetter(metric), self.measurements)
        return [figure for figure in figures if figure is not None]


def percentile(ascending: Sequence[float], percent: float) -> float:
    """The smallest figure that at least so many percent of them do not exceed."""
    return ascending[max(1, math.ceil(len(ascending) * percent / 100)) - 1]
