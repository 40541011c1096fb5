"""The table of docs/performance.md that shows this library beside Kafka."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.harness.benchmark import Result
from benchmarks.harness.markdown import escape, grid
from benchmarks.harness.record import Run
from benchmarks.harness.tables import figure, spread

# Where the table is.
PLACE = re.compile(r"(?<=<!-- beside Kafka -->\n\n).*?(?=<!-- end -->\n)", re.DOTALL)
METRICS = re.compile(r"(us|late_p99_ms|early|bytes|held|visited)(_\d+)?")


def fill(page: Path, runs: Iterable[Run]) -> None:
    """Write the table of these runs into the page, where they have one and the page has a place for it."""
    results = [result for run in runs for result in run.benchmarks if result.suite == "kafka"]
    if results and page.exists():
        page.write_text(PLACE.sub(lambda _: f"{table(results)}\n", page.read_text()))


def table(results: Sequence[Result]) -> str:
    """A row for each figure, with its ratios to Kafka's. First come those in which Kafka is ahead."""
    names = dict.fromkeys(row.name for result in results for row in result.cases)
    # Rows that are equal keep the order of the benchmarks.
    lines = sorted(_lines(results), key=lambda line: line[0], reverse=True)
    return grid(
        ["", *names], [[label, *(cells.get(name, "") for name in names)] for _, label, cells in lines]
    )


def _lines(results: Sequence[Result]) -> Iterator[tuple[float, str, dict[str, str]]]:
    """The worst ratio, the label, and the cells by their columns."""
    for result in results:
        columns = [(table, column) for table in result.tables for column in table.columns]
        for table, column in columns:
            if METRICS.fullmatch(column.metric):
                for section, rows in result.sections(table).items():
                    worst, cells = 0.0, {}
                    for row in rows:
                        ratios = result.ratios(row, column.metric)
                        cells[row.name] = spread(row.figures(column.metric))
                        if ratios and row is not result.reference(row):
                            worst = max(worst, median(ratios))
                            cells[row.name] += f"<br>{figure(median(ratios))} times"
                    yield worst, escape(f"{section}, {column.heading}"), cells
