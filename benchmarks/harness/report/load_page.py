"""The page of the load test, with a chart for each distribution of completion times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Result
from benchmarks.harness.load_test import curves, kept_up_to, rate, saturated, saturated_at
from benchmarks.harness.report import markdown
from benchmarks.harness.report.charts import Panel, line_chart
from benchmarks.harness.report.markdown import Page

TITLE = "Requests at ever higher rates, until it saturates"
HOW_TO_READ = (
    "For {seconds:g} s requests come at the target rate, and complete after log-normally distributed times, "
    "or expire. Points are medians of the repetitions, error bars reach from minimum to maximum. A saturated "
    "design did not keep up with the target; it then does not get the rest of the requests."
)
PANELS = {
    "achieved": "achieved, requests/s",
    "cpu_seconds": "processor time of a run, seconds",
    "late_p99_ms": "p99 lateness, milliseconds",
    "held": "watch-list entries held at the end",
}


def load_page(origin: str, seconds: float | None, results: Sequence[Result]) -> Page:
    """The page for all distributions of a run, whose origin is a phrase."""
    charts: dict[str, str] = {}
    paragraphs = [f"# {TITLE}", f"{origin}. {markdown.INDEX}", HOW_TO_READ.format(seconds=seconds)]
    for result in results:
        paragraphs += [f"## {markdown.escape(result.name)}", result.summary]
        file = f"load-{markdown.slug(result.name)}.svg"
        charts[file] = _chart(result)
        alt = "Achieved rate, processor time, p99 lateness and entries held against the target rate"
        paragraphs.append(f"![{markdown.escape(f'{alt}, {result.name}.')}]({file})")
        *designs, _ = curves(result).items()
        rows = [
            [
                markdown.escape(name),
                _rate(kept_up_to(curve), "-"),
                _rate(saturated_at(curve), "no rate tried"),
            ]
            for name, curve in designs
        ]
        paragraphs.append(markdown.table(["", "keeps up to, requests/s", "saturated at"], rows))
        headings = ["target/s", *(column.heading for column in result.tables[0].columns)]
        figures = markdown.table(headings, _rows(result))
        paragraphs.append(f"<details>\n<summary>All figures</summary>\n\n{figures}\n</details>")
    return Page("load", TITLE, markdown.page(*paragraphs), charts)


def _rate(rate: int | None, otherwise: str) -> str:
    return otherwise if rate is None else f"{rate:,}"


def _rows(result: Result) -> Iterator[Sequence[str]]:
    for name, curve in curves(result).items():
        yield [f"**{markdown.escape(name)}**"]
        for row in curve:
            target = f"{row.name}{' (saturated)' if saturated(row) else ''}"
            yield [target, *(tables.spread(row.figures(each.metric)) for each in result.tables[0].columns)]


def _chart(result: Result) -> str:
    """All designs, and the generator, whose own figures limit what the designs can reach."""
    panels = []
    for metric, title in PANELS.items():
        lines: dict[str, dict[float, list[float]]] = {}
        for row in result.cases:
            figures = row.figures(metric)
            if figures:
                lines.setdefault(row.section, {})[rate(row)] = figures
        # The others are in proportion to the rate as long as a design keeps up, which linear scales show.
        logarithmic = metric == "late_p99_ms"
        panels.append(Panel(title, lines, logarithmic_x=False, logarithmic_y=logarithmic))
    return line_chart(panels, "target, requests/s")
