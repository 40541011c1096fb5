"""Entries that record when they expired, and designs that are open for a block."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from benchmarks.designs.timer import Entry


class Design(Protocol):
    """Something that is started and closed."""

    def start(self) -> None: ...

    def close(self) -> None: ...


D = TypeVar("D", bound=Design)


@contextmanager
def opened(design: D) -> Iterator[D]:
    """The design, started, until the end of the block."""
    design.start()
    try:
        yield design
    finally:
        design.close()


class Recorded(Entry):
    """Appends itself to a log, with the loop's time, and then runs its action."""

    __slots__ = ("action", "expired_at", "log", "loop")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        log: list[Recorded] | None = None,
        action: Callable[[], object] | None = None,
    ) -> None:
        self.loop = loop
        self.log = [] if log is None else log
        self.action = action
        self.expired_at: list[float] = []

    def expire(self) -> None:
        self.expired_at.append(self.loop.time())
        self.log.append(self)
        if self.action is not None:
            self.action()
