"""The page of a benchmark: its tables, and the charts beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Column, Result, Row, Table
from benchmarks.harness.report import markdown
from benchmarks.harness.report.charts import Lines, Panel, bar_chart, line_chart
from benchmarks.harness.report.markdown import Page

# In the name of a section ("callback style, N = 10,000") or in the heading of a column ("n = 1,000").
SIZE = re.compile(r"[,;]?\s*\bn = (\d+(?:,\d{3})*)", re.IGNORECASE)


def benchmark_page(origin: str, result: Result) -> Page:
    """The page of one benchmark of a run, whose origin is a phrase."""
    name = markdown.slug(result.name)
    title = result.summary[0].upper() + result.summary[1:]
    charts: dict[str, str] = {}
    paragraphs = [f"# {markdown.escape(title)}"]
    paragraphs += [f"{origin}. {markdown.link('All benchmarks', '../README.md')}", tables.HOW_TO_READ]
    for table in result.tables:
        stem, heading = f"{name}-{markdown.slug(table.columns[0].metric)}", table.columns[0].heading
        paragraphs.append(f"## {markdown.escape(table.title)}")
        sections = ratios_by_section(result, table)
        if sections:
            label = f"{heading}: ratio to the first of each section"
            charts[f"{stem}.svg"] = bar_chart(sections, label)
            alt = f"Bar chart of {label}; the figures are in the table."
            paragraphs.append(markdown.image(alt, f"{stem}.svg"))
        headings = ["", *map(markdown.escape, tables.headings(table))]
        paragraphs.append(markdown.table(headings, _rows(result, table)))
        paragraphs.append(markdown.escape(table.note))
        over_sections = growths(result, table.columns[:1], lambda row, _: row.section)
        lines = over_sections or growths(
            result, table.columns, lambda row, column: f"{row.section}, {column.heading}"
        )
        if lines:
            panels = [Panel(where, each) for where, each in lines.items()]
            file, quantity = f"{stem}-growth.svg", table.title.rpartition(": ")[2]
            charts[file] = line_chart(panels, "n", f"{heading}, {quantity}" if over_sections else quantity)
            names = dict.fromkeys(name for panel in panels for name in panel.lines)
            paragraphs.append(markdown.image(f"Lines of {quantity} against n for {'; '.join(names)}.", file))
        if over_sections:
            paragraphs.append(f"In relation to the smallest n:\n\n{_growth_table(over_sections)}")
    return Page(name, title, markdown.page(*paragraphs), charts)


def ratios_by_section(result: Result, table: Table) -> Mapping[str, Mapping[str, Sequence[float]]]:
    """The ratios of the table's first column, in sections with something to compare."""
    metric = table.columns[0].metric
    sections = {
        section: {row.name: ratios for row in rows if (ratios := result.ratios(row, metric))}
        for section, rows in result.sections(table).items()
    }
    return {section: bars for section, bars in sections.items() if len(bars) > 1}


def split_size(text: str) -> tuple[str, int | None]:
    """The text without its n, and the n."""
    match = SIZE.search(text)
    if match is None:
        return text, None
    return SIZE.sub("", text, count=1).strip(" ,;"), int(match[1].replace(",", ""))


def growths(
    result: Result, columns: Sequence[Column], label: Callable[[Row, Column], str]
) -> Mapping[str, Lines]:
    """The figures by n, where labels differ only in their n: by the rest of the label and the case."""
    found: dict[str, dict[str, dict[float, list[float]]]] = {}
    for row, column in product(result.cases, columns):
        where, size = split_size(label(row, column))
        figures = row.figures(column.metric)
        if size is not None and figures:
            found.setdefault(where, {}).setdefault(row.name, {})[size] = figures
    return {
        where: {name: dict(sorted(line.items())) for name, line in lines.items()}
        for where, lines in found.items()
        if len({size for line in lines.values() for size in line}) > 1
    }


def ratios_to_smallest(line: Mapping[float, Sequence[float]], size: float) -> list[float]:
    """The figures for `size` in relation to those for the smallest n, each within its own repetition."""
    pairs = zip(line.get(size, ()), line[min(line)], strict=False)
    return [figure / base for figure, base in pairs if base]


def _rows(result: Result, table: Table) -> Iterator[list[str]]:
    for name, *others in tables.rows(result, table, list):
        escaped = markdown.escape(name)
        yield [escaped, *others] if others else [f"**{escaped}**"]


def _growth_table(growths: Mapping[str, Lines]) -> str:
    sizes = sorted({size for lines in growths.values() for line in lines.values() for size in line})
    rows: list[Sequence[str]] = []
    for where, lines in growths.items():
        if where:
            rows.append([f"**{markdown.escape(where)}**"])
        for name, line in lines.items():
            ratios = (ratios_to_smallest(line, size) for size in sizes)
            shown = [tables.spread(each) for each in ratios]
            shown[sizes.index(min(line))] = "1"
            rows.append([markdown.escape(name), *shown])
    return markdown.table(["", *(f"n = {size:,}" for size in sizes)], rows)
