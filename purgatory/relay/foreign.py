"""Awaits code of others, whose CancelledError may not be meant for the task that awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from purgatory._uninterrupted import is_cancelled

T = TypeVar("T")


async def foreign(call: Awaitable[T]) -> T:
    """Await `call`. Raises RuntimeError for a CancelledError of its own.

    A client may await something that was cancelled elsewhere. Its CancelledError would end a task of the
    relay without a word.
    """
    try:
        return await call
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise RuntimeError("something that it has awaited was cancelled") from error
