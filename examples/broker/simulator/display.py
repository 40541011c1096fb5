"""A simulation on the terminal while it runs: redrawn in place, or a plain line a second."""

from typing import Final

import anyio
from anyio.lowlevel import checkpoint
from rich.console import Console, RenderableType
from rich.live import Live
from rich.segment import SegmentLines

from examples.broker.simulator.panels import FRAME_COLUMNS, framed, live_parts, progress_line
from examples.broker.simulator.simulation import Simulation

REFRESH_SECONDS: Final = 0.5
LINE_SECONDS: Final = 1.0


async def show_live(simulation: Simulation, console: Console) -> None:
    """Redraw until cancelled, then leave no trace.

    Drawing is work on the loop under test, several milliseconds in one go. So each part is laid out by
    itself, and the others have their turn in between.
    """
    workload = simulation.workload
    previous = simulation.status()
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            status = simulation.status()
            inside = console.options.update_width(console.width - FRAME_COLUMNS)
            parts: list[RenderableType] = []
            for part in live_parts(workload, status, previous, inside.max_width):
                parts.append(SegmentLines(console.render_lines(part, inside), new_lines=True))
                await checkpoint()
            live.update(framed(workload, parts), refresh=True)
            previous = status
            await anyio.sleep(REFRESH_SECONDS)


async def print_lines(simulation: Simulation, console: Console) -> None:
    """One line a second until cancelled, for where there is no terminal."""
    previous = simulation.status()
    while True:
        await anyio.sleep(LINE_SECONDS)
        status = simulation.status()
        console.print(progress_line(status, previous), highlight=False, soft_wrap=True)
        previous = status
