"""Waiting for what has to be finished."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from anyio import CancelScope

T = TypeVar("T")


async def uninterrupted(future: asyncio.Future[T]) -> T:
    """The result of `future`, for which it waits even if the task is cancelled.

    A cancellation is raised after that, unless the future has an exception.
    """
    cancelled: asyncio.CancelledError | None = None
    with CancelScope(shield=True):
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError as error:
                # A plain Task.cancel, which no shield stops.
                cancelled = error
    result = future.result()
    if cancelled is not None:
        raise cancelled
    return result
