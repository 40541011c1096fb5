"""Pictures as SVG: text stays text, and the same figures always give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib.style
from matplotlib.figure import Figure

# Inches, of 72 points: as wide as a page of text on GitHub.
WIDTH = 9.0
INK = "#333333"
FAINT = "#d9d9d9"
PURGATORY = "#0072b2"

STYLE: Mapping[str, Any] = {
    "svg.fonttype": "none",
    # Names of what is used twice come out of this, and not out of chance.
    "svg.hashsalt": "asyncio-purgatory",
    # The first comes with matplotlib, so that the layout is the same everywhere; the second is as wide.
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "text.parse_math": False,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 3.5,
    "figure.constrained_layout.h_pad": 0.08,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
}


@dataclass(frozen=True)
class Picture:
    """An SVG file's text, and what to read where it cannot be seen."""

    svg: str
    alt: str


def draw(height: float, paint: Callable[[Figure], None], alt: str) -> Picture:
    """What `paint` puts on a white figure of so many inches."""
    text = io.StringIO()
    # "default": not what the user's own matplotlibrc says.
    with matplotlib.style.context(["default", dict(STYLE)]):
        figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor="white")
        paint(figure)
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    # Some lines of matplotlib's end in a blank.
    return Picture("".join(line.rstrip() + "\n" for line in text.getvalue().splitlines()), alt)


def is_purgatory(name: str) -> bool:
    """Whether it is this library, in whatever build or setting."""
    return name.startswith("purgatory")
