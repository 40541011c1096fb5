"""The page of the load test, with small multiples for each design at ever higher rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Spread
from benchmarks.harness.load_test import Curve, LoadTest, Sweep
from benchmarks.harness.report import axes as scale
from benchmarks.harness.report import markdown, picture
from benchmarks.harness.report.markdown import Page
from benchmarks.harness.report.picture import Picture, Stroke

TITLE = "Requests at ever higher rates, until it saturates"
HOW_TO_READ = (
    "For {seconds:g} s requests come at the target rate, and complete after log-normally distributed times, "
    "or expire. Points are medians of the repetitions, bands reach from minimum to maximum. A point is "
    "hollow where the design did not keep up with the target; it then does not get the rest of the requests."
)
COLUMNS = {
    "achieved": "achieved/s",
    "cpu_seconds": "processor time, s",
    "late_p50_ms": "late p50, ms",
    "late_p99_ms": "late p99, ms",
    "held": "entries held",
    "rss_mb": "resident set, MB",
}
PANELS = {
    "achieved": "achieved, requests/s",
    "cpu_seconds": "processor time of a run, seconds",
    "late_p99_ms": "p99 lateness, milliseconds",
    "held": "watch-list entries held at the end",
}
# The others are in proportion to the rate as long as a design keeps up, which linear scales show.
LOGARITHMIC = "late_p99_ms"
# The generator's own figures in these panels limit what the designs can reach.
WITH_GENERATOR = ("achieved", "cpu_seconds")
GENERATOR = Stroke("#808080", (0, (1, 1)), "", 1)
AS_TARGETED, SATURATED = "achieved = target", "saturated"
# Inches.
PANEL = 2.4
AROUND_PICTURE = 0.4


def load_page(origin: str, load: LoadTest) -> Page:
    """The page for all distributions of a run, whose origin is a phrase."""
    pictures: dict[str, str] = {}
    paragraphs = [f"# {TITLE}", f"{origin}. {markdown.link('All benchmarks', '../README.md')}"]
    paragraphs.append(HOW_TO_READ.format(seconds=load.seconds))
    if load.kafka_missing:
        missing = markdown.escape(load.kafka_missing)
        paragraphs.append(f"Kafka's own test on the JVM is not among them: {missing}.")
    for sweep in load.sweeps:
        paragraphs.append(f"## {markdown.escape(sweep.name)}")
        paragraphs.append(
            f"Half of the requests complete within {sweep.p50_ms:g} ms, three quarters within "
            f"{sweep.p75_ms:g} ms; timeout {sweep.timeout_ms:g} ms; {sweep.keys} keys each."
        )
        chart = load_chart(sweep)
        if chart is not None:
            file = f"load-{markdown.slug(sweep.name)}.svg"
            pictures[file] = chart.svg
            paragraphs.append(markdown.image(chart.alt, file))
        limits = ([markdown.escape(sweep.label(curve)), *_limits(curve)] for curve in sweep.curves)
        paragraphs.append(markdown.table(["", "keeps up to, requests/s", "saturated at"], limits))
        figures = markdown.table(["target/s", *COLUMNS.values()], _rows(sweep))
        paragraphs.append(f"<details>\n<summary>All figures</summary>\n\n{figures}\n</details>")
    return Page("load", TITLE, markdown.page(*paragraphs), pictures)


def _limits(curve: Curve) -> Iterator[str]:
    yield "-" if curve.kept_up_to is None else f"{curve.kept_up_to:,.0f}"
    yield "no rate tried" if curve.saturated_at is None else f"{curve.saturated_at:,.0f}"


def _rows(sweep: Sweep) -> Iterator[Sequence[str]]:
    for curve in (*sweep.curves, sweep.generator):
        yield [f"**{markdown.escape(sweep.label(curve))}**", *[""] * len(COLUMNS)]
        for point in curve.points:
            yield [
                f"{point.target:,.0f}" + (" (saturated)" if point.saturated else ""),
                *(
                    tables.spread(point.figures[metric]) if point.figures[metric] else "-"
                    for metric in COLUMNS
                ),
            ]


def load_chart(sweep: Sweep) -> Picture | None:
    """All designs with one distribution of completion times; None where no rate was tried."""
    curves = {sweep.label(curve): curve for curve in sweep.curves if curve.points}
    if not curves:
        return None
    drawn = picture.strokes(list(curves))
    highest = max(point.target for curve in curves.values() for point in curve.points)

    def paint(figure: Figure) -> None:
        panels = [figure.add_subplot(2, 2, number) for number in range(1, len(PANELS) + 1)]
        for axes, (metric, title) in zip(panels, PANELS.items(), strict=True):
            axes.set_title(title)
            for name, curve in curves.items():
                _draw(axes, curve, metric, drawn[name], name)
            if metric in WITH_GENERATOR:
                _draw(axes, sweep.generator, metric, GENERATOR, sweep.generator.design)
            scale.linear(axes, "x", 0, highest * 1.03)
            _scale(axes, list(curves.values()), metric)
            axes.grid()
            axes.set_xlabel("target, requests/s")
        scale.linear(panels[0], "y", 0, highest * 1.03)
        panels[0].plot((0, highest), (0, highest), color=picture.INK, linewidth=0.8, label=AS_TARGETED)
        panels[0].plot([], [], "o", color=picture.INK, markerfacecolor="white", label=SATURATED)
        picture.legend(figure, panels)

    outcomes = (
        f"{name} with all rates tried"
        if curve.saturated_at is None
        else f"{name} up to {curve.kept_up_to or 0:,.0f} requests/s"
        for name, curve in curves.items()
    )
    alt = (
        f"Achieved rate, processor time, p99 lateness and entries held against the target rate, "
        f"{sweep.name}. What keeps up: {'; '.join(outcomes)}."
    )
    entries = len(curves) + len((sweep.generator, AS_TARGETED, SATURATED))
    return picture.draw(AROUND_PICTURE + PANEL * 2 + picture.legend_height(entries), paint, alt)


def _draw(axes: Axes, curve: Curve, metric: str, stroke: Stroke, label: str) -> None:
    """Draw a line, with hollow markers where the design is saturated."""
    measured = [point for point in curve.points if point.figures[metric]]
    spreads = [Spread.of(point.figures[metric]) for point in measured]
    picture.draw_line(axes, [point.target for point in measured], spreads, stroke, label)
    saturated = [at for at, point in enumerate(measured) if point.saturated]
    axes.plot(
        [measured[at].target for at in saturated],
        [spreads[at].median for at in saturated],
        linestyle="",
        marker=stroke.marker,
        color=stroke.color,
        markerfacecolor="white",
        zorder=stroke.layer + 0.5,
    )


def _scale(axes: Axes, curves: Sequence[Curve], metric: str) -> None:
    measured = [point.figures[metric] for curve in curves for point in curve.points]
    spreads = [Spread.of(figures) for figures in measured if figures]
    if metric == LOGARITHMIC and spreads and picture.more_than_a_decade(spreads):
        low, high = min(spread.low for spread in spreads), max(spread.high for spread in spreads)
        scale.logarithmic(axes, "y", low / 1.3, high * 1.3)
    else:
        scale.linear(axes, "y", 0, max((spread.high for spread in spreads), default=0.0) * 1.05)
