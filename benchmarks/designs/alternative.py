"""The interfaces behind which every way of waiting for keys or a timeout is measured."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

Key = int
Targets = Sequence[tuple[Key, ...]]

# What learns of the outcome: a callback, or a task that awaits it.
CALLBACK, AWAITED = "callback style", "awaited in tasks"
# Seconds. Nothing expires while parking and completing is measured.
TIMEOUT = 30.0
WAITS_PER_KEY = 10
MOST_TASKS = 100_000
# A task starts in the first turn of the loop after it was made, the task within wait_for in the second.
TURNS_TO_PARK = 3
# As many to wake up and to undo what was made for the wait; and some to clear cancelled timers away.
TURNS_TO_COMPLETE = 6


def targets(waits: int, keys: int, per_key: int = WAITS_PER_KEY) -> list[tuple[Key, ...]]:
    """The keys of each wait, in turns. Waits that share one key share all."""
    distinct = [tuple(range(first, first + keys)) for first in signals(waits, keys, per_key)]
    return (distinct * per_key)[:waits]


def signals(waits: int, keys: int, per_key: int = WAITS_PER_KEY) -> Sequence[Key]:
    """The first key of each target: a signal on each of them completes all waits."""
    return range(0, keys * -(-waits // per_key), keys)


class Tally:
    """The outcomes of the waits of one measurement, and the condition of all of them."""

    __slots__ = ("completed", "expired", "parked", "ready")

    def __init__(self) -> None:
        self.ready = False
        # Counts tasks only, which reach the point where they wait some turns of the loop later.
        self.parked = 0
        self.completed = 0
        self.expired = 0

    def expire(self, request: int) -> None:
        """Count that the wait for `request` has timed out just now."""
        self.expired += 1

    def expect(self, alternative: Alternative, completed: int) -> None:
        """Raise AssertionError unless so many waits have completed and none has expired."""
        if (self.completed, self.expired) != (completed, 0):
            counts = f"{self.completed} waits completed and {self.expired} expired"
            raise AssertionError(f"{alternative.name}: {counts}, instead of {completed} and 0")


class Alternative(ABC):
    """Something that is measured. It is made and used on a running event loop, inside ``async with``."""

    name: ClassVar[str]
    # The most waits or timeouts that it is measured with.
    most: ClassVar[int | None] = None

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.loop = asyncio.get_running_loop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:  # noqa: B027  # nothing to end, by default
        """Leave nothing armed, and end what runs beside the waits."""


class WaitAlternative(Alternative):
    """One way to wait for the first of some keys. Alternatives for a single key take tuples of one.

    `park` and `signal` take many waits in one call: a call for each would charge every alternative some 50 ns
    that no user pays.
    """

    style: ClassVar[str] = CALLBACK

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        # What waits for each key, as the alternative keeps it.
        self.buckets: dict[Hashable, Any] = {}

    @abstractmethod
    def park(self, requests: Sequence[int], targets: Targets, timeouts: Iterable[float]) -> None:
        """Start a wait for each request: for its target, or for its timeout in seconds, taken as it starts.

        A request stands for the data of a user's wait. `Tally.expire` gets it.
        """

    @abstractmethod
    def signal(self, keys: Sequence[Key]) -> None:
        """Complete all waits on `keys` whose condition, `Tally.ready`, holds."""


class RoundTrips(WaitAlternative):
    """An alternative that can park and complete one wait at a time, as the steady state needs.

    `make` makes a wait from (timeout, request, tally), or from (request, tally) where the design does not
    hold timeouts, which would cost each wait eight bytes: then `watch` takes the timeout as well. The wait's
    field `tally` has its condition and counts its outcome. The design has `watch(wait, keys)` and
    `check(key)`.
    """

    holds_timeout: ClassVar[bool] = True
    make: Callable[..., Any]
    watch: Callable[..., object]
    check: Callable[[Key], object]

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._outstanding: deque[tuple[Any, tuple[Key, ...]]] = deque()

    def park(self, requests: Sequence[int], targets: Targets, timeouts: Iterable[float]) -> None:
        tally, make, watch, timed = self.tally, self.make, self.watch, self.holds_timeout
        for request, keys, timeout in zip(requests, targets, timeouts, strict=False):
            if timed:
                watch(make(timeout, request, tally), keys)
            else:
                watch(make(request, tally), keys, timeout)

    def signal(self, keys: Sequence[Key]) -> None:
        check = self.check
        for key in keys:
            check(key)

    def turn_over(self, targets: Targets, outstanding: int, checked: int) -> None:
        """Park a wait on each target; complete the oldest one whenever more than `outstanding` wait.

        That is: give it a tally that is ready, and check the first `checked` of its keys. The waits that are
        outstanding at the end of a call are outstanding at the beginning of the next.
        """
        waits, make, watch, check = self._outstanding, self.make, self.watch, self.check
        pending, ready, timed = Tally(), Tally(), self.holds_timeout
        ready.ready = True
        for keys in targets:
            wait = make(TIMEOUT, 0, pending) if timed else make(0, pending)
            watch(wait, keys) if timed else watch(wait, keys, TIMEOUT)
            waits.append((wait, keys))
            if len(waits) > outstanding:
                wait, watched = waits.popleft()
                wait.tally = ready
                for key in watched[:checked]:
                    check(key)

    @property
    def held(self) -> int:
        """The entries in the watch lists: one for each key of a wait, those of completed waits included."""
        return sum(map(len, self.buckets.values()))


class TaskAlternative(WaitAlternative):
    """An alternative in awaited style: one task for each wait."""

    style = AWAITED
    # More take minutes, and gigabytes, except with the alternatives that need the least.
    most: ClassVar[int | None] = MOST_TASKS

    def park(self, requests: Sequence[int], targets: Targets, timeouts: Iterable[float]) -> None:
        create_task, wait, remaining = self.loop.create_task, self.wait, iter(timeouts)
        for request, target in zip(requests, targets, strict=True):
            # The object that the task waits on keeps the task alive.
            create_task(wait(request, target, remaining))

    @abstractmethod
    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        """Take the next timeout, count the wait as parked, wait, and count the outcome.

        The timeout is taken here because a task starts a turn of the loop after it was made; a timeout that
        leads to a deadline has to count from this moment.
        """
