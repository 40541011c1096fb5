"""The interface behind which timers alone are measured: timeouts that no key completes."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import ClassVar, Self

from benchmarks.constructs.construct import Tally


class TimerConstruct(ABC):
    """One design of a timer. It is made and used on a running event loop, inside ``async with``.

    What expires calls `Tally.expire` with its request's number, which counts from 0 in the order of adding.
    What is still pending at the end is withdrawn.
    """

    name: ClassVar[str]

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.loop = asyncio.get_running_loop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    @abstractmethod
    def add(self, delays: Iterable[float]) -> None:
        """One timeout for each delay, in seconds, taken as it starts."""

    @abstractmethod
    def cancel(self, requests: Sequence[int]) -> None:
        """Withdraw those, which are pending."""

    @abstractmethod
    def renew(self, requests: Sequence[int], delay: float) -> None:
        """Have those, which are pending, expire `delay` seconds from now instead, as heartbeats do."""

    @property
    @abstractmethod
    def wakeups(self) -> int:
        """How often the loop has called it."""
