"""Bars for the cost of each case in relation to purgatory's, in a panel for each section."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Result, Spread, Table
from benchmarks.harness.report import axes as scale
from benchmarks.harness.report import picture
from benchmarks.harness.report.growth_chart import split_size
from benchmarks.harness.report.picture import Picture, mostly_same

T = TypeVar("T")
ABREAST = 3
# Inches.
BAR = 0.2
AROUND_PANEL = 0.45
TITLE_LINE = 0.15
AROUND_PICTURE = 0.3
# The number of characters of a title that fit above one of so many panels abreast.
TITLE_WIDTHS = {1: 100, 2: 42, 3: 27}
BAR_COLOR = "#a3adb8"


@dataclass(frozen=True)
class Panel:
    """One section: the ratios of its cases, the reference first."""

    # The section's name without its n, and the n, where there is one.
    where: str
    size: int | None
    ratios: Mapping[str, Spread]


@dataclass(frozen=True)
class Row:
    """Panels side by side that share the names of their cases at the left."""

    names: tuple[str, ...]
    panels: tuple[Panel, ...]

    def title(self, place: int) -> str:
        """The title of one panel. The name that panels of several n share stands above the first of them."""
        panel = self.panels[place]
        if panel.size is None:
            return panel.where
        size = f"n = {panel.size:,}"
        return f"{panel.where}\n{size}" if panel.where and place == 0 else size


def groups(items: Iterable[T], alike: Callable[[T, T], bool]) -> list[list[T]]:
    """Each item together with those that are like the first of their group, in order."""
    found: list[list[T]] = []
    for item in items:
        group = next((group for group in found if alike(item, group[0])), None)
        if group is None:
            found.append([item])
        else:
            group.append(item)
    return found


def rows(result: Result, table: Table) -> list[Row]:
    """All panels for the table's first column; panels that have their cases in common share a row."""
    metric = table.columns[0].metric
    sections: dict[str, dict[str, Spread]] = {}
    for case in result.benchmark.cases:
        ratios = result.ratios(case, metric)
        if ratios:
            sections.setdefault(case.section, {})[case.name] = Spread.of(ratios)
    panels = [Panel(*split_size(name), ratios) for name, ratios in sections.items() if len(ratios) > 1]
    return [row for group in groups(panels, _belong_together) for row in _rows(group)]


def _belong_together(panel: Panel, other: Panel) -> bool:
    """Whether the panels differ only in their n; or have no n, and the same cases."""
    if panel.size is not None or other.size is not None:
        return panel.where == other.where
    return mostly_same(panel.ratios, other.ratios)


def _rows(group: Sequence[Panel]) -> Iterator[Row]:
    """Evenly filled rows, by ascending n where there is one."""
    group = sorted(group, key=lambda panel: panel.size or 0)
    count = -(-len(group) // ABREAST)
    length = -(-len(group) // count)
    for first in range(0, len(group), length):
        panels = tuple(group[first : first + length])
        yield Row(tuple(dict.fromkeys(name for panel in panels for name in panel.ratios)), panels)


def ratio_chart(result: Result, table: Table) -> Picture | None:
    """The ratios of the table's first column; None where there is nothing to compare."""
    shown = rows(result, table)
    if not shown:
        return None
    abreast = max(len(row.panels) for row in shown)
    titles = [[_wrap(row.title(place), abreast) for place in range(len(row.panels))] for row in shown]
    title_lines = sum(max(title.count("\n") + 1 for title in row) for row in titles)
    bars = [len(row.names) for row in shown]
    panels = [panel for row in shown for panel in row.panels]
    spreads = [spread for panel in panels for spread in panel.ratios.values()]
    logarithmic = picture.more_than_a_decade(spreads)
    references = {next(iter(panel.ratios)) for panel in panels}
    reference = references.pop() if len(references) == 1 else "the first of each"
    heading = table.columns[0].heading

    def paint(figure: Figure) -> None:
        grid = figure.add_gridspec(len(shown), abreast, height_ratios=bars)
        for at, row in enumerate(shown):
            for place, panel in enumerate(row.panels):
                axes = figure.add_subplot(grid[at, place])
                axes.set_title(titles[at][place])
                _bars(axes, row.names, panel, start=1.0 if logarithmic else 0.0)
                _scale(axes, spreads, logarithmic)
                axes.tick_params(axis="y", length=0, labelleft=place == 0)
        suffix = ", logarithmic" if logarithmic else ""
        figure.supxlabel(f"{heading}: ratio to {reference}{suffix}", fontsize="medium")

    others = [(spread.median, name) for panel in panels for name, spread in list(panel.ratios.items())[1:]]
    (least, cheapest), (most, dearest) = min(others), max(others)
    alt = (
        f"Bar chart of {heading} in relation to {reference}, from {tables.figure(least)} "
        f"({cheapest}) to {tables.figure(most)} ({dearest}); the figures are in the table."
    )
    height = AROUND_PICTURE + AROUND_PANEL * len(shown) + TITLE_LINE * title_lines + BAR * sum(bars)
    return picture.draw(height, paint, alt)


def _wrap(title: str, abreast: int) -> str:
    """As wide as its panel. A title of two lines stands above all panels of the row, and is not wrapped."""
    return title if "\n" in title else textwrap.fill(title, TITLE_WIDTHS[abreast])


def _bars(axes: Axes, names: Sequence[str], panel: Panel, start: float) -> None:
    """Bars with the median at the right, whiskers from minimum to maximum, and a line at one."""
    for at, name in enumerate(names):
        spread = panel.ratios.get(name)
        text, place = _ratio(spread), axes.get_yaxis_transform()
        axes.text(1.02, at, text, transform=place, va="center", fontsize="small")
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
    """The median. The reference's is exactly one."""
    if spread is None:
        return "-"
    return "1" if spread == Spread(1.0, 1.0, 1.0) else tables.figure(spread.median)


def _scale(axes: Axes, spreads: Sequence[Spread], logarithmic: bool) -> None:
    """The same for all panels."""
    low, high = min(spread.low for spread in spreads), max(spread.high for spread in spreads)
    if logarithmic:
        scale.logarithmic(axes, "x", low / 1.15, high * 1.15)
    else:
        scale.linear(axes, "x", min(0.0, low * 1.05), high * 1.05)
    axes.grid(axis="x")
