"""What drives a timer: a coroutine that sleeps until something is due."""

from __future__ import annotations

import asyncio

from purgatory._core.timer import Timer
from purgatory._pace import TURNS, Pace


async def reap(timer: Timer) -> None:
    """Run every task of `timer` at its time, until `timer.stop()`. Yields to the loop between two slices.

    The timer has to be started. Raises RuntimeError when another reaper drives it.
    """
    timer.attach_reaper()
    pace = Pace(timer.slice_seconds)
    try:
        while not timer.stopped:
            timer.wake()
            if timer.run_due(pace.seconds):
                timer.slices += 1
                # Newcomers may be others than those who were woken, so they do not make the slices longer.
                await pace.pause()
            elif not timer.stopped:
                await timer.sleep()
                pace = Pace(timer.slice_seconds)
    finally:
        timer.detach_reaper()


async def pause() -> None:
    """Let the loop run what is ready, as between two slices, in work that is not for many operations."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
