"""The event loops to measure on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

LOOPS = ("asyncio", "uvloop")

T = TypeVar("T")


def run(loop: str, measurement: Coroutine[Any, Any, T]) -> T:
    """Run one measurement on a fresh event loop, so that it inherits no timers from the last one.

    Raises ImportError when uvloop is asked for and not installed.
    """
    with _runner(loop) as runner:
        return runner.run(measurement)


def _runner(loop: str) -> asyncio.Runner:
    if loop == "uvloop":
        import uvloop

        return asyncio.Runner(loop_factory=uvloop.new_event_loop)
    return asyncio.Runner()


async def turns(count: int) -> None:
    """Let the loop go round so many times: everything that was ready has then run as often."""
    for _ in range(count):
        await asyncio.sleep(0)
