"""Prints results as tables that fit 100 columns."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid

from benchmarks.harness.benchmark import Result, Table

WIDTH = 100
HOW_TO_READ = (
    "Medians (minimum-maximum) of interleaved repetitions. Less is better, except in figures per "
    "second. The ratio is that of the column beside it to the first row of its section, within the same "
    "repetition."
)


def show(result: Result, console: Console) -> None:
    for table in result.tables:
        grid = new_grid(table.title)
        for heading in headings(table):
            grid.add_column(heading, justify="right", no_wrap=True)
        for name, *others in rows(result, table, lambda ratios: ratios and [median(ratios)]):
            if others:
                grid.add_row(f" {name}", *others)
            else:
                grid.add_section()
                grid.add_row(f"[italic]{name}[/italic]")
        print_grid(console, grid, table.note)


def headings(table: Table) -> list[str]:
    """The headings of the cells behind the name."""
    return ["ratio", *(column.heading for column in table.columns), "runs"]


def rows(result: Result, table: Table, pick: Callable[[list[float]], Sequence[float]]) -> Iterator[list[str]]:
    """The cells of the table, with the ratios that are picked. A row of one cell begins a section."""
    for section, cases in result.sections(table).items():
        yield [section]
        for case in cases:
            ratios = result.ratios(case, table.columns[0].metric)
            cells = [case.name, "1" if case is result.reference(case) else spread(pick(ratios))]
            for column in table.columns:
                figures = case.figures(column.metric)
                cells.append(spread(figures if column.spread or not figures else [median(figures)]))
            yield [*cells, str(len(case.samples))]


def new_grid(title: str) -> Grid:
    grid = Grid(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=0, min_width=80
    )
    grid.add_column("", no_wrap=True)
    return grid


def print_grid(console: Console, grid: Grid, note: str) -> None:
    console.print(grid)
    console.print(Padding(note, (0, 0, 1, 1)), width=WIDTH, style="dim")


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
