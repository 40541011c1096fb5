"""What the timers of the older designs have in common: entries that expire after a delay."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self


class Entry(ABC):
    """Something that expires: subclass it, with fields of its own, and override `expire`."""

    __slots__ = ("place",)

    # Where its timer keeps it, each design in its own way; None when it has been taken out.
    place: Any

    @abstractmethod
    def expire(self) -> None:
        """Called once, when its delay is over. Must not raise."""


class Timer(ABC):
    """Calls `expire` of each entry once its delay is over, by the time of `loop`.

    Between `start` and `close`, which ``with`` does, too. Entries that are pending then never expire.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        # How often the loop has called it.
        self.wakeups = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:  # noqa: B027  # most designs have nothing to do before the first entry
        """Begin."""

    @abstractmethod
    def close(self) -> None:
        """Leave nothing armed."""

    @abstractmethod
    def __len__(self) -> int:
        """How many entries are pending."""

    @abstractmethod
    def add(self, entry: Entry, delay: float) -> None:
        """Have `entry`, which is not pending, expire in `delay` seconds."""

    @abstractmethod
    def cancel(self, entry: Entry) -> None:
        """Have `entry`, which has been added once, not expire, if it is still pending."""


def whole_milliseconds(when: float) -> float:
    """The first whole millisecond that is not before `when`, give or take a nanosecond.

    A loop that counts in them, as uvloop does, would round to the nearest: half of the time it would ring
    too early, and again and again until the time has come.
    """
    return math.ceil(when * 1000 - 1e-6) / 1000
