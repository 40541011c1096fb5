"""The interface behind which timers are measured, and what the older designs' timers share."""

from __future__ import annotations

import asyncio
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.designs.alternative import Alternative, Tally


class TimerAlternative(Alternative):
    """One design of a timer.

    An expiration calls `Tally.expire` with the number of its request, which counts from 0 in the order of
    adding. The timeouts that are pending at the end are withdrawn.
    """

    # Functions of the design, of a timeout and of a timeout and a delay.
    cancel: Callable[[Any], object]
    reschedule: Callable[[Any, float], object]

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        # The pending timeout of each request.
        self.timeouts: list[Any] = []

    @abstractmethod
    def add_all(self, delays: Iterable[float]) -> None:
        """Add one timeout for each delay, in seconds, taken as it starts."""

    def cancel_all(self, requests: Sequence[int]) -> None:
        """Withdraw these pending timeouts."""
        timeouts, cancel = self.timeouts, self.cancel
        for request in requests:
            cancel(timeouts[request])

    def renew_all(self, requests: Sequence[int], delay: float) -> None:
        """Have these pending timeouts expire `delay` seconds from now instead, as heartbeats do."""
        timeouts, reschedule = self.timeouts, self.reschedule
        for request in requests:
            reschedule(timeouts[request], delay)

    @property
    @abstractmethod
    def wakeups(self) -> int:
        """How often the loop has called the timer."""


class Entry:
    """Something that expires, for a user's request."""

    __slots__ = ("place", "request", "tally")

    # Where its timer keeps the entry, each design in its own way; None when the entry has been taken out.
    place: Any

    def __init__(self, request: int, tally: Tally) -> None:
        self.request = request
        self.tally = tally

    def expire(self) -> None:
        """Called once, when the delay is over. Must not raise."""
        self.tally.expire(self.request)


class Timer(TimerAlternative):
    """Calls `expire` of each entry when its delay is over. None renews: they cancel and add again."""

    wakeups = 0

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._handle: asyncio.TimerHandle | None = None
        # The time for which the handle is armed.
        self._armed = math.inf

    async def close(self) -> None:
        for timeout in self.timeouts:
            self.cancel(timeout)
        if self._handle is not None:
            self._handle.cancel()

    def add_all(self, delays: Iterable[float]) -> None:
        tally, timeouts, add = self.tally, self.timeouts, self.add
        for request, delay in enumerate(delays, len(timeouts)):
            timeout = Entry(request, tally)
            timeouts.append(timeout)
            add(timeout, delay)

    def renew_all(self, requests: Sequence[int], delay: float) -> None:
        timeouts, cancel, add = self.timeouts, self.cancel, self.add
        for request in requests:
            timeout = timeouts[request]
            cancel(timeout)
            add(timeout, delay)

    def _arm(self, when: float) -> None:
        """Have the loop call `_wake` at this time, instead of the time for which the timer was armed."""
        if self._handle is not None:
            self._handle.cancel()
        self._armed = when
        self._handle = self.loop.call_at(whole_milliseconds(when), self._wake)

    def _wake(self) -> None:  # `CallAt` is not armed
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
