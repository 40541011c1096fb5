"""The interface of the older designs' timers: entries that expire after a delay."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from typing import Any


class Entry(ABC):
    """Something that expires. Subclasses have fields of their own, and override `expire`."""

    __slots__ = ("place",)

    # Where its timer keeps the entry, each design in its own way; None when the entry has been taken out.
    place: Any

    @abstractmethod
    def expire(self) -> None:
        """Called once, when the delay is over. Must not raise."""


class Timer(ABC):
    """Calls `expire` of each entry when its delay is over, by the time of `loop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        # How often the loop has called the timer.
        self.wakeups = 0
        self._handle: asyncio.TimerHandle | None = None
        # The time for which the handle is armed.
        self._armed = math.inf

    def start(self) -> None:  # noqa: B027  # most designs have nothing to do before the first entry
        """Begin."""

    def close(self) -> None:
        """Leave nothing armed. Entries that are pending never expire."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self, when: float) -> None:
        """Have the loop call `_wake` at this time, instead of the time for which the timer was armed."""
        if self._handle is not None:
            self._handle.cancel()
        self._armed = when
        self._handle = self.loop.call_at(whole_milliseconds(when), self._wake)

    def _wake(self) -> None:  # noqa: B027  # `CallAt` is not armed
        """Expire what is due. Called by the loop."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of pending entries."""

    @abstractmethod
    def add(self, entry: Entry, delay: float) -> None:
        """Have `entry`, which is not pending, expire in `delay` seconds."""

    @abstractmethod
    def cancel(self, entry: Entry) -> None:
        """Have `entry`, which has been added once, not expire, if it is still pending."""


def whole_milliseconds(when: float) -> float:
    """The first whole millisecond that is not before `when`, give or take a nanosecond.

    A loop that counts in milliseconds, as uvloop does, would round to the nearest: half of the time it would
    wake too early, and again and again until the time has come.
    """
    return math.ceil(when * 1000 - 1e-6) / 1000
