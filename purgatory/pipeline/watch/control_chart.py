"""A control chart: detects windows in which a ratio differs from its recent values by more than chance."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from math import exp, lgamma, sqrt
from typing import Final

# The most windows in the baseline, and the fewest windows that are needed to assess a window.
MAX_BASELINE: Final = 60
MIN_BASELINE: Final = 12
# This many windows in a row outside the control limits become the new baseline.
SHIFT_RUN: Final = 30
# The highest probability that a window with a steady ratio is outside the limits, above and below together.
FALSE_ALARM_RATE: Final = 1e-4

# The 95 % quantile of the standard normal distribution.
_Z: Final = 1.645


@dataclass(frozen=True, slots=True)
class Assessment:
    """A window, in which `count` of `operations` are counted, compared with the baseline before the window.

    `center` is the ratio of the baseline. This ratio is as uncertain as a ratio of `weight` operations.
    """

    count: int
    operations: int
    center: float
    weight: float
    # Whether this window completes a run of SHIFT_RUN windows outside the limits. The run is the new
    # baseline.
    shifted: bool = False

    @property
    def outside(self) -> bool:
        """Whether the probability of a window this far off is below FALSE_ALARM_RATE."""
        a, b = self._shape
        return not (
            _is_plausible(self.count, self.operations, a, b)
            and _is_plausible(self.operations - self.count, self.operations, b, a)
        )

    @property
    def limits(self) -> tuple[int, int]:
        """The control limits: the lowest count and the highest count that are inside."""
        a, b = self._shape
        # With the lowest count, the most operations are not counted.
        return self.operations - _most(self.operations, b, a), _most(self.operations, a, b)

    @property
    def _shape(self) -> tuple[float, float]:
        return self.center * self.weight, (1 - self.center) * self.weight


class ControlChart:
    """Estimates a ratio from windows, `count` of `operations` in each, and finds windows outside its limits.

    The model: the ratio of a window comes from a beta distribution, and the count comes from the binomial
    distribution with that ratio. So the limits are wide for few operations. For many operations, the limits
    are only as wide as the baseline's windows differ by more than chance. An assessment takes about 100
    microseconds. Only notices need the limits of an assessment. They take up to a second if a window has a
    million operations.

    The baseline is the last MAX_BASELINE windows inside the limits. No window is assessed before the baseline
    has MIN_BASELINE windows. A window outside the limits does not widen them. But SHIFT_RUN such windows in a
    row become the baseline.
    """

    def __init__(self) -> None:
        self._baseline: deque[tuple[int, int]] = deque(maxlen=MAX_BASELINE)
        self._outside: list[tuple[int, int]] = []

    def __repr__(self) -> str:
        return f"<ControlChart of {len(self._baseline)} windows, {len(self._outside)} outside since>"

    def assess(self, count: int, operations: int) -> Assessment | None:
        """Compare a window with the baseline, and add it. None while the baseline has too few windows."""
        window = (count, operations)
        if len(self._baseline) < MIN_BASELINE:
            self._baseline.append(window)
            return None
        assessment = Assessment(count, operations, *self._estimate())
        if not assessment.outside:
            self._baseline.append(window)
            self._outside.clear()
            return assessment
        self._outside.append(window)
        if len(self._outside) < SHIFT_RUN:
            return assessment
        self._baseline.clear()
        self._baseline.extend(self._outside)
        self._outside.clear()
        return replace(assessment, shifted=True)

    def _estimate(self) -> tuple[float, float]:
        """The ratio of the baseline, and its weight as an estimate of the next window's ratio, in operations.

        DerSimonian and Laird (Controlled Clinical Trials 7, 1986) give the variance between windows: the sum
        of squares minus the part that is due to chance. Here the upper bound of the sum with 95 % confidence
        is used, because the sum of few windows may be small by chance.
        """
        windows = len(self._baseline)
        total = sum(operations for _, operations in self._baseline)
        # Jeffreys' prior adds a half, so that the ratio is never zero.
        center = (sum(count for count, _ in self._baseline) + 0.5) / (total + 1)
        squares = sum((count - operations * center) ** 2 / operations for count, operations in self._baseline)
        squares /= center * (1 - center)
        freedom = windows - 1
        most = squares * freedom / _chi_square_low(freedom)
        unlike = total - sum(operations**2 for _, operations in self._baseline) / total
        between = max(0.0, (most - freedom) / unlike)
        # The weight of the beta distribution whose variance is the variance between windows plus the variance
        # of the center. With a weight below 2, the density would have two peaks.
        return center, max(2.0, 1 / (between + 1 / total) - 1)


def _chi_square_low(freedom: int) -> float:
    """The 5 % quantile of the chi-square distribution, after Wilson and Hilferty (PNAS 17, 1931)."""
    share = 2 / (9 * freedom)
    return freedom * (1 - share - _Z * sqrt(share)) ** 3


def _most(operations: int, a: float, b: float) -> int:
    """The highest count that is inside the upper limit."""
    reached, missed = 0, operations + 1
    while missed - reached > 1:
        middle = (reached + missed) // 2
        if _is_plausible(middle, operations, a, b):
            reached = middle
        else:
            missed = middle
    return reached


def _is_plausible(count: int, operations: int, a: float, b: float) -> bool:
    """Whether `count` or more has a sufficient probability, by the beta-binomial distribution.

    A count up to the mean always has a sufficient probability. Above the mean, half of FALSE_ALARM_RATE is
    sufficient, because the other half is for counts below the mean.
    """
    if count * b <= (operations - count) * a:
        return True
    left = FALSE_ALARM_RATE / 2
    chance = _probability(count, operations, a, b)
    while chance < left and count < operations:
        left -= chance
        ratio = (operations - count) / (count + 1) * (a + count) / (b + operations - count - 1)
        chance *= ratio
        count += 1
        # From here on, each count is less likely than the count before it.
        if ratio < 1 and chance * (operations - count + 1) < left:
            return False
    return chance >= left


def _probability(count: int, operations: int, a: float, b: float) -> float:
    """The probability of exactly this count."""
    others = operations - count
    return exp(
        lgamma(operations + 1) - lgamma(count + 1) - lgamma(others + 1)
        + lgamma(count + a) + lgamma(others + b) - lgamma(operations + a + b)
        + lgamma(a + b) - lgamma(a) - lgamma(b)
    )  # fmt: skip
