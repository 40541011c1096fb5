"""Pictures as SVG: text stays text, and the same figures always give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.harness.benchmark import Spread

# Inches, of 72 points: the width of a page of text on GitHub.
WIDTH = 9.0
INK = "#333333"
PURGATORY = "#0072b2"
# "default": not the settings of the user's own matplotlibrc.
STYLE = ["default", str(Path(__file__).with_name("pictures.mplstyle"))]
# Okabe and Ito's colours, which any kind of colour vision tells apart; without the yellow, which is lost on
# white, and the blue, which is purgatory's.
COLORS = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
# For more lines than colours, and for readers who see no colours.
MARKERS = "sD^vPX*"
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 2, 1.5, 2)))
# The designs that are in many pictures have the first colours in all of them.
FAMILIAR = ("Kafka 0.8", "Kafka's present design", "Kafka 0.9")
LEGEND_COLUMNS = 3
# Inches.
LEGEND_LINE = 0.2
# Two groups of cases share a picture if they have at least this part in common: otherwise much of it is
# empty.
IN_COMMON = 0.75


@dataclass(frozen=True)
class Picture:
    """An SVG file's text, and its alternative text."""

    svg: str
    alt: str


@dataclass(frozen=True)
class Stroke:
    """The look of a line. Lines with a higher layer lie above the others."""

    color: str
    dash: Any
    marker: str
    layer: int


def draw(height: float, paint: Callable[[Figure], None], alt: str) -> Picture:
    """The picture that `paint` draws on a white figure of so many inches."""
    text = io.StringIO()
    with matplotlib.style.context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor="white")
        paint(figure)
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    # Some lines of matplotlib's end in a blank.
    return Picture("".join(line.rstrip() + "\n" for line in text.getvalue().splitlines()), alt)


def is_purgatory(name: str) -> bool:
    """Whether the name is that of this library, in any build or setting."""
    return name.startswith("purgatory")


def mostly_same(names: Iterable[str], others: Iterable[str]) -> bool:
    """Whether most of the names are the same."""
    some, more = set(names), set(others)
    return len(some & more) >= IN_COMMON * len(some | more)


def more_than_a_decade(spreads: Iterable[Spread]) -> bool:
    """Whether a logarithmic scale shows the spreads better; all of them have to be positive for that."""
    known = list(spreads)
    low, high = min(spread.low for spread in known), max(spread.high for spread in known)
    return low > 0 and high > 10 * low


def strokes(names: Sequence[str]) -> dict[str, Stroke]:
    """A stroke for each name, no two alike. Purgatory's lines have its own colour."""
    own = [name for name in names if is_purgatory(name)]
    assigned = {name: Stroke(PURGATORY, DASHES[turn % len(DASHES)], "o", 3) for turn, name in enumerate(own)}
    others = [name for name in names if not is_purgatory(name)]
    familiar = {
        turn: name
        for turn, start in enumerate(FAMILIAR)
        for name in reversed(others)
        if name.startswith(start)
    }
    rest = iter([name for name in others if name not in familiar.values()])
    for turn in range(len(others) + len(FAMILIAR)):
        name = familiar.get(turn) or next(rest, None)
        if name is not None:
            dash = DASHES[turn // len(COLORS) % len(DASHES)]
            assigned[name] = Stroke(COLORS[turn % len(COLORS)], dash, MARKERS[turn % len(MARKERS)], 2)
    return assigned


def draw_line(
    axes: Axes, places: Sequence[float], spreads: Sequence[Spread], stroke: Stroke, label: str
) -> None:
    """Draw the medians as a line, and minimum to maximum as a band below all lines."""
    lows, highs = [spread.low for spread in spreads], [spread.high for spread in spreads]
    axes.fill_between(places, lows, highs, color=stroke.color, alpha=0.15, linewidth=0, zorder=1)
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
    """Draw one legend for all panels, above them."""
    entries: dict[str, Artist] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    figure.legend(entries.values(), entries.keys(), loc="outside upper left", ncols=LEGEND_COLUMNS)


def legend_height(count: int) -> float:
    """The inches that so many entries take."""
    return LEGEND_LINE * -(-count // LEGEND_COLUMNS)
