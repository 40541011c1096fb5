"""Bars for what everything costs in relation to purgatory."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import tables
from benchmarks.question import Answer, Table
from benchmarks.report import picture, scale
from benchmarks.report.picture import Picture
from benchmarks.report.ratio_panels import Panel, Row, rows
from benchmarks.report.spread import Spread, more_than_a_decade

# Inches.
BAR = 0.2
AROUND_PANEL = 0.45
TITLE_LINE = 0.15
AROUND_PICTURE = 0.3
# How many characters of a title fit above one of so many panels abreast.
TITLE_WIDTHS = {1: 100, 2: 42, 3: 27}
BAR_COLOR = "#a3adb8"


def ratio_chart(answer: Answer, table: Table) -> Picture | None:
    """The ratios of the table's first column; None where there is nothing to compare."""
    shown = rows(answer, table)
    if not shown:
        return None
    abreast = max(len(row.panels) for row in shown)
    titles = [[_wrap(row.title(place), abreast) for place in range(len(row.panels))] for row in shown]
    title_lines = sum(max(title.count("\n") + 1 for title in row) for row in titles)
    bars = [len(row.names) for row in shown]
    spreads = [spread for row in shown for panel in row.panels for spread in panel.ratios.values()]
    logarithmic = more_than_a_decade(spreads)
    reference = _reference(shown)

    def paint(figure: Figure) -> None:
        grid = figure.add_gridspec(len(shown), abreast, height_ratios=bars)
        for at, row in enumerate(shown):
            for place, panel in enumerate(row.panels):
                axes = figure.add_subplot(grid[at, place])
                axes.set_title(titles[at][place])
                _bars(axes, row.names, panel, start=1.0 if logarithmic else 0.0)
                _scale(axes, spreads, logarithmic)
                axes.tick_params(axis="y", length=0, labelleft=place == 0)
        figure.supxlabel(
            f"{table.columns[0].heading}: ratio to {reference}" + (", logarithmic" if logarithmic else ""),
            fontsize="medium",
        )

    height = AROUND_PICTURE + AROUND_PANEL * len(shown) + TITLE_LINE * title_lines + BAR * sum(bars)
    return picture.draw(height, paint, _alt(shown, table, reference))


def _wrap(title: str, abreast: int) -> str:
    """As wide as its panel; or, in two lines, as it is: the first stands above all panels of the row."""
    return title if "\n" in title else textwrap.fill(title, TITLE_WIDTHS[abreast])


def _reference(shown: Sequence[Row]) -> str:
    first = {next(iter(panel.ratios)) for row in shown for panel in row.panels}
    return first.pop() if len(first) == 1 else "the first of each"


def _bars(axes: Axes, names: Sequence[str], panel: Panel, start: float) -> None:
    """With the median written out at the right, whiskers from minimum to maximum, and a line at one."""
    for at, name in enumerate(names):
        spread = panel.ratios.get(name)
        axes.text(
            1.02, at, _ratio(spread), transform=axes.get_yaxis_transform(), va="center", fontsize="small"
        )
        if spread is None:
            continue
        color = picture.PURGATORY if picture.is_purgatory(name) else BAR_COLOR
        axes.barh(at, spread.median - start, left=start, height=0.62, color=color)
        if spread.low < spread.high:
            axes.hlines(at, spread.low, spread.high, color=picture.INK, linewidth=1)
            axes.plot((spread.low, spread.high), (at, at), "|", color=picture.INK, markersize=5)
    axes.axvline(1, color=picture.PURGATORY, linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.spines["left"].set_visible(False)


def _ratio(spread: Spread | None) -> str:
    """That of the first is exactly one."""
    if spread is None:
        return "-"
    return "1" if spread == Spread(1.0, 1.0, 1.0) else tables.figure(spread.median)


def _scale(axes: Axes, spreads: Sequence[Spread], logarithmic: bool) -> None:
    """The same for all panels."""
    low, high = min(spread.low for spread in spreads), max(spread.high for spread in spreads)
    if logarithmic:
        scale.logarithmic_x(axes, low / 1.15, high * 1.15)
    else:
        scale.linear_x(axes, min(0.0, low * 1.05), high * 1.05)
    axes.grid(axis="x")


def _alt(shown: Sequence[Row], table: Table, reference: str) -> str:
    others = [
        (spread.median, name)
        for row in shown
        for panel in row.panels
        for name, spread in list(panel.ratios.items())[1:]
    ]
    (least, cheapest), (most, dearest) = min(others), max(others)
    return (
        f"Bar chart of {table.columns[0].heading} in relation to {reference}, from {tables.figure(least)} "
        f"({cheapest}) to {tables.figure(most)} ({dearest}); the figures are in the table."
    )
