"""The display of a running simulation: redrawn in place on a terminal, or one plain line a second."""

from typing import Final

import anyio
from rich.console import Console
from rich.live import Live

from examples.broker.simulator.panels import FRAME_COLUMNS, framed, live_parts, progress_line
from examples.broker.simulator.simulation import Simulation

REFRESH_SECONDS: Final = 0.5
LINE_SECONDS: Final = 1.0


async def show_live(simulation: Simulation, console: Console) -> None:
    """Redraw until cancelled, then clear the display."""
    workload, inside = simulation.workload, console.width - FRAME_COLUMNS
    previous = simulation.status()
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            status = simulation.status()
            live.update(framed(workload, live_parts(workload, status, previous, inside)), refresh=True)
            previous = status
            await anyio.sleep(REFRESH_SECONDS)


async def print_lines(simulation: Simulation, console: Console) -> None:
    """Print one line a second until cancelled, for output that is not a terminal."""
    previous = simulation.status()
    while True:
        await anyio.sleep(LINE_SECONDS)
        status = simulation.status()
        console.print(progress_line(status, previous), highlight=False, soft_wrap=True)
        previous = status
