"""The page of a benchmark: its tables, and the charts beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Case, Column, Result, Spread, Table
from benchmarks.harness.report import markdown
from benchmarks.harness.report.charts import Lines, Panel, bar_chart, line_chart
from benchmarks.harness.report.markdown import Page

HOW_TO_READ = (
    "Medians (minimum-maximum) of interleaved repetitions. Less is better, except in figures per "
    "second. The ratio is that of the column beside it to the first row of its section, within the same "
    "repetition."
)
# In the name of a section ("callback style, N = 10,000") or in the heading of a column ("n = 1,000").
SIZE = re.compile(r"[,;]?\s*\bn = (\d+(?:,\d{3})*)", re.IGNORECASE)


def benchmark_page(origin: str, result: Result) -> Page:
    """The page of one benchmark of a run, whose origin is a phrase."""
    benchmark = result.benchmark
    name = markdown.slug(benchmark.name)
    title = benchmark.summary[0].upper() + benchmark.summary[1:]
    charts: dict[str, str] = {}
    paragraphs = [f"# {markdown.escape(title)}"]
    paragraphs += [f"{origin}. {markdown.link('All benchmarks', '../README.md')}", HOW_TO_READ]
    for table in benchmark.tables:
        stem, heading = f"{name}-{markdown.slug(table.columns[0].metric)}", table.columns[0].heading
        paragraphs.append(f"## {markdown.escape(table.title)}")
        sections = ratios_by_section(result, table)
        if sections:
            label = f"{heading}: ratio to the first of each section"
            charts[f"{stem}.svg"] = bar_chart(sections, label)
            paragraphs.append(
                markdown.image(f"Bar chart of {label}; the figures are in the table.", f"{stem}.svg")
            )
        headings = ["", "ratio", *(column.heading for column in table.columns), "runs"]
        paragraphs.append(markdown.table(list(map(markdown.escape, headings)), _rows(result, table)))
        paragraphs.append(markdown.escape(table.note))
        over_sections = growths(result, table.columns[:1], lambda case, _: case.section)
        lines = over_sections or growths(
            result, table.columns, lambda case, column: f"{case.section}, {column.heading}"
        )
        if lines:
            panels = [Panel(where, each) for where, each in lines.items()]
            file, quantity = f"{stem}-growth.svg", table.title.rpartition(": ")[2]
            charts[file] = line_chart(panels, "n", f"{heading}, {quantity}" if over_sections else quantity)
            names = dict.fromkeys(name for panel in panels for name in panel.lines)
            paragraphs.append(markdown.image(f"Lines of {quantity} against n for {'; '.join(names)}.", file))
        paragraphs.append(_growth_table(over_sections))
    return Page(name, title, markdown.page(*paragraphs), charts)


def ratios_by_section(result: Result, table: Table) -> Mapping[str, Mapping[str, Spread]]:
    """The ratios of the table's first column, in sections with something to compare."""
    sections: dict[str, dict[str, Spread]] = {}
    for case in result.benchmark.cases:
        ratios = result.ratios(case, table.columns[0].metric)
        if ratios:
            sections.setdefault(case.section, {})[case.name] = Spread.of(ratios)
    return {section: ratios for section, ratios in sections.items() if len(ratios) > 1}


def split_size(text: str) -> tuple[str, int | None]:
    """The text without its n, and the n."""
    match = SIZE.search(text)
    if match is None:
        return text, None
    return SIZE.sub("", text, count=1).strip(" ,;"), int(match[1].replace(",", ""))


def growths(
    result: Result, columns: Sequence[Column], label: Callable[[Case, Column], str]
) -> Mapping[str, Lines]:
    """The figures by n, where labels differ only in their n: by the rest of the label and the case."""
    found: dict[str, dict[str, dict[float, list[float]]]] = {}
    for case in result.benchmark.cases:
        for column in columns:
            where, size = split_size(label(case, column))
            figures = result.figures(case, column.metric)
            if size is not None and figures:
                found.setdefault(where, {}).setdefault(case.name, {})[size] = figures
    return {
        where: {name: dict(sorted(line.items())) for name, line in lines.items()}
        for where, lines in found.items()
        if len({size for line in lines.values() for size in line}) > 1
    }


def ratios_to_smallest(line: Mapping[float, Sequence[float]], size: float) -> list[float]:
    """The figures for `size` in relation to those for the smallest n, each within its own repetition."""
    return [figure / base for figure, base in zip(line[size], line[min(line)], strict=False) if base]


def _rows(result: Result, table: Table) -> Iterator[Sequence[str]]:
    section = None
    for case in result.shown_in(table):
        if case.section != section:
            section = case.section
            yield [f"**{markdown.escape(section)}**", *[""] * (len(table.columns) + 2)]
        name, *others = tables.cells(result, table, case, tables.spread)
        yield [markdown.escape(name), *others]


def _growth_table(growths: Mapping[str, Lines]) -> str:
    if not growths:
        return ""
    sizes = sorted({size for lines in growths.values() for line in lines.values() for size in line})
    rows: list[Sequence[str]] = []
    for where, lines in growths.items():
        if where:
            rows.append([f"**{markdown.escape(where)}**", *[""] * len(sizes)])
        for name, line in lines.items():
            ratios = (ratios_to_smallest(line, size) if size in line else [] for size in sizes)
            shown = [tables.spread(each) if each else "-" for each in ratios]
            shown[sizes.index(min(line))] = "1"
            rows.append([markdown.escape(name), *shown])
    headings = ["", *(f"n = {size:,}" for size in sizes)]
    return "In relation to the smallest n:\n\n" + markdown.table(headings, rows)
