"""The band in which a ratio usually is."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from math import exp, lgamma, sqrt
from typing import Final

# How many windows are remembered, and how many it takes to judge one.
MEMORY: Final = 60
LEARNED: Final = 12
# After so many outside of it in a row, they are what is usual.
PATIENCE: Final = 30
# How often a steady ratio is outside at most, above and below together.
ALARM: Final = 1e-4

# Of the standard normal distribution, with 95 % below it.
_Z: Final = 1.645


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a window compares with those before it: `count` of its `operations`, when `usual` is the ratio.

    That is known as well as if it were from so many operations as `weight` says.
    """

    count: int
    operations: int
    usual: float
    weight: float
    # As many windows outside of the band as it takes for them to be usual, this one the last.
    settled: bool = False

    @property
    def outside(self) -> bool:
        """Whether it is this far off less often than ALARM."""
        a, b = self._shape
        return not (
            _reaches(self.count, self.operations, a, b)
            and _reaches(self.operations - self.count, self.operations, b, a)
        )

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the most that would have been inside."""
        a, b = self._shape
        # As many others as possible are as few of those counted.
        return self.operations - _most(self.operations, b, a), _most(self.operations, a, b)

    @property
    def _shape(self) -> tuple[float, float]:
        return self.usual * self.weight, (1 - self.usual) * self.weight


class ControlChart:
    """Learns a ratio from windows, `count` of `operations` in each, and tells those in which it is unusual.

    The ratio of a window is taken to be drawn from a beta distribution, and the count from the binomial
    distribution with that ratio. So a band is wide for few operations, and for many as wide as the windows
    before have differed by more than chance. A judgement costs some 100 microseconds; its limits, which are
    only looked up to tell of them, up to a second where a window has a million operations.

    It remembers the last MEMORY windows inside of the band, and judges none before it has LEARNED. Windows
    outside do not make it wider, but PATIENCE of them in a row take the place of all the others.
    """

    def __init__(self) -> None:
        self._usual: deque[tuple[int, int]] = deque(maxlen=MEMORY)
        self._outside: list[tuple[int, int]] = []

    def __repr__(self) -> str:
        return f"<ControlChart of {len(self._usual)} windows, {len(self._outside)} outside since>"

    def judge(self, count: int, operations: int) -> Judgement | None:
        """Compare this window with those before, and learn from it; None while there are too few of these."""
        window = (count, operations)
        if len(self._usual) < LEARNED:
            self._usual.append(window)
            return None
        judgement = Judgement(count, operations, *self._learned())
        if not judgement.outside:
            self._usual.append(window)
            self._outside.clear()
            return judgement
        self._outside.append(window)
        if len(self._outside) < PATIENCE:
            return judgement
        self._usual.clear()
        self._usual.extend(self._outside)
        self._outside.clear()
        return replace(judgement, settled=True)

    def _learned(self) -> tuple[float, float]:
        """The usual ratio, and how many operations it is worth as a guess of that of the next window.

        The difference between windows is that of DerSimonian and Laird (Controlled Clinical Trials 7, 1986):
        what is left of the sum of squares when that of chance is taken off. Here the most that is left, with
        95 % confidence, since the sum of few windows may happen to be small.
        """
        windows = len(self._usual)
        total = sum(operations for _, operations in self._usual)
        # Jeffreys' half: what has never happened can.
        usual = (sum(count for count, _ in self._usual) + 0.5) / (total + 1)
        squares = sum((count - operations * usual) ** 2 / operations for count, operations in self._usual)
        squares /= usual * (1 - usual)
        freedom = windows - 1
        most = squares * freedom / _chi_square_low(freedom)
        unlike = total - sum(operations**2 for _, operations in self._usual) / total
        between = max(0.0, (most - freedom) / unlike)
        # Of the beta distribution with that variance, and with that of the usual ratio itself; below 2 its
        # density would have two peaks.
        return usual, max(2.0, 1 / (between + 1 / total) - 1)


def _chi_square_low(freedom: int) -> float:
    """What 5 % of the chi-square distribution are below, as Wilson and Hilferty (PNAS 17, 1931) have it."""
    share = 2 / (9 * freedom)
    return freedom * (1 - share - _Z * sqrt(share)) ** 3


def _most(operations: int, a: float, b: float) -> int:
    """The most that `_reaches`."""
    reached, missed = 0, operations + 1
    while missed - reached > 1:
        middle = (reached + missed) // 2
        if _reaches(middle, operations, a, b):
            reached = middle
        else:
            missed = middle
    return reached


def _reaches(count: int, operations: int, a: float, b: float) -> bool:
    """Whether so many or more are not too unlikely, by the beta-binomial distribution.

    What is usual never is, and above that it is one half of ALARM, since the other half is below.
    """
    if count * b <= (operations - count) * a:
        return True
    left = ALARM / 2
    chance = _chance(count, operations, a, b)
    while chance < left and count < operations:
        left -= chance
        ratio = (operations - count) / (count + 1) * (a + count) / (b + operations - count - 1)
        chance *= ratio
        count += 1
        # From here on each is less likely than the one before.
        if ratio < 1 and chance * (operations - count + 1) < left:
            return False
    return chance >= left


def _chance(count: int, operations: int, a: float, b: float) -> float:
    """Of just so many."""
    others = operations - count
    return exp(
        lgamma(operations + 1) - lgamma(count + 1) - lgamma(others + 1)
        + lgamma(count + a) + lgamma(others + b) - lgamma(operations + a + b)
        + lgamma(a + b) - lgamma(a) - lgamma(b)
    )  # fmt: skip
