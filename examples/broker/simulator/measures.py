"""What a simulation measures: how long something waits, and how much waits."""

import math
from dataclasses import dataclass
from statistics import linear_regression
from typing import Final

_SHORTEST: Final = 1e-6
_LONGEST: Final = 1e3
# The bucket bounds are 2 % apart, so that percentiles of any size have a precision of 2 %.
_PER_FACTOR_E: Final = 1 / math.log(1.02)


@dataclass(frozen=True, slots=True)
class WaitSummary:
    """The count and the percentiles of waits, in seconds; all 0 without a wait."""

    count: int
    p50: float
    p99: float
    max: float


class WaitHistogram:
    """Counts waits between 1 us and 1,000 s in about 1,050 buckets.

    To record a wait costs O(1), a percentile costs O(buckets).
    """

    def __init__(self) -> None:
        self._counts = [0] * (self._bucket_of(_LONGEST) + 1)
        self._count = 0
        self._max = 0.0

    def record(self, seconds: float) -> None:
        self._counts[self._bucket_of(seconds)] += 1
        self._count += 1
        self._max = max(self._max, seconds)

    def percentile(self, fraction: float) -> float:
        """Return the wait that ``fraction`` of all waits did not exceed, at most 2 % too high."""
        rank = math.ceil(fraction * self._count)
        seen = 0
        for bucket, count in enumerate(self._counts):
            seen += count
            if count and seen >= rank:
                return min(self._max, _SHORTEST * math.exp((bucket + 1) / _PER_FACTOR_E))
        return 0.0

    def summary(self) -> WaitSummary:
        return WaitSummary(self._count, self.percentile(0.5), self.percentile(0.99), self._max)

    @staticmethod
    def _bucket_of(seconds: float) -> int:
        clamped = min(max(seconds, _SHORTEST), _LONGEST)
        return int(math.log(clamped / _SHORTEST) * _PER_FACTOR_E)


@dataclass(frozen=True, slots=True)
class BacklogStatus:
    """A number of records that wait, and its trend. ``history`` covers the whole run."""

    latest: float
    peak: float
    growth_per_second: float
    growing: bool
    history: tuple[float, ...]


class Backlog:
    """The size of work that is not done yet, as it is sampled over a run."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._amounts: list[float] = []

    def sample(self, elapsed: float, amount: float) -> None:
        self._times.append(elapsed)
        self._amounts.append(amount)

    def status(self, rate: float) -> BacklogStatus:
        """Return the status of a backlog of work that comes in at ``rate`` a second.

        It grows when more than 1 % of the work adds to it, and has added more than the work of a tenth of a
        second. Less is the noise of a short run.
        """
        if not self._amounts:
            return BacklogStatus(0.0, 0.0, 0.0, growing=False, history=())
        growth = 0.0
        if len(self._amounts) > 1:
            growth = linear_regression(self._times, self._amounts).slope
        growing = growth > 0.01 * rate and growth * self._times[-1] > 0.1 * rate
        return BacklogStatus(self._amounts[-1], max(self._amounts), growth, growing, tuple(self._amounts))
