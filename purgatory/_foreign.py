"""Runs code of others, whose CancelledError may not be meant for the task that runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TypeVarTuple, final

from purgatory._uninterrupted import is_cancelled
from purgatory.errors import own_error

Ts = TypeVarTuple("Ts")


@final
class Foreign:
    """``with Foreign("deliver"):`` raises RuntimeError for a CancelledError of the block's own.

    The code in the block may await or read something that was cancelled elsewhere. Its CancelledError would
    end the task without a word. A cancellation of the task itself is raised as it is.

    (`contextlib.contextmanager` takes three times as long, and this is in the path of each poll.)
    """

    __slots__ = ("_who",)

    def __init__(self, who: str) -> None:
        self._who = who

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, asyncio.CancelledError) and not is_cancelled():
            raise own_error(error, self._who)


async def part(who: str, run: Callable[[*Ts], Awaitable[object]], *arguments: *Ts) -> None:
    """Run a part of a task group, which would end without a word at a CancelledError of the part's own."""
    with Foreign(who):
        await run(*arguments)
