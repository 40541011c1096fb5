"""The page of the load test, with a chart for each distribution of completion times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.harness import tables
from benchmarks.harness.load_test import LoadTest, Sweep
from benchmarks.harness.report import markdown
from benchmarks.harness.report.charts import Panel, line_chart
from benchmarks.harness.report.markdown import Page

TITLE = "Requests at ever higher rates, until it saturates"
HOW_TO_READ = (
    "For {seconds:g} s requests come at the target rate, and complete after log-normally distributed times, "
    "or expire. Points are medians of the repetitions, error bars reach from minimum to maximum. A saturated "
    "design did not keep up with the target; it then does not get the rest of the requests."
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


def load_page(origin: str, load: LoadTest) -> Page:
    """The page for all distributions of a run, whose origin is a phrase."""
    charts: dict[str, str] = {}
    paragraphs = [f"# {TITLE}", f"{origin}. {markdown.link('All benchmarks', '../README.md')}"]
    paragraphs.append(HOW_TO_READ.format(seconds=load.seconds))
    for sweep in load.sweeps:
        distribution = sweep.distribution
        paragraphs.append(f"## {markdown.escape(distribution.name)}")
        paragraphs.append(
            f"Half of the requests complete within {distribution.p50_ms:g} ms, three quarters within "
            f"{distribution.p75_ms:g} ms; timeout {distribution.timeout_ms:g} ms; "
            f"{distribution.keys} keys each."
        )
        file = f"load-{markdown.slug(distribution.name)}.svg"
        charts[file] = _chart(sweep)
        alt = "Achieved rate, processor time, p99 lateness and entries held against the target rate"
        paragraphs.append(markdown.image(f"{alt}, {distribution.name}.", file))
        rows = [
            [markdown.escape(name), _rate(curve.kept_up_to, "-"), _rate(curve.saturated_at, "no rate tried")]
            for name, curve in sweep.designs.items()
        ]
        paragraphs.append(markdown.table(["", "keeps up to, requests/s", "saturated at"], rows))
        figures = markdown.table(["target/s", *COLUMNS.values()], _rows(sweep))
        paragraphs.append(f"<details>\n<summary>All figures</summary>\n\n{figures}\n</details>")
    return Page("load", TITLE, markdown.page(*paragraphs), charts)


def _rate(rate: int | None, otherwise: str) -> str:
    return otherwise if rate is None else f"{rate:,}"


def _rows(sweep: Sweep) -> Iterator[Sequence[str]]:
    for name, curve in sweep.curves.items():
        yield [f"**{markdown.escape(name)}**", *[""] * len(COLUMNS)]
        for rate in curve:
            figures = (curve.figures(rate, metric) for metric in COLUMNS)
            target = f"{rate:,}{' (saturated)' if curve.saturated(rate) else ''}"
            yield [target, *(tables.spread(each) if each else "-" for each in figures)]


def _chart(sweep: Sweep) -> str:
    """All designs, and the generator, whose own figures limit what the designs can reach."""
    panels = []
    for metric, title in PANELS.items():
        lines: dict[str, dict[float, list[float]]] = {}
        for name, curve in sweep.curves.items():
            for rate in curve:
                figures = curve.figures(rate, metric)
                if figures:
                    lines.setdefault(name, {})[rate] = figures
        # The others are in proportion to the rate as long as a design keeps up, which linear scales show.
        logarithmic = metric == "late_p99_ms"
        panels.append(Panel(title, lines, logarithmic_x=False, logarithmic_y=logarithmic))
    return line_chart(panels, "target, requests/s")
