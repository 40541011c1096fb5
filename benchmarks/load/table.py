"""What came of it, in tables that fit 100 columns."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from benchmarks import tables
from benchmarks.load.distribution import Distribution
from benchmarks.load.measurement import ACHIEVED, Point
from benchmarks.load.sweep import Curve, Sweep

RATES_NOTE = (
    f"*: saturated, that is below {ACHIEVED:.0%} of the target or more than 100 ms behind at the end. "
    "Nobody is measured any further after two of these in a row."
)
COSTS_NOTE = (
    "Processor time per request, and its ratio to the first row's. What the generator takes alone is left "
    "out, but for Kafka itself, where that and the just-in-time compiler are threads of the same process. "
    "Late: after the timeout. Held: entries on the watch lists when the last request had ended. MB: by how "
    "much the process has grown."
)


def show(distribution: Distribution, sweep: Sweep, console: Console) -> None:
    """Print the rates achieved, and what it takes at a rate that all keep up with."""
    for table, note in ((_rates(distribution, sweep), RATES_NOTE), (_costs(sweep), COSTS_NOTE)):
        console.print(table)
        console.print(Padding(note, (0, 0, 1, 1)), width=tables.WIDTH, style="dim")


def _grid(title: str) -> Table:
    return Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False, padding=0
    )


def _rates(distribution: Distribution, sweep: Sweep) -> Table:
    grid = _grid(
        f"{distribution.name}, timeout {distribution.timeout_ms:g} ms, {distribution.keys} keys: "
        "thousands of requests a second"
    )
    grid.add_column("target", justify="right")
    for curve in sweep.curves:
        grid.add_column(f"{curve.contestant.design},\n{curve.contestant.build}", justify="right")
    for measured in sweep.generator.points:
        points = (curve.at(measured.rate) for curve in sweep.curves)
        grid.add_row(thousands(measured.rate), *(_achieved(point) if point else "" for point in points))
    return grid


def _achieved(point: Point) -> str:
    figures = point.figures("achieved")
    shown = thousands(statistics.median(figures))
    if len(figures) > 1:
        shown += f" ({thousands(min(figures))}-{thousands(max(figures))})"
    return f"{shown} *" if point.saturated else f"{shown}  "


def thousands(rate: float) -> str:
    """A rate, in thousands."""
    return f"{rate / 1e3:.0f}" if rate >= 10_000 else f"{rate / 1e3:.1f}"


def _costs(sweep: Sweep) -> Table:
    rate = common_rate(sweep)
    grid = _grid(f"At {rate:,} requests a second")
    grid.add_column("", no_wrap=True)
    headings = ("keeps up to", "us/request", "ratio", "late p99 ms", "p50", "held", "MB")
    for heading in headings:
        grid.add_column(heading, justify="right", no_wrap=True)
    builds = Counter(curve.contestant.design for curve in sweep.curves)
    for curve in sweep.curves:
        contestant = curve.contestant
        name = str(contestant) if builds[contestant.design] > 1 else contestant.design
        grid.add_row(name, *_cells(sweep, curve, rate))
    return grid


def _cells(sweep: Sweep, curve: Curve, rate: int) -> Iterator[str]:
    kept = curve.kept_up_with
    yield f"{kept:,}/s" if kept else "-"
    costs, reference = _cost(sweep, curve, rate), _cost(sweep, sweep.curves[0], rate)
    yield tables.spread(costs) if costs else "-"
    if curve is sweep.curves[0]:
        yield "1"
    elif costs and reference and statistics.median(reference) > 0:
        yield tables.figure(statistics.median(costs) / statistics.median(reference))
    else:
        yield "-"
    point = curve.at(rate) or Point(rate)
    late = point.figures("late_p99_ms")
    yield tables.spread(late) if late else "-"
    for metric, shown in (("late_p50_ms", "{:.1f}"), ("held", "{:,.0f}"), ("rss_mb", "{:,.0f}")):
        figures = point.figures(metric)
        # The zero turns a negative one, of what is just early, into the usual one.
        yield shown.format(round(statistics.median(figures), 1) + 0.0) if figures else "-"


def _cost(sweep: Sweep, curve: Curve, rate: int) -> list[float]:
    """Microseconds per request in each repetition; none where that was not measured."""
    point, generator = curve.at(rate), sweep.generator.at(rate)
    if point is None or generator is None:
        return []
    apart = 0.0 if curve.contestant.build == "JVM" else statistics.median(_spent(generator))
    return [spent - apart for spent in _spent(point)]


def _spent(point: Point) -> list[float]:
    return [
        measured.cpu_seconds / measured.sent * 1e6
        for measured in point.measurements
        if measured.cpu_seconds is not None
    ]


def common_rate(sweep: Sweep) -> int:
    """The highest rate that everybody keeps up with; the lowest of all where there is none."""
    kept = [curve.kept_up_with for curve in sweep.curves]
    lowest = sweep.generator.points[0].rate
    return min((rate if rate is not None else lowest for rate in kept), default=lowest)
