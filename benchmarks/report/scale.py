"""Axes with plain numbers on them, logarithmic ones as well."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, MaxNLocator, NullLocator

# From few ticks per decade to many: the first that gives enough of them is taken.
STEPS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
ENOUGH = 3
# At most, of a linear axis.
INTERVALS = 5


def number(value: float) -> str:
    """As short as it can be written out: 0.05, 3, 20,000."""
    return f"{value:,.10g}" if abs(value) < 1 else f"{value:,.4g}" if abs(value) < 1_000 else f"{value:,.0f}"


def logarithmic_x(axes: Axes, low: float, high: float, at: Sequence[float] = ()) -> None:
    """From `low` to `high`, both positive, with ticks at these numbers, or else at round ones."""
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    _ticks(axes.xaxis, FixedLocator(at or ticks(low, high)))


def logarithmic_y(axes: Axes, low: float, high: float) -> None:
    """The same upwards, with ticks at round numbers."""
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    _ticks(axes.yaxis, FixedLocator(ticks(low, high)))


def linear_x(axes: Axes, low: float, high: float) -> None:
    """From `low` to `high`, or somewhat further where these are the same."""
    axes.set_xlim(low, high if high > low else low + 1)
    _ticks(axes.xaxis, MaxNLocator(INTERVALS, steps=[1, 2, 5, 10]))


def linear_y(axes: Axes, low: float, high: float) -> None:
    """The same upwards."""
    axes.set_ylim(low, high if high > low else low + 1)
    _ticks(axes.yaxis, MaxNLocator(INTERVALS, steps=[1, 2, 5, 10]))


def _ticks(axis: Axis, locator: Locator) -> None:
    axis.set_major_locator(locator)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for steps in STEPS:
        found = [step * 10.0**decade for decade in decades for step in steps]
        found = [tick for tick in found if low <= tick <= high]
        if len(found) >= ENOUGH:
            break
    return found
