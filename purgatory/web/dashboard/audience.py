"""Those who look at the dashboard, while they wait for the next snapshot."""

from __future__ import annotations

from typing import Final, TypeVar

from starlette.requests import Request

from purgatory import DelayedOperation, Purgatory
from purgatory.web.dashboard.recorder import WINDOW
from purgatory.web.dashboard.stall import StallProbe
from purgatory.web.long_poll import long_poll

R = TypeVar("R")

MOST: Final = 1_000
"""How many may look at a time."""


class Audience:
    """The dashboard's own purgatory, apart from those it shows, and its stall probe.

    Both are there while somebody waits: when nobody looks, nothing runs.
    """

    def __init__(self) -> None:
        self.stalls = StallProbe(WINDOW)
        self._purgatory: Purgatory | None = None
        self._waiting = 0

    async def wait(self, request: Request, operation: DelayedOperation[R]) -> R:
        """What `long_poll` gives, and raises."""
        purgatory = self._purgatory
        if purgatory is None:
            purgatory = self._purgatory = Purgatory("dashboard", max_pending=MOST)
            purgatory.start()
            self.stalls.start()
        self._waiting += 1
        try:
            return await long_poll(request, purgatory, operation, ["snapshot"])
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._purgatory = None
                self.stalls.stop()
                await purgatory.aclose()
