"""A chart of the page, and the colours, axes and units of all charts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10
from typing import Any, Final

import altair as alt

Datasets = Mapping[str, Sequence[Mapping[str, Any]]]

# The colours of Okabe and Ito, Color Universal Design, 2008. Black is left out because it is invisible on a
# dark page, and yellow because it is invisible on a white page.
COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
GREY: Final = "#8a8a8a"
# More series than this cannot be told apart by colour.
MAX_SERIES: Final = len(COLOURS)

_HEIGHT: Final = 280

# Vega's expression for a label of an axis in microseconds.
_DURATION: Final = (
    "datum.value == 0 ? '0' : datum.value < 1e3 ? format(datum.value, '~') + ' µs'"
    " : datum.value < 1e6 ? format(datum.value / 1e3, '~') + ' ms' : format(datum.value / 1e6, ',~') + ' s'"
)


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """An entry of a legend: a text, a colour, and a class of the style sheet."""

    text: str
    colour: str = GREY
    look: str = "block"


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its title, a note on how to read it, and its Vega-Lite specification."""

    name: str
    title: str
    note: str
    spec: Mapping[str, Any]
    legend: Sequence[LegendEntry] = field(default=())

    @property
    def says(self) -> Mapping[str, str]:
        """What the chart shows, in words: a fact for each subject."""
        says: Mapping[str, str] = self.spec["usermeta"]
        return says


def specification(
    chart: alt.Chart | alt.LayerChart | alt.FacetChart,
    datasets: Datasets,
    says: Mapping[str, str],
    *,
    height: int = _HEIGHT,
) -> dict[str, Any]:
    """The Vega-Lite specification of a chart, with its named data. The chart is as wide as the page allows.

    `says` has a fact for each subject of the chart. They are its name for those who do not see it.

    The data is added here, after Altair has made the chart: Altair validates the data of a chart against the
    schema of Vega-Lite, at 300 rows a second.
    """
    spec = chart.properties(width="container", height=height).to_dict()
    # The page has its own style, and must not link to the schema.
    del spec["config"], spec["$schema"]
    name = "; ".join(f"{subject}: {fact}" for subject, fact in says.items()) or "no data"
    return spec | {"datasets": datasets, "description": name, "usermeta": dict(says)}


def shown_when_nearest(chart: alt.Chart) -> alt.Chart:
    """A dot with a tooltip at the row nearest to the pointer. A line alone has no tooltip."""
    nearest = alt.selection_point(
        name="nearest", nearest=True, on="pointerover", clear="pointerout", empty=False
    )
    opacity = alt.when(nearest).then(alt.value(1)).otherwise(alt.value(0))
    dots: alt.Chart = chart.mark_point(filled=True, size=60).encode(opacity=opacity).add_params(nearest)
    return dots


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each of the first MAX_SERIES names."""
    return dict(zip(names, COLOURS, strict=False))


def selection_note(number: int, of: int, what: str) -> str:
    """Say which series the charts show, if they do not show all. `what` names the series and their order."""
    return "" if number == of else f"The charts show {number} of {of:,} {what}."


def colour(field: str, by_name: Mapping[str, str]) -> alt.Color:
    """An encoding of a field by colour. The page draws the legend, which wraps and needs no script."""
    scale = alt.Scale(domain=list(by_name), range=list(by_name.values()))
    return alt.Color(f"{field}:N", scale=scale, legend=None)


def duration_axis(title: str, ticks: Sequence[float] = ()) -> alt.Axis:
    """An axis for microseconds."""
    return _axis(title, _DURATION, ticks)


def count_axis(title: str, ticks: Sequence[float] = ()) -> alt.Axis:
    """An axis for counts, and for averages of counts. No count is shortened."""
    return _axis(title, "format(datum.value, datum.value < 1 ? '~r' : ',')", ticks)


def share_axis(title: str, ticks: Sequence[float] = ()) -> alt.Axis:
    """An axis for shares of one, in percent."""
    return _axis(title, "format(100 * datum.value, '~r') + ' %'", ticks)


def scale_from_zero(values: Iterable[float]) -> alt.Scale:
    """A linear scale from zero. Its height is never zero, even if all values are zero."""
    return alt.Scale(domain=[0, max(values, default=0) or 1], nice=True)


def log_scale(values: Sequence[float]) -> alt.Scale:
    """A logarithmic scale for values above zero, with a margin around them."""
    low, high = _margins(values)
    return alt.Scale(type="log", domain=[low, high], nice=False)


def log_ticks(values: Sequence[float]) -> list[float]:
    """The labels of a `log_scale`: powers of ten. If these are few, also 2 and 5 times the powers of ten."""
    low, high = _margins(values)
    first, last = floor(log10(low)), ceil(log10(high))
    factors = (1, 2, 5) if last - first <= 3 else (1,)
    ticks = (factor * 10.0**power for power in range(first, last + 1) for factor in factors)
    return [tick for tick in ticks if low <= tick <= high]


def _margins(values: Sequence[float]) -> tuple[float, float]:
    return 0.8 * min(values, default=1), 1.25 * max(values, default=1)


def _axis(title: str, label: str, ticks: Sequence[float]) -> alt.Axis:
    chosen = {"values": ticks} if ticks else {"tickCount": 4}
    return alt.Axis(title=title, labelExpr=label, labelOverlap=True, **chosen)
