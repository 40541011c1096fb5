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


async def show(round: Round, console: Console) -> None:
    """Show a round until it is cancelled: redrawn in place on a terminal, or one line a second."""
    if not console.is_terminal:
        while True:
            await anyio.sleep(_LINE)
            values = _values(round.deliveries.figures(), round.written)
            line = ", ".join(f"{name} {value}" for name, value in values.items())
            console.print(f"{round.plan.design}: {line}", highlight=False, soft_wrap=True)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            live.update(_picture(round), refresh=True)
            await anyio.sleep(_REFRESH)


def summary(outcomes: Sequence[Outcome]) -> Table:
    """One row for each design."""
    rows = [
        {"design": outcome.design}
        | _values(outcome.figures, outcome.written)
        | {"check": "[red]failed" if outcome.faults else "[green]passed"}
        for outcome in outcomes
    ]
    for row in rows:
        # What is missing at the end is a fault, and reported.
        del row["pending"]
    table = _table(*rows[0])
    for row in rows:
        table.add_row(*row.values())
    return table


def _picture(round: Round) -> Group:
    values = _values(round.deliveries.figures(), round.written)
    figures = _table(*values)
    figures.title = f"{round.plan.design}: {round.plan.messages:,} records"
    figures.add_row(*values.values())
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


def _values(figures: Figures, written: float) -> dict[str, str]:
    """What the columns show, by their headings. Lateness is in milliseconds."""
    return {
        "sent": f"{figures.scheduled:,}",
        "cancelled": f"{figures.cancelled:,}",
        "pending": f"{figures.pending:,}",
        "arrived": f"{figures.delivered:,}",
        "p50": f"{figures.p50:,.0f}",
        "p99": f"{figures.p99:,.0f}",
        "max": f"{figures.worst:,.0f}",
        "early": f"{figures.early:,}",
        "twice": f"{figures.duplicates:,}",
        "bytes": f"{written:,.0f}",
    }


def _table(*headings: str) -> Table:
    # All columns fit into 80.
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False, title_justify="left", title_style="bold")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("design", "instance", "state") else "right")
    return table
