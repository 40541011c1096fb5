"""A chart of the page, and what all charts have in common: colours, axes, units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10
from typing import Any, Final

import altair as alt

Datasets = Mapping[str, Sequence[Mapping[str, Any]]]

# Okabe and Ito, Color Universal Design, 2008: without black and yellow, of which one is not to be seen on a
# dark page and the other not on a white one.
COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
GREY: Final = "#8a8a8a"
# As many series can be told apart.
DRAWN: Final = len(COLOURS)

_HEIGHT: Final = 280

# Vega's expression for a label of an axis in microseconds.
_DURATION: Final = (
    "datum.value == 0 ? '0' : datum.value < 1e3 ? format(datum.value, '~') + ' µs'"
    " : datum.value < 1e6 ? format(datum.value / 1e3, '~') + ' ms' : format(datum.value / 1e6, ',~') + ' s'"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """An entry of a legend: what it looks like (a class of the style sheet), and what it means."""

    text: str
    colour: str = GREY
    look: str = "block"


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart: what is to be seen, how to read it, and how Vega-Lite draws it."""

    name: str
    title: str
    note: str
    spec: Mapping[str, Any]
    legend: Sequence[Mark] = field(default=())


def specification(
    chart: alt.Chart | alt.LayerChart | alt.FacetChart, datasets: Datasets, *, height: int = _HEIGHT
) -> dict[str, Any]:
    """Of a chart of named data, with that data. It is as wide as the page lets it be.

    Altair checks charts against the schema of Vega-Lite, data included, at 300 rows a second. So the data
    comes in here.
    """
    spec = chart.properties(width="container", height=height).to_dict()
    # The page has its own style, and nobody is to look up the schema.
    del spec["config"], spec["$schema"]
    return spec | {"datasets": datasets}


def shown_when_nearest(chart: alt.Chart) -> alt.Chart:
    """A dot where the chart's nearest row is to the pointer, with its tooltip: a line alone has none."""
    nearest = alt.selection_point(
        name="nearest", nearest=True, on="pointerover", clear="pointerout", empty=False
    )
    opacity = alt.when(nearest).then(alt.value(1)).otherwise(alt.value(0))
    dots: alt.Chart = chart.mark_point(filled=True, size=60).encode(opacity=opacity).add_params(nearest)
    return dots


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each of the first few names."""
    return dict(zip(names, COLOURS, strict=False))


def drawn(number: int, of: int, what: str) -> str:
    """Which of so many are in the charts, if not all; `what` says by which order."""
    return "" if number == of else f"Drawn are {number} of {of:,} {what}."


def colour(field: str, by_name: Mapping[str, str]) -> alt.Color:
    """The colour that a field stands for. The legend is the page's own: it wraps, and needs no script."""
    scale = alt.Scale(domain=list(by_name), range=list(by_name.values()))
    return alt.Color(f"{field}:N", scale=scale, legend=None)


def duration_axis(title: str, ticks: Sequence[float] = ()) -> alt.Axis:
    """For values in microseconds."""
    return _axis(title, _DURATION, ticks)


def count_axis(title: str, ticks: Sequence[float] = ()) -> alt.Axis:
    """For how many there are: 5k is 5,000."""
    # Not as the format of the axis, by which all labels would have the same prefix, and zero be 0k.
    return _axis(title, "format(datum.value, '~s')", ticks)


def share_axis(title: str, ticks: Sequence[float] = ()) -> alt.Axis:
    """For shares of one."""
    return _axis(title, "format(datum.value, '~%')", ticks)


def scale_from_zero(values: Iterable[float]) -> alt.Scale:
    """For values that are to be compared in full, also where all are zero."""
    return alt.Scale(domain=[0, max(values, default=0) or 1], nice=True)


def log_scale(values: Sequence[float]) -> alt.Scale:
    """For values above zero, with a little room around them."""
    low, high = _room(values)
    return alt.Scale(type="log", domain=[low, high], nice=False)


def log_ticks(values: Sequence[float]) -> list[float]:
    """Where to label that scale: at powers of ten, and at 2 and 5 times these where it has few of them."""
    low, high = _room(values)
    first, last = floor(log10(low)), ceil(log10(high))
    factors = (1, 2, 5) if last - first <= 3 else (1,)
    ticks = (factor * 10.0**power for power in range(first, last + 1) for factor in factors)
    return [tick for tick in ticks if low <= tick <= high]


def _room(values: Sequence[float]) -> tuple[float, float]:
    return 0.8 * min(values, default=1), 1.25 * max(values, default=1)


def _axis(title: str, label: str, ticks: Sequence[float]) -> alt.Axis:
    chosen = {"values": ticks} if ticks else {"tickCount": 4}
    return alt.Axis(title=title, labelExpr=label, labelOverlap=True, **chosen)
