"""What drives a timer: a coroutine that sleeps until something is due."""

from __future__ import annotations

import asyncio

from purgatory._core.timer import Timer


async def reap(timer: Timer) -> None:
    """Run every task of `timer` at its time, until `timer.stop()`. Yields to the loop between two slices.

    The timer has to be started. Raises RuntimeError when another reaper drives it.
    """
    timer.attach_reaper()
    try:
        while not timer.stopped:
            timer.wake()
            if timer.run_due():
                timer.slices += 1
                await pause()
            elif not timer.stopped:
                await timer.sleep()
    finally:
        timer.detach_reaper()


async def pause() -> None:
    """Let the loop run for three turns between two slices.

    A timer that came due during the slice runs in the first turn, behind this task, and wakes its own task,
    which runs in the second turn. With fewer turns a task that sleeps for a millisecond waits for two or
    three slices instead of one.
    """
    for _ in range(3):
        await asyncio.sleep(0)
