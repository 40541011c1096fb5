"""Lines with bands from minimum to maximum, and their legend."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.report.spread import Spread
from benchmarks.report.strokes import Stroke

# Below all lines.
BANDS = 1
LEGEND_COLUMNS = 3
# Inches.
LEGEND_LINE = 0.2


def draw(axes: Axes, places: Sequence[float], spreads: Sequence[Spread], stroke: Stroke, label: str) -> None:
    """The medians as a line, minimum to maximum as a band."""
    lows, highs = [spread.low for spread in spreads], [spread.high for spread in spreads]
    axes.fill_between(places, lows, highs, color=stroke.color, alpha=0.15, linewidth=0, zorder=BANDS)
    axes.plot(
        places,
        [spread.median for spread in spreads],
        color=stroke.color,
        linestyle=stroke.dash,
        marker=stroke.marker,
        label=label,
        zorder=stroke.layer,
    )


def legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One for all panels, above them."""
    entries: dict[str, Artist] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    figure.legend(entries.values(), entries.keys(), loc="outside upper left", ncols=LEGEND_COLUMNS)


def legend_height(count: int) -> float:
    """Inches for so many entries."""
    return LEGEND_LINE * -(-count // LEGEND_COLUMNS)
