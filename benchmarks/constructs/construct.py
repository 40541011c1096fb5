"""The one interface behind which every way of waiting for keys or a timeout is measured."""

from __future__ import annotations

import asyncio
import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import ClassVar, Self

Key = int

# Seconds. Far enough away that nothing expires while it is measured how waits are parked and completed.
TIMEOUT = 30.0


class Style(enum.Enum):
    """Who is told the outcome: a callback, or a task that awaits it."""

    CALLBACK = "callback style"
    AWAITED = "awaited in tasks"


class Tally:
    """What has become of the waits of one measurement, and the condition they all wait for."""

    __slots__ = ("completed", "expired", "parked", "ready")

    def __init__(self) -> None:
        self.ready = False
        # Only tasks count here, because they reach the point where they wait some turns of the loop later.
        self.parked = 0
        self.completed = 0
        self.expired = 0

    def expire(self, request: int) -> None:
        """The wait for `request` has timed out just now."""
        self.expired += 1


class Construct(ABC):
    """One way to wait for the first of some keys. Those made for a single key take a tuple of one.

    `park` and `signal` take many waits in one call, because a call for each would charge every construct
    some 50 ns that no user pays. A construct is made and used on a running event loop, inside ``async with``.
    """

    name: ClassVar[str]
    style: ClassVar[Style]

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
    def park(
        self, requests: Sequence[int], targets: Sequence[tuple[Key, ...]], timeouts: Iterable[float]
    ) -> None:
        """Start a wait for each request: for its target, or for its timeout in seconds, taken as it starts.

        A request stands for what a user's wait is about: it is told to `Tally.expire`, and costs the
        construct nothing but the reference.
        """

    @abstractmethod
    def signal(self, keys: Sequence[Key]) -> None:
        """Complete everything on `keys` whose condition, which is `Tally.ready`, holds."""


class RoundTripConstruct(Construct):
    """A construct that takes part in the steady state, where as many waits complete as are parked."""

    @abstractmethod
    def turn_over(self, targets: Sequence[tuple[Key, ...]], outstanding: int, checked: int) -> None:
        """Park a wait on each target; when more than `outstanding` wait, complete the oldest, each time.

        That is: satisfy the condition, which each wait has to itself here, and check the first `checked` of
        its keys. The timeout is `TIMEOUT`. Called again and again, with a turn of the loop in between; what
        is outstanding at the end of a call is so at the beginning of the next.
        """

    @property
    @abstractmethod
    def held(self) -> int:
        """How many entries the watch lists hold, one for each key of a wait, completed waits' included."""


class TaskConstruct(Construct):
    """A construct in awaited style: one task for each wait."""

    style = Style.AWAITED

    def park(
        self, requests: Sequence[int], targets: Sequence[tuple[Key, ...]], timeouts: Iterable[float]
    ) -> None:
        create_task, wait, remaining = self.loop.create_task, self.wait, iter(timeouts)
        for request, target in zip(requests, targets, strict=True):
            # What it waits on keeps the task alive.
            create_task(wait(request, target, remaining))

    @abstractmethod
    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        """Take the next timeout, count the wait as parked, wait, and count how it ended.

        The timeout is taken only here because a task starts a turn of the loop after it was made, when all
        of them have been made; and a timeout that leads to a deadline has to count from now.
        """
