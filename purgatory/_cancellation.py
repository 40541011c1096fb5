"""Cancellations that have to wait for something, or that are not meant for the task that they would end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from types import TracebackType
from typing import Any, TypeVar, TypeVarTuple, final

from anyio import CancelScope, current_effective_deadline

from purgatory.errors import own_error

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def uninterrupted(future: asyncio.Future[T]) -> T:
    """Wait for `future` even when the task is cancelled, and return its result.

    The cancellation is raised when the future is done. An exception of the future is raised instead of it.
    """
    cancelled = await until_done(future)
    result = future.result()
    if cancelled is not None:
        raise cancelled
    return result


async def until_done(future: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Wait for `future` even when the task is cancelled. Returns the cancellation, which is to be raised."""
    cancelled: asyncio.CancelledError | None = None
    with CancelScope(shield=True):
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError as error:
                # A plain Task.cancel, which no shield stops.
                cancelled = error
    return cancelled


def is_cancelled() -> bool:
    """Whether the running task is cancelled, by itself or by a scope around it.

    If not, a CancelledError comes from something that it has awaited and that was cancelled elsewhere.
    """
    task = asyncio.current_task()
    return (task is not None and task.cancelling() > 0) or current_effective_deadline() == -inf


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
