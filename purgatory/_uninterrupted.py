"""Waits for a future even when the task is cancelled, and tells whether it is."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any, TypeVar

from anyio import CancelScope, current_effective_deadline

T = TypeVar("T")


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
