"""The demo: brokers, then instances, a load and a kill for each design, and what came of it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
from rich import box
from rich.console import Console
from rich.table import Table

from examples.delayed.demo.child import brokers
from examples.delayed.demo.deliveries import Figures
from examples.delayed.demo.instances import Instances
from examples.delayed.demo.traffic import Traffic
from examples.delayed.settings import Settings, Topics

_NAMES: Final = "abc"
# Milliseconds.
_LEVELS: Final = (500, 1_000, 2_000, 4_000, 8_000)
# The shortest delay in seconds.
_SHORTEST: Final = 0.1
# Seconds between two lines of a run.
_LINE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """`messages` records are sent in `seconds`, and are due after `longest` seconds at the latest."""

    design: str
    messages: int
    seconds: float
    longest: float
    seed: int

    def settings(self, bootstrap: str, directory: Path) -> Settings:
        # No record waits for its level several times.
        levels = tuple(sorted({*_LEVELS, round(self.longest * 1000)}))
        topics = Topics(f"delayed.{self.design}")
        return Settings(bootstrap, directory, topics, session_timeout=2.0, levels=levels)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`written` is bytes per delivered record: to Kafka by the service, and to its files."""

    design: str
    figures: Figures
    written: float
    killed: str | None
    faults: tuple[str, ...]


async def run(plans: Sequence[Plan], console: Console) -> bool:
    """Run the plans, show them, and return whether all is right. It leaves no process and no file.

    Raises RuntimeError if an instance fails.
    """
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="delayed-demo-") as name:
        directory = Path(name)
        async with brokers(directory / "brokers.log") as bootstrap:
            for plan in plans:
                files = directory / plan.design
                files.mkdir()
                outcomes.append(await _run(plan, plan.settings(bootstrap, files), console))
    console.print(_table(outcomes))
    console.print(
        "p50, p99 and max are milliseconds from the due time to the arrival at a consumer. Bytes are those "
        "that the service has written for each record, to Kafka and to its files.",
        highlight=False,
    )
    for outcome in outcomes:
        if outcome.killed is not None:
            console.print(
                f"{outcome.design}: instance {outcome.killed} was killed with -9 in the middle.",
                highlight=False,
            )
        for fault in outcome.faults:
            console.print(f"{outcome.design}: {fault}", style="red", highlight=False, markup=False)
    return not any(outcome.faults for outcome in outcomes)


async def _run(plan: Plan, settings: Settings, console: Console) -> Outcome:
    killed = None
    async with (
        Traffic.of(settings) as traffic,
        Instances.of(plan.design, settings, _NAMES) as instances,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_show, plan.design, traffic, instances, console)
        tasks.start_soon(traffic.send, plan.messages, plan.seconds, (_SHORTEST, plan.longest), plan.seed)
        # Half of the records are sent then, and most of them are pending.
        await anyio.sleep(plan.seconds / 2)
        if plan.design == "wheel":
            # The others take over.
            killed = instances.leader()
            instances.kill(killed)
        await traffic.arrived()
        tasks.cancel_scope.cancel()
    figures = traffic.deliveries.figures()
    written = instances.written / max(1, figures.delivered)
    return Outcome(plan.design, figures, written, killed, tuple(traffic.deliveries.faults()))


async def _show(design: str, traffic: Traffic, instances: Instances, console: Console) -> None:
    """Print a line a second until it is cancelled."""
    while True:
        await anyio.sleep(_LINE)
        figures = traffic.deliveries.figures()
        values = _values(figures, instances.written / max(1, figures.delivered))
        line = ", ".join(f"{name} {value}" for name, value in values.items())
        console.print(f"{design}: {line}", highlight=False, soft_wrap=True)


def _table(outcomes: Sequence[Outcome]) -> Table:
    """One row for each design. All columns fit into 80."""
    rows = [
        {"design": outcome.design}
        | _values(outcome.figures, outcome.written)
        | {"check": "[red]failed" if outcome.faults else "[green]passed"}
        for outcome in outcomes
    ]
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    for heading in rows[0]:
        table.add_column(heading, justify="left" if heading == "design" else "right")
    for row in rows:
        table.add_row(*row.values())
    return table


def _values(figures: Figures, written: float) -> dict[str, str]:
    """What is shown, by its headings. Lateness is in milliseconds."""
    return {
        "sent": f"{figures.scheduled:,}",
        "cancelled": f"{figures.cancelled:,}",
        "arrived": f"{figures.delivered:,}",
        "p50": f"{figures.p50:,.0f}",
        "p99": f"{figures.p99:,.0f}",
        "max": f"{figures.worst:,.0f}",
        "early": f"{figures.early:,}",
        "twice": f"{figures.duplicates:,}",
        "bytes": f"{written:,.0f}",
    }
