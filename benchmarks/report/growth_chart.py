"""Lines for how figures grow with N."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.question import Table
from benchmarks.report import lines, picture, scale
from benchmarks.report.growth import Growth
from benchmarks.report.picture import Picture
from benchmarks.report.spread import Spread
from benchmarks.report.strokes import strokes

ABREAST = 2
# Inches.
PANEL = 2.5
AROUND_PICTURE = 0.5
# How many characters fit beside a panel.
LABEL_WIDTH = 32


def growth_chart(growths: Sequence[Growth], table: Table) -> Picture:
    """A panel for each, all on the same scales, with bands from minimum to maximum."""
    names = list(dict.fromkeys(line.name for growth in growths for line in growth.lines))
    drawn = strokes(names)
    abreast = min(ABREAST, len(growths))
    down = -(-len(growths) // abreast)

    def paint(figure: Figure) -> None:
        panels = [figure.add_subplot(down, abreast, number) for number in range(1, len(growths) + 1)]
        for number, (axes, growth) in enumerate(zip(panels, growths, strict=True)):
            axes.set_title(growth.where)
            for line in growth.lines:
                spreads = [Spread.of(figures) for figures in line.figures.values()]
                lines.draw(axes, list(line.figures), spreads, drawn[line.name], line.name)
            _scale(axes, growths)
            axes.set_xlabel("n")
            if number % abreast == 0:
                axes.set_ylabel(textwrap.fill(_quantity(table), LABEL_WIDTH))
            else:
                axes.tick_params(labelleft=False)
        lines.legend(figure, panels)

    height = AROUND_PICTURE + PANEL * down + lines.legend_height(len(names))
    sizes = [size for growth in growths for size in growth.sizes]
    alt = (
        f"Lines of {_quantity(table)} against n from {min(sizes):,} to {max(sizes):,}, "
        f"on logarithmic scales, for {'; '.join(names)}."
    )
    return picture.draw(height, paint, alt)


def _quantity(table: Table) -> str:
    """What the vertical axis shows: titles have it after their last colon."""
    what = table.title.rpartition(": ")[2]
    heading = table.columns[0].heading
    return what if "n = " in heading.lower() else f"{heading}, {what}"


def _scale(axes: Axes, growths: Sequence[Growth]) -> None:
    """The same for all panels; upwards linear where something is not positive, which has no logarithm."""
    shown = [line.figures for growth in growths for line in growth.lines]
    sizes = sorted({size for line in shown for size in line})
    figures = [figure for line in shown for repetitions in line.values() for figure in repetitions]
    scale.logarithmic_x(axes, sizes[0] / 1.3, sizes[-1] * 1.3, sizes)
    low, high = min(figures), max(figures)
    if low > 0:
        scale.logarithmic_y(axes, low / 1.3, high * 1.3)
    else:
        scale.linear_y(axes, low, high)
    axes.grid()
