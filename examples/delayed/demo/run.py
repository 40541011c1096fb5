"""The demo: brokers, then one round for each design."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
from rich.console import Console

from examples.delayed.demo.display import show, summary
from examples.delayed.demo.process import Brokers
from examples.delayed.demo.round import Outcome, Plan, Round


async def run(plans: Sequence[Plan], console: Console) -> bool:
    """Run the plans, show them, and return whether all is right. It leaves no process and no file."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="delayed-demo-") as name:
        directory = Path(name)
        async with Brokers.running(directory) as brokers:
            for plan in plans:
                files = directory / plan.design
                files.mkdir()
                outcomes.append(await _round(Round(plan, brokers, files), console))
    console.print(summary(outcomes))
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


async def _round(round: Round, console: Console) -> Outcome:
    async with anyio.create_task_group() as display:
        display.start_soon(show, round, console)
        outcome = await round.run()
        display.cancel_scope.cancel()
    return outcome
