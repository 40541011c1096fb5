"""Axes with plain numbers on them, linear or logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, MaxNLocator, NullLocator

Which = Literal["x", "y"]
# From few ticks per decade to many: the first row that gives enough of them is taken.
STEPS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
ENOUGH = 3
# At most, on a linear axis.
INTERVALS = 5


def logarithmic(axes: Axes, which: Which, low: float, high: float, at: Sequence[float] = ()) -> None:
    """From `low` to `high`, both positive, with ticks at these numbers, or else at round ones."""
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    _ticks(axes, which, FixedLocator(at or round_numbers(low, high)))


def linear(axes: Axes, which: Which, low: float, high: float) -> None:
    """From `low` to `high`, or one further where both are the same."""
    axes.set(**{f"{which}lim": (low, high if high > low else low + 1)})
    _ticks(axes, which, MaxNLocator(INTERVALS, steps=[1, 2, 5, 10]))


def number(value: float) -> str:
    """The shortest way to write the number: 0.05, 3, 20,000."""
    return f"{value:,.10g}" if abs(value) < 1 else f"{value:,.4g}" if abs(value) < 1_000 else f"{value:,.0f}"


def round_numbers(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for steps in STEPS:
        found = [step * 10.0**decade for decade in decades for step in steps]
        found = [tick for tick in found if low <= tick <= high]
        if len(found) >= ENOUGH:
            break
    return found


def _ticks(axes: Axes, which: Which, locator: Locator) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(locator)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
