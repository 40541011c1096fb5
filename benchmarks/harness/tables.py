"""Prints results as tables that fit 100 columns."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid

from benchmarks.harness.benchmark import Build, Result, Row, Table

WIDTH = 100


def new_console() -> Console:
    """A console as wide as the terminal; without a terminal, as wide as the tables need."""
    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(width=WIDTH, highlight=False)


def introduce(console: Console, loop: str, builds: Sequence[Build], repetitions: int) -> None:
    """Print what is measured, and how to read the tables."""
    if "compiled" not in builds:
        console.print(
            "There is no compiled core in build/compiled (`make build/compiled/.built` builds one): only the "
            "interpreted one is measured.\n",
            width=WIDTH,
        )
    console.print(
        f"purgatory, {' and '.join(builds)}; {loop}; Python {platform.python_version()}; "
        f"{os.cpu_count()} cores\n"
        f"Figures are medians (minimum-maximum) of {repetitions} interleaved repetitions. Less is better, "
        "except in figures per second. The ratio is that of the column beside it to the first row of its "
        "section.\n",
        width=WIDTH,
    )


def show(result: Result, console: Console) -> None:
    """Print every table of the benchmark."""
    for table in result.tables:
        grid = new_grid(table.title)
        for heading in ("ratio", *(column.heading for column in table.columns)):
            grid.add_column(heading, justify="right", no_wrap=True)
        grid.add_column("runs", justify="right", no_wrap=True, style="dim")
        for section, rows in result.sections(table).items():
            grid.add_section()
            grid.add_row(f"[italic]{section}[/italic]")
            for row in rows:
                name, *others = cells(result, table, row, lambda ratios: ratios and [median(ratios)])
                grid.add_row(f" {name}", *others)
        print_grid(console, grid, table.note)


def new_grid(title: str) -> Grid:
    """A table with its title and a first column for names."""
    grid = Grid(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False,
        padding=0, min_width=80,
    )  # fmt: skip
    grid.add_column("", no_wrap=True)
    return grid


def print_grid(console: Console, grid: Grid, note: str) -> None:
    """Print a table, and its note below it."""
    console.print(grid)
    console.print(Padding(note, (0, 0, 1, 1)), width=WIDTH, style="dim")


def cells(
    result: Result, table: Table, row: Row, shown: Callable[[list[float]], Sequence[float]]
) -> Iterator[str]:
    """The name, what is shown of the ratios to the reference, the figures, and their number."""
    yield row.name
    ratios = result.ratios(row, table.columns[0].metric)
    yield "1" if row is result.reference(row) else spread(shown(ratios))
    for column in table.columns:
        figures = row.figures(column.metric)
        yield spread(figures if column.spread or not figures else [median(figures)])
    yield str(len(row.samples))


def spread(figures: Sequence[float]) -> str:
    """The median; where there are several figures also minimum and maximum."""
    if not figures:
        return "-"
    ends = f" ({figure(min(figures))}-{figure(max(figures))})" if len(figures) > 1 else ""
    return f"{figure(median(figures))}{ends}"


def figure(value: float) -> str:
    """Three significant digits, or all digits before the point."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
