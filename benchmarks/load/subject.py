"""A design under load: the interface, and the books on what becomes of the requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

R = TypeVar("R")


class Ends:
    """What has become of the requests: each of them ends once."""

    __slots__ = ("arrived_at", "clock", "ended", "expired", "expired_at", "times")

    def __init__(self, requests: int, clock: Callable[[], float]) -> None:
        self.clock = clock
        # All of it has its full size from the beginning: what grows in the run is the design's.
        self.arrived_at = array("d", bytes(8 * requests))
        self.expired_at = array("d", bytes(8 * requests))
        # How often each has ended.
        self.times = bytearray(requests)
        self.ended = 0
        self.expired = 0

    def end(self, request: int) -> None:
        """It has completed or expired just now."""
        self.times[request] += 1
        self.ended += 1

    def expire(self, request: int) -> None:
        """And it was its timeout that ended it."""
        self.expired_at[request] = self.clock()
        self.expired += 1

    def check(self, sent: int) -> None:
        """Raises AssertionError unless each of the first `sent` requests has ended once, and no other."""
        if self.ended != sent or self.times.count(1) != sent:
            never, once = self.times[:sent].count(0), self.times[:sent].count(1)
            raise AssertionError(
                f"of {sent:,} requests {never:,} never ended and {sent - never - once:,} more than once"
            )

    def lateness(self, timeout: float) -> list[float]:
        """By how many seconds each that expired did so after its timeout, ascending."""
        times = zip(self.arrived_at, self.expired_at, strict=True)
        return sorted(expired - arrived - timeout for arrived, expired in times if expired)


class Subject(ABC, Generic[R]):
    """A design, with as many keys as a request watches: the same for all. R is what a request is to it.

    Made and used on a running event loop, inside ``async with``.
    """

    def __init__(self, ends: Ends, timeout: float, keys: int) -> None:
        self.ends = ends
        self.timeout = timeout
        self.keys = tuple(range(keys))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    @abstractmethod
    def offer(self, number: int) -> R:
        """Make request `number`, and let it wait until it is completed or its timeout is over."""

    @abstractmethod
    def complete(self, request: R) -> None:
        """Make its condition hold, and complete it, unless it has expired before."""

    @property
    @abstractmethod
    def held(self) -> int:
        """How many entries the watch lists hold, one for each key of a request, ended requests' included."""


class Nothing(Subject[int]):
    """No design at all: requests do not even end. What is left is the generator's own work."""

    def offer(self, number: int) -> int:
        return number

    def complete(self, request: int) -> None:
        pass

    @property
    def held(self) -> int:
        return 0
