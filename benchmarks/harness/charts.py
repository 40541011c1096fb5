"""Charts as SVG: text stays text, and the same figures always give the same bytes."""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import matplotlib.style
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from benchmarks.harness import tables

# Inches: the width of a page of text on GitHub.
WIDTH = 9.0
LINE, PANEL = 0.2, 2.8
# For readers who see no colours.
MARKERS = "os^DvPX*<>p"

Lines = Mapping[str, Mapping[float, Sequence[float]]]
"""By name: the figures of the repetitions at each place of the horizontal axis."""

# "default": not the settings of the user's own matplotlibrc.
matplotlib.style.use(["default", str(Path(__file__).with_name("charts.mplstyle"))])


@dataclass(frozen=True)
class Panel:
    """Lines on axes of their own."""

    title: str
    lines: Lines
    logarithmic_x: bool = True
    logarithmic_y: bool = True


def _svg(figure: Figure) -> str:
    # The last digits of what the layout computes are not the same every time, and the ids of the clipping
    # rectangles derive from them.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(tuple(round(each, 9) for each in axes.get_position().bounds))
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    # Some lines of matplotlib's end in a blank.
    return "".join(line.rstrip() + "\n" for line in text.getvalue().splitlines())


def _scale(axis: Axis, scale: str) -> None:
    """Scale an axis "log" or "linear", with plain numbers on it."""
    axis.axes.set(**{f"{axis.axis_name}scale": scale})  # type: ignore[attr-defined]
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if scale == "log" else MaxNLocator(5))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(StrMethodFormatter("{x:,.7g}"))


def _errors(repetitions: Iterable[Sequence[float]]) -> list[list[float]]:
    """How far the minimum and the maximum are from the median."""
    ends = [(median(each) - min(each), max(each) - median(each)) for each in repetitions]
    return [list(end) for end in zip(*ends, strict=True)]


def bar_chart(sections: Mapping[str, Mapping[str, Sequence[float]]], label: str) -> str:
    """Bars for the ratios of each section, with error bars from minimum to maximum.

    The axis is logarithmic where the ratios are positive and differ by more than ten times.
    """
    ratios = [ratio for bars in sections.values() for each in bars.values() for ratio in each]
    scale = "log" if 0 < 10 * min(ratios) < max(ratios) else "linear"
    start = 1.0 if scale == "log" else 0.0
    counts = [len(bars) for bars in sections.values()]
    height = 2 * LINE + 3 * LINE * len(sections) + LINE * sum(counts)
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    panels = figure.subplots(len(sections), sharex=True, squeeze=False, height_ratios=counts)
    for axes, (section, bars) in zip(panels.flat, sections.items(), strict=True):
        medians, places = list(map(median, bars.values())), range(len(bars))
        colors = ["C0" if name.startswith("purgatory") else "0.7" for name in bars]
        widths = [middle - start for middle in medians]
        drawn = axes.barh(places, widths, left=start, xerr=_errors(bars.values()), color=colors)
        axes.bar_label(drawn, list(map(tables.figure, medians)), padding=3)
        axes.set(title=section, yticks=places, yticklabels=list(bars))
        axes.invert_yaxis()
        axes.axvline(1, color="C0")
        axes.margins(x=0.1)
        _scale(axes.xaxis, scale)
    figure.supxlabel(f"{label}{', logarithmic' if scale == 'log' else ''}", fontsize="medium")
    return _svg(figure)


def line_chart(panels: Sequence[Panel], x_label: str, y_label: str = "") -> str:
    """A panel for each group of lines, with medians and error bars from minimum to maximum.

    A vertical axis with a figure that is not positive is linear.
    """
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    rows = -(-len(panels) // 2)
    height = PANEL * rows + LINE * -(-len(names) // 3)
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    grid = figure.subplots(rows, min(2, len(panels)), squeeze=False)
    handles = {}
    for axes, panel in zip(grid.flat, panels, strict=False):
        for name, line in panel.lines.items():
            color, marker = f"C{names.index(name)}", MARKERS[names.index(name) % len(MARKERS)]
            medians, errors = list(map(median, line.values())), _errors(line.values())
            handles[name] = axes.errorbar(list(line), medians, yerr=errors, color=color, marker=marker)
        axes.set(title=panel.title, xlabel=x_label, ylabel=y_label)
        _scale(axes.xaxis, "log" if panel.logarithmic_x else "linear")
        figures = [each for line in panel.lines.values() for figures in line.values() for each in figures]
        positive = min(figures, default=0.0) > 0
        _scale(axes.yaxis, "log" if panel.logarithmic_y and positive else "linear")
        if panel.logarithmic_x:
            axes.set_xticks(sorted({place for line in panel.lines.values() for place in line}))
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=3)
    return _svg(figure)
