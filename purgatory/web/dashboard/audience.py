"""The viewers of the dashboard, who wait for the next snapshot."""

from __future__ import annotations

from typing import Final, TypeVar

from starlette.requests import Request

from purgatory import DelayedOperation, Purgatory
from purgatory.web.long_poll import long_poll

R = TypeVar("R")

MAX_VIEWERS: Final = 1_000
"""The most viewers that wait at a time."""


class Audience:
    """A purgatory in which the viewers wait. The page does not show this purgatory.

    It exists only while a viewer waits. Without viewers, nothing runs.
    """

    def __init__(self) -> None:
        self._purgatory: Purgatory | None = None
        self._waiting = 0

    async def wait(self, request: Request, operation: DelayedOperation[R]) -> R:
        """The result of `operation`. Raises as `long_poll` does."""
        purgatory = self._purgatory
        if purgatory is None:
            purgatory = self._purgatory = Purgatory("dashboard", max_pending=MAX_VIEWERS)
            purgatory.start()
        self._waiting += 1
        try:
            return await long_poll(request, purgatory, operation, ["snapshot"])
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._purgatory = None
                await purgatory.aclose()
