"""What a simulation measures: how long something waits, and how much waits."""

import math
from dataclasses import dataclass
from statistics import linear_regression


@dataclass(frozen=True, slots=True)
class WaitSummary:
    """The count and the percentiles of waits, in seconds; all 0 without a wait."""

    count: int
    p50: float
    p99: float
    max: float


class Waits:
    """How long something waited, each time. A wait takes 32 bytes."""

    def __init__(self) -> None:
        self._seconds: list[float] = []

    def record(self, seconds: float) -> None:
        self._seconds.append(seconds)

    def summary(self) -> WaitSummary:
        # Sorted in place, so that the next call has little to sort.
        self._seconds.sort()
        return WaitSummary(
            len(self._seconds), self._percentile(0.5), self._percentile(0.99), self._percentile(1)
        )

    def _percentile(self, fraction: float) -> float:
        """Return the wait that this fraction of all waits did not exceed; 0 without a wait."""
        rank = math.ceil(fraction * len(self._seconds))
        return self._seconds[rank - 1] if self._seconds else 0.0


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
