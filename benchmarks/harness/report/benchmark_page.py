"""The page of a benchmark: its tables, and the pictures beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Result, Table
from benchmarks.harness.report import growth_chart, markdown
from benchmarks.harness.report.growth_chart import Growth
from benchmarks.harness.report.markdown import Page
from benchmarks.harness.report.picture import mostly_same
from benchmarks.harness.report.ratio_chart import groups, ratio_chart

HOW_TO_READ = (
    "Medians (minimum-maximum) of interleaved repetitions. Less is better, except in figures per "
    "second. The ratio is that of the column beside it to the first row of its section, within the same "
    "repetition."
)


def benchmark_page(origin: str, result: Result) -> Page:
    """The page of one benchmark of a run, whose origin is a phrase."""
    benchmark = result.benchmark
    name = markdown.slug(benchmark.name)
    title = benchmark.summary[0].upper() + benchmark.summary[1:]
    pictures: dict[str, str] = {}
    paragraphs = [f"# {markdown.escape(title)}"]
    paragraphs += [f"{origin}. {markdown.link('All benchmarks', '../README.md')}", HOW_TO_READ]
    for table in benchmark.tables:
        stem = f"{name}-{markdown.slug(table.columns[0].metric)}"
        paragraphs.append(f"## {markdown.escape(table.title)}")
        ratios = ratio_chart(result, table)
        if ratios is not None:
            pictures[f"{stem}.svg"] = ratios.svg
            paragraphs.append(markdown.image(ratios.alt, f"{stem}.svg"))
        headings = ["", "ratio", *(column.heading for column in table.columns), "runs"]
        paragraphs.append(markdown.table(list(map(markdown.escape, headings)), _rows(result, table)))
        paragraphs.append(markdown.escape(table.note))
        over_sections = growth_chart.over_sections(result, table)
        growths = over_sections or growth_chart.over_columns(result, table)
        for number, group in enumerate(groups(growths, _share_a_picture), 1):
            picture = growth_chart.growth_chart(group, table)
            pictures[f"{stem}-growth-{number}.svg"] = picture.svg
            paragraphs.append(markdown.image(picture.alt, f"{stem}-growth-{number}.svg"))
        paragraphs.append(_growth_table(over_sections))
    return Page(name, title, markdown.page(*paragraphs), pictures)


def _share_a_picture(growth: Growth, other: Growth) -> bool:
    return mostly_same(growth.lines, other.lines)


def _rows(result: Result, table: Table) -> Iterator[Sequence[str]]:
    section = None
    for case in result.shown_in(table):
        if case.section != section:
            section = case.section
            yield [f"**{markdown.escape(section)}**", *[""] * (len(table.columns) + 2)]
        name, *others = tables.cells(result, table, case, tables.spread)
        yield [markdown.escape(name), *others]


def _growth_table(growths: Sequence[Growth]) -> str:
    if not growths:
        return ""
    sizes = sorted({size for growth in growths for size in growth.sizes})
    rows: list[Sequence[str]] = []
    for growth in growths:
        if growth.where:
            rows.append([f"**{markdown.escape(growth.where)}**", *[""] * len(sizes)])
        rows += [[markdown.escape(name), *_ratios(line, sizes)] for name, line in growth.lines.items()]
    headings = ["", *(f"n = {size:,}" for size in sizes)]
    return "In relation to the smallest n:\n\n" + markdown.table(headings, rows)


def _ratios(line: Mapping[int, list[float]], sizes: Sequence[int]) -> Iterator[str]:
    for size in sizes:
        ratios = growth_chart.ratios(line, size) if size in line else []
        yield "1" if size == min(line) else tables.spread(ratios) if ratios else "-"
