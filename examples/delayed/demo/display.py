"""What is shown while the demo runs, and at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from examples.delayed.demo.deliveries import Figures
from examples.delayed.demo.round import Outcome, Round

_REFRESH: Final = 0.25
_LINE: Final = 1.0
# Lateness is in milliseconds.
_HEADINGS: Final = ("sent", "cancels", "pending", "arrived", "p50", "p99", "max", "early", "twice", "bytes")


async def show(round: Round, console: Console) -> None:
    """Show a round until it is cancelled: redrawn in place on a terminal, or one line a second."""
    if not console.is_terminal:
        while True:
            await anyio.sleep(_LINE)
            values = _values(round.deliveries.figures(), round.written)
            line = ", ".join(f"{name} {value}" for name, value in zip(_HEADINGS, values, strict=True))
            console.print(f"{round.plan.design}: {line}", highlight=False, soft_wrap=True)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            live.update(_picture(round), refresh=True)
            await anyio.sleep(_REFRESH)


def summary(outcomes: Sequence[Outcome]) -> Table:
    """One row for each design."""
    table = _table("design", *_HEADINGS, "check")
    for outcome in outcomes:
        check = "[red]failed" if outcome.faults else "[green]passed"
        table.add_row(outcome.design, *_values(outcome.figures, outcome.written), check)
    return table


def _picture(round: Round) -> Group:
    figures = _table(*_HEADINGS)
    figures.title = f"{round.plan.design}: {round.plan.messages:,} records"
    figures.add_row(*_values(round.deliveries.figures(), round.written))
    instances = _table("instance", "state", "partitions", "forwarded")
    for name, instance in round.instances.items():
        killed = name == round.killed
        counts = instance.statistics
        instances.add_row(
            name,
            "[red]killed" if killed else "serves" if instance.lines else "starts",
            "-" if killed or not round.plan.kills else str(counts.partitions),
            f"{counts.forwarded:,}",
        )
    return Group(figures, instances)


def _values(figures: Figures, written: float) -> tuple[str, ...]:
    return (
        f"{figures.scheduled:,}",
        f"{figures.cancelled:,}",
        f"{figures.pending:,}",
        f"{figures.delivered:,}",
        f"{figures.p50:,.0f}",
        f"{figures.p99:,.0f}",
        f"{figures.worst:,.0f}",
        f"{figures.early:,}",
        f"{figures.duplicates:,}",
        f"{written:,.0f}",
    )


def _table(*headings: str) -> Table:
    # All columns fit into 80.
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False, title_justify="left", title_style="bold")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("design", "instance", "state") else "right")
    return table
