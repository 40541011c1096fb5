"""Entries that record when they expired."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from benchmarks.designs.alternative import Tally
from benchmarks.designs.timers import Entry


class Recorded(Entry):
    """Appends itself to a log, with the loop's time, and then runs its action."""

    __slots__ = ("action", "expired_at", "log", "loop")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        log: list[Recorded] | None = None,
        action: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(0, Tally())
        self.loop = loop
        self.log = [] if log is None else log
        self.action = action
        self.expired_at: list[float] = []

    def expire(self) -> None:
        self.expired_at.append(self.loop.time())
        self.log.append(self)
        if self.action is not None:
            self.action()
