"""Charts as SVG: text stays text, and the same figures always give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.style
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Spread

# Inches: the width of a page of text on GitHub.
WIDTH = 9.0
LINE, PANEL = 0.2, 2.8
# "default": not the settings of the user's own matplotlibrc.
STYLE = ["default", str(Path(__file__).with_name("charts.mplstyle"))]
# For readers who see no colours.
MARKERS = "os^DvPX*<>p"

Lines = Mapping[str, Mapping[float, Sequence[float]]]
"""By name: the figures of the repetitions at each place of the horizontal axis."""


@dataclass(frozen=True)
class Panel:
    """Lines on axes of their own."""

    title: str
    lines: Lines
    logarithmic_x: bool = True
    logarithmic_y: bool = True


def _draw(height: float, paint: Callable[[Figure], None]) -> str:
    text = io.StringIO()
    with matplotlib.style.context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        paint(figure)
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    # Some lines of matplotlib's end in a blank.
    return "".join(line.rstrip() + "\n" for line in text.getvalue().splitlines())


def _scale(axis: Axis, scale: str) -> None:
    """Scale an axis "log" or "linear", with plain numbers on it."""
    axis.axes.set(**{f"{axis.axis_name}scale": scale})  # type: ignore[attr-defined]
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if scale == "log" else MaxNLocator(5))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(StrMethodFormatter("{x:,.7g}"))


def _errors(spreads: Sequence[Spread]) -> list[list[float]]:
    return [[each.median - each.low for each in spreads], [each.high - each.median for each in spreads]]


def bar_chart(sections: Mapping[str, Mapping[str, Spread]], label: str) -> str:
    """Bars for the ratios of each section, with error bars from minimum to maximum.

    The axis is logarithmic where the ratios are positive and differ by more than ten times.
    """
    spreads = [spread for ratios in sections.values() for spread in ratios.values()]
    logarithmic = 0 < 10 * min(each.low for each in spreads) < max(each.high for each in spreads)
    start = 1.0 if logarithmic else 0.0
    bars = [len(ratios) for ratios in sections.values()]

    def paint(figure: Figure) -> None:
        panels = figure.subplots(len(sections), sharex=True, squeeze=False, height_ratios=bars)
        for axes, (section, ratios) in zip(panels.flat, sections.items(), strict=True):
            shown, places = list(ratios.values()), range(len(ratios))
            colors = ["C0" if name.startswith("purgatory") else "0.7" for name in ratios]
            widths = [spread.median - start for spread in shown]
            drawn = axes.barh(places, widths, left=start, xerr=_errors(shown), color=colors)
            axes.bar_label(drawn, [tables.figure(spread.median) for spread in shown], padding=3)
            axes.set(title=section, yticks=places, yticklabels=list(ratios))
            axes.invert_yaxis()
            axes.axvline(1, color="C0")
            axes.margins(x=0.1)
            _scale(axes.xaxis, "log" if logarithmic else "linear")
        figure.supxlabel(f"{label}{', logarithmic' if logarithmic else ''}", fontsize="medium")

    return _draw(2 * LINE + 3 * LINE * len(sections) + LINE * sum(bars), paint)


def line_chart(panels: Sequence[Panel], x_label: str, y_label: str = "") -> str:
    """A panel for each group of lines, with medians and error bars from minimum to maximum.

    A vertical axis with a figure that is not positive is linear.
    """
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    rows = -(-len(panels) // 2)

    def paint(figure: Figure) -> None:
        grid = figure.subplots(rows, min(2, len(panels)), squeeze=False)
        handles = {}
        for axes, panel in zip(grid.flat, panels, strict=False):
            lowest = 0.0
            for name, line in panel.lines.items():
                spreads = [Spread.of(figures) for figures in line.values()]
                lowest = min([lowest or spreads[0].low, *(spread.low for spread in spreads)])
                color, marker = f"C{names.index(name)}", MARKERS[names.index(name) % len(MARKERS)]
                medians = [spread.median for spread in spreads]
                handles[name] = axes.errorbar(
                    list(line), medians, yerr=_errors(spreads), color=color, marker=marker
                )
            axes.set(title=panel.title, xlabel=x_label, ylabel=y_label)
            _scale(axes.xaxis, "log" if panel.logarithmic_x else "linear")
            _scale(axes.yaxis, "log" if panel.logarithmic_y and lowest > 0 else "linear")
            if panel.logarithmic_x:
                axes.set_xticks(sorted({place for line in panel.lines.values() for place in line}))
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=3)

    return _draw(PANEL * rows + LINE * -(-len(names) // 3), paint)
