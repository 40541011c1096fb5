"""Answers as tables that fit 100 columns."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable

from benchmarks.question import Answer, Build, Contender, Table

WIDTH = 100


def console() -> Console:
    """The terminal as wide as it is; anything else as wide as the tables need."""
    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(width=WIDTH, highlight=False)


def introduce(console: Console, loop: str, builds: Sequence[Build], repetitions: int) -> None:
    """Say what is measured, and how to read the tables."""
    if "compiled" not in builds:
        console.print(
            "The purgatory that is installed here is not a compiled one: this measures the interpreted one "
            "from the source tree alone.\n",
            width=WIDTH,
        )
    console.print(
        f"purgatory, {' and '.join(builds)}; {loop}; Python {platform.python_version()}; "
        f"{os.cpu_count()} cores\n"
        f"Figures are medians (minimum-maximum) of {repetitions} interleaved repetitions. Less is better, "
        "but in what is counted per second. The ratio is that of the column beside it to the first row of "
        "its section.\n",
        width=WIDTH,
    )


def show(answer: Answer, console: Console) -> None:
    """Print every table of the question."""
    for table in answer.question.tables:
        console.print(_table(answer, table))
        console.print(Padding(table.note, (0, 0, 1, 1)), width=WIDTH, style="dim")


def _table(answer: Answer, table: Table) -> RichTable:
    grid = RichTable(
        title=table.title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=0,
        min_width=80,
    )
    grid.add_column("", no_wrap=True)
    grid.add_column("ratio", justify="right", no_wrap=True)
    for column in table.columns:
        grid.add_column(column.heading, justify="right", no_wrap=True)
    grid.add_column("runs", justify="right", no_wrap=True, style="dim")
    section = None
    for contender in answer.question.contenders:
        if not any(answer.figures(contender, column.metric) for column in table.columns):
            continue
        if contender.section != section:
            section = contender.section
            grid.add_section()
            grid.add_row(f"[italic]{section}[/italic]")
        grid.add_row(*_cells(answer, table, contender))
    return grid


def _cells(answer: Answer, table: Table, contender: Contender) -> Iterator[str]:
    yield f" {contender.name}"
    ratios = answer.ratios(contender, table.columns[0].metric)
    if contender == answer.reference(contender):
        yield "1"
    else:
        yield figure(statistics.median(ratios)) if ratios else "-"
    for column in table.columns:
        figures = answer.figures(contender, column.metric)
        if figures:
            yield spread(figures) if column.spread else figure(statistics.median(figures))
        else:
            yield "-"
    yield str(len(answer.samples[contender]))


def spread(figures: list[float]) -> str:
    """Median and, where there are several, minimum and maximum."""
    median = figure(statistics.median(figures))
    return median if len(figures) == 1 else f"{median} ({figure(min(figures))}-{figure(max(figures))})"


def figure(value: float) -> str:
    """Three significant digits, or all that stand before the point."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
