"""Runs code of others, whose CancelledError may not be meant for the task that runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVarTuple

from purgatory._uninterrupted import is_cancelled
from purgatory.errors import own_error

Ts = TypeVarTuple("Ts")


@contextmanager
def foreign(who: str) -> Iterator[None]:
    """``with foreign("deliver"):`` raises RuntimeError for a CancelledError of the block's own.

    The code in the block may await or read something that was cancelled elsewhere. Its CancelledError would
    end the task without a word. A cancellation of the task itself is raised as it is.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise own_error(error, who) from error


async def part(who: str, run: Callable[[*Ts], Awaitable[object]], *arguments: *Ts) -> None:
    """Run a part of a task group, which would end without a word at a CancelledError of the part's own."""
    with foreign(who):
        await run(*arguments)
