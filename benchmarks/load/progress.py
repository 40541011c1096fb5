"""What shows that it goes on: a bar, or a line for each measurement where none can be drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from benchmarks.load.distribution import Distribution
from benchmarks.load.sweep import Step


@contextmanager
def progress(console: Console, sweeps: int) -> Iterator[Callable[[int, Distribution, Step], None]]:
    """Gives what is to be told of each step: the number of the sweep, its distribution, the step."""
    if not console.is_terminal:
        yield lambda _, distribution, step: console.print(line(distribution, step), soft_wrap=True)
        return
    columns = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task("", total=sweeps)
        yield lambda number, distribution, step: bars.update(
            bar, completed=number + step.over, description=line(distribution, step)
        )


def line(distribution: Distribution, step: Step) -> str:
    """One measurement in one line."""
    achieved = f"{step.measurement.achieved:,.0f}/s"
    return f"{distribution.name}, {step.rate:,}/s: {step.contestant}: {achieved}"
