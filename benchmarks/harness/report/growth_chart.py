"""Lines for how figures grow with n, where a benchmark measures the same cases at several n."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.harness.benchmark import Result, Spread, Table
from benchmarks.harness.report import axes as scale
from benchmarks.harness.report import picture
from benchmarks.harness.report.picture import Picture

# In the name of a section ("callback style, N = 10,000") or in the heading of a column ("n = 1,000").
SIZE = re.compile(r"[,;]?\s*\bn = (\d+(?:,\d{3})*)", re.IGNORECASE)
ABREAST = 2
# Inches.
PANEL = 2.5
AROUND_PICTURE = 0.5
# The number of characters that fit beside a panel.
LABEL_WIDTH = 32


@dataclass(frozen=True)
class Growth:
    """Cases that were measured at several n."""

    # What they have in common beside their n; may be empty.
    where: str
    # Case -> n, ascending -> the figures in the order of the repetitions.
    lines: Mapping[str, Mapping[int, list[float]]]

    @property
    def sizes(self) -> list[int]:
        """All n, ascending."""
        return sorted({size for line in self.lines.values() for size in line})


def ratios(line: Mapping[int, list[float]], size: int) -> list[float]:
    """The figures for `size` in relation to those for the smallest n, each within its own repetition."""
    return [figure / base for figure, base in zip(line[size], line[min(line)], strict=False) if base]


def split_size(text: str) -> tuple[str, int | None]:
    """The text without its n, and the n."""
    match = SIZE.search(text)
    if match is None:
        return text, None
    return SIZE.sub("", text, count=1).strip(" ,;"), int(match[1].replace(",", ""))


def over_sections(result: Result, table: Table) -> list[Growth]:
    """The growth of the table's first column, over sections that differ only in their n."""
    metric = table.columns[0].metric
    found: dict[str, dict[str, dict[int, list[float]]]] = {}
    for case in result.benchmark.cases:
        section, size = split_size(case.section)
        figures = result.figures(case, metric)
        if size is not None and figures:
            found.setdefault(section, {}).setdefault(case.name, {})[size] = figures
    return _growths(found)


def over_columns(result: Result, table: Table) -> list[Growth]:
    """The growth over columns that differ only in their n, for each section."""
    found: dict[str, dict[str, dict[int, list[float]]]] = {}
    for case in result.benchmark.cases:
        for column in table.columns:
            heading, size = split_size(column.heading)
            figures = result.figures(case, column.metric)
            if size is not None and figures:
                where = ", ".join(filter(None, (case.section, heading)))
                found.setdefault(where, {}).setdefault(case.name, {})[size] = figures
    return _growths(found)


def _growths(found: Mapping[str, Mapping[str, Mapping[int, list[float]]]]) -> list[Growth]:
    """The growths that have more than one n."""
    growths = (
        Growth(where, {name: dict(sorted(sizes.items())) for name, sizes in cases.items()})
        for where, cases in found.items()
    )
    return [growth for growth in growths if len(growth.sizes) > 1]


def growth_chart(growths: Sequence[Growth], table: Table) -> Picture:
    """A panel for each growth, all on the same scales, with bands from minimum to maximum."""
    names = list(dict.fromkeys(name for growth in growths for name in growth.lines))
    drawn = picture.strokes(names)
    abreast = min(ABREAST, len(growths))
    down = -(-len(growths) // abreast)
    what, heading = table.title.rpartition(": ")[2], table.columns[0].heading
    quantity = what if "n = " in heading.lower() else f"{heading}, {what}"

    def paint(figure: Figure) -> None:
        panels = [figure.add_subplot(down, abreast, number) for number in range(1, len(growths) + 1)]
        for number, (axes, growth) in enumerate(zip(panels, growths, strict=True)):
            axes.set_title(growth.where)
            for name, line in growth.lines.items():
                spreads = [Spread.of(figures) for figures in line.values()]
                picture.draw_line(axes, list(line), spreads, drawn[name], name)
            _scale(axes, growths)
            axes.set_xlabel("n")
            if number % abreast == 0:
                axes.set_ylabel(textwrap.fill(quantity, LABEL_WIDTH))
            else:
                axes.tick_params(labelleft=False)
        picture.legend(figure, panels)

    height = AROUND_PICTURE + PANEL * down + picture.legend_height(len(names))
    sizes = [size for growth in growths for size in growth.sizes]
    alt = (
        f"Lines of {quantity} against n from {min(sizes):,} to {max(sizes):,}, "
        f"on logarithmic scales, for {'; '.join(names)}."
    )
    return picture.draw(height, paint, alt)


def _scale(axes: Axes, growths: Sequence[Growth]) -> None:
    """The same for all panels; the vertical one is linear where a figure is not positive."""
    lines = [line for growth in growths for line in growth.lines.values()]
    sizes = sorted({size for line in lines for size in line})
    figures = [figure for line in lines for repetitions in line.values() for figure in repetitions]
    scale.logarithmic(axes, "x", sizes[0] / 1.3, sizes[-1] * 1.3, sizes)
    low, high = min(figures), max(figures)
    if low > 0:
        scale.logarithmic(axes, "y", low / 1.3, high * 1.3)
    else:
        scale.linear(axes, "y", low, high)
    axes.grid()
