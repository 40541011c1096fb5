"""The page of the load test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks import tables
from benchmarks.report import markdown
from benchmarks.report.load_chart import load_chart
from benchmarks.report.load_test import Curve, Distribution, LoadTest
from benchmarks.report.page import Page
from benchmarks.report.run import Run

TITLE = "Requests at ever higher rates, until it saturates"
HOW_TO_READ = (
    "For {seconds:g} s requests come at the target rate, and complete after log-normally distributed times, "
    "or expire. Points are medians of the repetitions, bands reach from minimum to maximum. A point is "
    "hollow where the design did not keep up with the target; what has fallen behind is not offered the rest."
)
COLUMNS = {
    "achieved": "achieved/s",
    "cpu_seconds": "processor time, s",
    "late_p50_ms": "late p50, ms",
    "late_p99_ms": "late p99, ms",
    "held": "entries held",
    "rss_mb": "resident set, MB",
}


def load_page(run: Run, load: LoadTest) -> Page:
    """The page for all distributions."""
    pictures: dict[str, str] = {}
    paragraphs = [
        f"# {TITLE}",
        f"{run.origin}. {markdown.link('All benchmarks', '../README.md')}",
        HOW_TO_READ.format(seconds=load.seconds),
    ]
    if load.kafka_missing:
        paragraphs.append(
            f"Kafka's own test on the JVM is not among them: {markdown.escape(load.kafka_missing)}."
        )
    for distribution in load.distributions:
        paragraphs += [f"## {markdown.escape(distribution.name)}", _load(distribution)]
        picture = load_chart(distribution)
        if picture is not None:
            file = f"load-{markdown.slug(distribution.name)}.svg"
            pictures[file] = picture.svg
            paragraphs.append(markdown.image(picture.alt, file))
        paragraphs += [_keeps_up(distribution), _points(distribution)]
    return Page("load", TITLE, markdown.page(*paragraphs), pictures)


def _load(distribution: Distribution) -> str:
    return (
        f"Half of the requests complete within {distribution.p50_ms:g} ms, three quarters within "
        f"{distribution.p75_ms:g} ms; timeout {distribution.timeout_ms:g} ms; {distribution.keys} keys each."
    )


def _keeps_up(distribution: Distribution) -> str:
    return markdown.table(
        ["", "keeps up to, requests/s", "saturated at"],
        ([markdown.escape(curve.name), *_limits(curve)] for curve in distribution.curves),
    )


def _limits(curve: Curve) -> Iterator[str]:
    yield "-" if curve.kept_up_to is None else f"{curve.kept_up_to:,.0f}"
    yield "no rate tried" if curve.saturated_at is None else f"{curve.saturated_at:,.0f}"


def _points(distribution: Distribution) -> str:
    table = markdown.table(["target/s", *COLUMNS.values()], _rows(distribution))
    return markdown.folded("All figures", table)


def _rows(distribution: Distribution) -> Iterator[Sequence[str]]:
    for curve in (*distribution.curves, distribution.generator):
        yield [f"**{markdown.escape(curve.name)}**", *[""] * len(COLUMNS)]
        for point in curve.points:
            cells = (point.figures.get(metric) for metric in COLUMNS)
            yield [
                f"{point.target:,.0f}" + (" (saturated)" if point.saturated else ""),
                *("-" if figures is None else tables.spread(list(figures)) for figures in cells),
            ]
