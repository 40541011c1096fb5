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
from rich.table import Column, Table

from examples.delayed.demo.child import brokers
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


async def run(plans: Sequence[Plan], console: Console) -> bool:
    """Run the plans, show them, and return whether all is right. It leaves no process and no file.

    Raises RuntimeError if an instance fails.
    """
    rows: list[dict[str, str]] = []
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="delayed-demo-") as name:
        directory = Path(name)
        async with brokers(directory / "brokers.log") as bootstrap:
            for plan in plans:
                files = directory / plan.design
                files.mkdir()
                row, found = await _run(plan, plan.settings(bootstrap, files), console)
                rows.append({"design": plan.design, **row, "check": "failed" if found else "passed"})
                faults += [f"{plan.design}: {fault}" for fault in found]
    # All columns fit into 80.
    columns = (Column(name, justify="left" if name == "design" else "right") for name in rows[0])
    table = Table(*columns, box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    for row in rows:
        table.add_row(*row.values())
    console.print(table)
    console.print(
        "p50, p99 and max are milliseconds from the due time to the arrival at a consumer. Bytes are those "
        "that the service has written for each record, to Kafka and to its files. The killed instance led "
        "most partitions, and was killed with -9 in the middle.",
        highlight=False,
    )
    for fault in faults:
        console.print(fault, style="red", highlight=False, markup=False)
    return not faults


async def _run(plan: Plan, settings: Settings, console: Console) -> tuple[dict[str, str], list[str]]:
    """What is shown of a design, and what is wrong."""
    killed = "-"
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
    return _values(traffic, instances) | {"killed": killed}, list(traffic.deliveries.faults())


async def _show(design: str, traffic: Traffic, instances: Instances, console: Console) -> None:
    """Print a line a second until it is cancelled."""
    while True:
        await anyio.sleep(_LINE)
        line = ", ".join(f"{name} {value}" for name, value in _values(traffic, instances).items())
        console.print(f"{design}: {line}", highlight=False, soft_wrap=True)


def _values(traffic: Traffic, instances: Instances) -> dict[str, str]:
    """What is shown, by its headings. Lateness is in milliseconds."""
    figures = traffic.deliveries.figures()
    return {
        "sent": f"{figures.scheduled:,}",
        "cancelled": f"{figures.cancelled:,}",
        "arrived": f"{figures.delivered:,}",
        "p50": f"{figures.p50:,.0f}",
        "p99": f"{figures.p99:,.0f}",
        "max": f"{figures.worst:,.0f}",
        "early": f"{figures.early:,}",
        "twice": f"{figures.duplicates:,}",
        "bytes": f"{instances.written / max(1, figures.delivered):,.0f}",
    }
