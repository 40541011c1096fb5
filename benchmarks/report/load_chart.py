"""Small multiples for what a design does at ever higher rates."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.report import lines, picture, scale
from benchmarks.report.load_test import Curve, Distribution
from benchmarks.report.picture import Picture
from benchmarks.report.spread import Spread, more_than_a_decade
from benchmarks.report.strokes import Stroke, strokes

PANELS = {
    "achieved": "achieved, requests/s",
    "cpu_seconds": "processor time of a run, seconds",
    "late_p99_ms": "p99 lateness, milliseconds",
    "held": "watch-list entries held at the end",
}
# The others are in proportion to the rate as long as a design keeps up, which linear scales show.
LOGARITHMIC = "late_p99_ms"
# What it does alone limits what can be seen of the designs.
GENERATORS = ("achieved", "cpu_seconds")
GENERATOR = Stroke("#808080", (0, (1, 1)), "", 1)
AS_TARGETED = "achieved = target"
SATURATED = "saturated"
# Inches.
PANEL = 2.4
AROUND_PICTURE = 0.4


def load_chart(distribution: Distribution) -> Picture | None:
    """All designs under one distribution of completion times; None where no rate was tried."""
    curves = [curve for curve in distribution.curves if curve.points]
    if not curves:
        return None
    drawn = strokes([curve.name for curve in curves])
    highest = max(point.target for curve in curves for point in curve.points)

    def paint(figure: Figure) -> None:
        panels = [figure.add_subplot(2, 2, number) for number in range(1, len(PANELS) + 1)]
        for axes, (metric, title) in zip(panels, PANELS.items(), strict=True):
            axes.set_title(title)
            for curve in curves:
                _draw(axes, curve, metric, drawn[curve.name])
            if metric in GENERATORS:
                _draw(axes, distribution.generator, metric, GENERATOR)
            scale.linear_x(axes, 0, highest * 1.03)
            _scale(axes, curves, metric)
            axes.grid()
            axes.set_xlabel("target, requests/s")
        scale.linear_y(panels[0], 0, highest * 1.03)
        panels[0].plot((0, highest), (0, highest), color=picture.INK, linewidth=0.8, label=AS_TARGETED)
        panels[0].plot([], [], "o", color=picture.INK, markerfacecolor="white", label=SATURATED)
        lines.legend(figure, panels)

    entries = len(curves) + len((distribution.generator, AS_TARGETED, SATURATED))
    height = AROUND_PICTURE + PANEL * 2 + lines.legend_height(entries)
    return picture.draw(height, paint, _alt(distribution, curves))


def _draw(axes: Axes, curve: Curve, metric: str, stroke: Stroke) -> None:
    """Saturated points are hollow."""
    measured = [point for point in curve.points if metric in point.figures]
    targets = [point.target for point in measured]
    spreads = [Spread.of(point.figures[metric]) for point in measured]
    lines.draw(axes, targets, spreads, stroke, curve.name)
    saturated = [at for at, point in enumerate(measured) if point.saturated]
    axes.plot(
        [targets[at] for at in saturated],
        [spreads[at].median for at in saturated],
        linestyle="",
        marker=stroke.marker,
        color=stroke.color,
        markerfacecolor="white",
        zorder=stroke.layer + 0.5,
    )


def _scale(axes: Axes, curves: Sequence[Curve], metric: str) -> None:
    measured = [
        point.figures[metric] for curve in curves for point in curve.points if metric in point.figures
    ]
    spreads = [Spread.of(figures) for figures in measured]
    if metric == LOGARITHMIC and spreads and more_than_a_decade(spreads):
        low, high = min(spread.low for spread in spreads), max(spread.high for spread in spreads)
        scale.logarithmic_y(axes, low / 1.3, high * 1.3)
    else:
        scale.linear_y(axes, 0, max((spread.high for spread in spreads), default=0.0) * 1.05)


def _alt(distribution: Distribution, curves: Sequence[Curve]) -> str:
    outcomes = (
        f"{curve.name} with all rates tried"
        if curve.saturated_at is None
        else f"{curve.name} up to {curve.kept_up_to or 0:,.0f} requests/s"
        for curve in curves
    )
    return (
        f"Achieved rate, processor time, p99 lateness and entries held against the target rate, "
        f"{distribution.name}. What keeps up: {'; '.join(outcomes)}."
    )
