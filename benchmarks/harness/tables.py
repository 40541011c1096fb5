"""Prints results as tables that fit 100 columns."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterator, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid

from benchmarks.harness.benchmark import Build, Case, Result, Spread, Table

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
    for table in result.benchmark.tables:
        grid = new_grid(table.title)
        for heading in ("ratio", *(column.heading for column in table.columns)):
            grid.add_column(heading, justify="right", no_wrap=True)
        grid.add_column("runs", justify="right", no_wrap=True, style="dim")
        section = None
        for case in result.shown_in(table):
            if case.section != section:
                section = case.section
                grid.add_section()
                grid.add_row(f"[italic]{section}[/italic]")
            name, *others = cells(result, table, case, lambda ratios: figure(statistics.median(ratios)))
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
    result: Result, table: Table, case: Case, show_ratio: Callable[[list[float]], str]
) -> Iterator[str]:
    """The cells of a row: the name, the ratio, the figures, the number of repetitions."""
    yield case.name
    ratios = result.ratios(case, table.columns[0].metric)
    yield "1" if case == result.reference(case) else show_ratio(ratios) if ratios else "-"
    for column in table.columns:
        figures = result.figures(case, column.metric)
        shown = figures if column.spread or not figures else [statistics.median(figures)]
        yield spread(shown) if shown else "-"
    yield str(len(result.samples[case]))


def spread(figures: Sequence[float], show: Callable[[float], str] | None = None) -> str:
    """The median; where there are several figures also minimum and maximum."""
    show = show or figure
    of = Spread.of(figures)
    return show(of.median) + (f" ({show(of.low)}-{show(of.high)})" if len(figures) > 1 else "")


def figure(value: float) -> str:
    """Three significant digits, or all digits before the point."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
