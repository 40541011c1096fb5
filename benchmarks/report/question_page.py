"""The page of a question: its tables, and the pictures beside them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from benchmarks import tables
from benchmarks.question import Answer, Contender, Table
from benchmarks.report import growth, markdown
from benchmarks.report.alike import groups, same_contenders
from benchmarks.report.growth import Growth, Line
from benchmarks.report.growth_chart import growth_chart
from benchmarks.report.page import Page
from benchmarks.report.ratio_chart import ratio_chart
from benchmarks.report.run import Run

HOW_TO_READ = (
    "Medians (minimum-maximum) of interleaved repetitions. Less is better, but in what is counted per "
    "second. The ratio is that of the column beside it to the first row of its section, within the same "
    "repetition."
)


def question_page(run: Run, answer: Answer) -> Page:
    """The page of one question."""
    question = answer.question
    name = markdown.slug(question.name)
    pictures: dict[str, str] = {}
    title = question.summary[0].upper() + question.summary[1:]
    paragraphs = [
        f"# {markdown.escape(title)}",
        f"{run.origin}. {markdown.link('All benchmarks', '../README.md')}",
        HOW_TO_READ,
    ]
    for table in question.tables:
        stem = f"{name}-{markdown.slug(table.columns[0].metric)}"
        paragraphs.append(f"## {markdown.escape(table.title)}")
        ratios = ratio_chart(answer, table)
        if ratios is not None:
            pictures[f"{stem}.svg"] = ratios.svg
            paragraphs.append(markdown.image(ratios.alt, f"{stem}.svg"))
        paragraphs += [_table(answer, table), markdown.escape(table.note)]
        over_sections, over_columns = growth.over_sections(answer, table), growth.over_columns(answer, table)
        for number, group in enumerate(groups(over_sections or over_columns, _same_contenders), 1):
            picture = growth_chart(group, table)
            pictures[f"{stem}-growth-{number}.svg"] = picture.svg
            paragraphs.append(markdown.image(picture.alt, f"{stem}-growth-{number}.svg"))
        paragraphs.append(_growth_table(over_sections))
    return Page(name, title, markdown.page(*paragraphs), pictures)


def _same_contenders(growth: Growth, other: Growth) -> bool:
    return same_contenders(growth.names, other.names)


def _table(answer: Answer, table: Table) -> str:
    headings = ["", "ratio", *(column.heading for column in table.columns), "runs"]
    return markdown.table(list(map(markdown.escape, headings)), _rows(answer, table))


def _rows(answer: Answer, table: Table) -> Iterator[Sequence[str]]:
    section = None
    for contender in answer.question.contenders:
        if not any(answer.figures(contender, column.metric) for column in table.columns):
            continue
        if contender.section != section:
            section = contender.section
            yield [f"**{markdown.escape(section)}**", *[""] * (len(table.columns) + 2)]
        yield list(_cells(answer, table, contender))


def _cells(answer: Answer, table: Table, contender: Contender) -> Iterator[str]:
    yield markdown.escape(contender.name)
    if contender == answer.reference(contender):
        yield "1"
    else:
        yield _spread(answer.ratios(contender, table.columns[0].metric))
    for column in table.columns:
        figures = answer.figures(contender, column.metric)
        yield _spread(figures) if column.spread else _spread([statistics.median(figures)] if figures else [])
    yield str(len(answer.samples[contender]))


def _spread(figures: list[float]) -> str:
    return tables.spread(figures) if figures else "-"


def _growth_table(growths: Sequence[Growth]) -> str:
    if not growths:
        return ""
    sizes = sorted({size for growth in growths for size in growth.sizes})
    rows: list[Sequence[str]] = []
    for growth_ in growths:
        if growth_.where:
            rows.append([f"**{markdown.escape(growth_.where)}**", *[""] * len(sizes)])
        rows += [_growth_cells(line, sizes) for line in growth_.lines]
    return "In relation to the smallest n:\n\n" + markdown.table(
        ["", *(f"n = {size:,}" for size in sizes)], rows
    )


def _growth_cells(line: Line, sizes: Sequence[int]) -> list[str]:
    smallest = min(line.figures)
    return [
        markdown.escape(line.name),
        *(
            "1" if size == smallest else _spread(line.ratios(size) if size in line.figures else [])
            for size in sizes
        ),
    ]
