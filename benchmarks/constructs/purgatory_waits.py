"""Purgatory, in both styles."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Self

from benchmarks.constructs.construct import (
    TIMEOUT,
    Construct,
    Key,
    RoundTripConstruct,
    Style,
    Tally,
    TaskConstruct,
)
from purgatory import DelayedOperation, Purgatory
from purgatory.observer import Observer


class Wait(DelayedOperation[None]):
    """What a user writes: an operation with a condition, something to do, and a field or two of its own."""

    __slots__ = ("request", "tally")

    def __init__(self, timeout: float, request: int, tally: Tally) -> None:
        super().__init__(timeout)
        self.request = request
        self.tally = tally

    def try_complete(self) -> bool:
        return self.tally.ready and self.force_complete()


class CountedWait(Wait):
    """The same in callback style: its hooks count how it ended."""

    __slots__ = ()

    def on_complete(self) -> None:
        self.tally.completed += 1

    def on_expiration(self) -> None:
        # After on_complete, which runs in either case.
        self.tally.completed -= 1
        self.tally.expire(self.request)


class FlaggedWait(DelayedOperation[None]):
    """An operation with a condition of its own."""

    __slots__ = ("ready",)

    def __init__(self, timeout: float) -> None:
        super().__init__(timeout)
        self.ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()


class PurgatoryConstruct(Construct):
    """What both styles share."""

    name = "purgatory"

    def __init__(self, tally: Tally, observers: Iterable[Observer] = ()) -> None:
        super().__init__(tally)
        self.purgatory = Purgatory("benchmark", observers=observers)

    async def __aenter__(self) -> Self:
        self.purgatory.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.purgatory.aclose(cancel_pending=True)

    def signal(self, keys: Sequence[Key]) -> None:
        check_and_complete = self.purgatory.check_and_complete
        for key in keys:
            check_and_complete(key)


class PurgatoryCallback(PurgatoryConstruct, RoundTripConstruct):
    """Fire and forget: the operation's own hooks are the callback."""

    style = Style.CALLBACK

    def __init__(self, tally: Tally, observers: Iterable[Observer] = ()) -> None:
        super().__init__(tally, observers)
        self._outstanding: deque[tuple[FlaggedWait, tuple[Key, ...]]] = deque()

    def park(
        self, requests: Sequence[int], targets: Sequence[tuple[Key, ...]], timeouts: Iterable[float]
    ) -> None:
        tally, watch = self.tally, self.purgatory.try_complete_else_watch
        for request, keys, timeout in zip(requests, targets, timeouts, strict=False):
            watch(CountedWait(timeout, request, tally), keys)

    def turn_over(self, targets: Sequence[tuple[Key, ...]], outstanding: int, checked: int) -> None:
        waits = self._outstanding
        watch, check_and_complete = self.purgatory.try_complete_else_watch, self.purgatory.check_and_complete
        for keys in targets:
            wait = FlaggedWait(TIMEOUT)
            watch(wait, keys)
            waits.append((wait, keys))
            if len(waits) > outstanding:
                wait, watched = waits.popleft()
                wait.ready = True
                for key in watched[:checked]:
                    check_and_complete(key)

    @property
    def held(self) -> int:
        return self.purgatory.statistics().watched


class OperationsAlone(Construct):
    """The floor: the same operations, made, tried and completed, but kept in plain lists and never timed."""

    name = "purgatory's hooks"
    style = Style.CALLBACK

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._buckets: dict[Key, list[CountedWait]] = {}

    def park(
        self, requests: Sequence[int], targets: Sequence[tuple[Key, ...]], timeouts: Iterable[float]
    ) -> None:
        tally, buckets = self.tally, self._buckets
        for request, keys, timeout in zip(requests, targets, timeouts, strict=False):
            wait = CountedWait(timeout, request, tally)
            if not wait.try_complete():
                bucket = buckets.get(keys[0])
                if bucket is None:
                    bucket = buckets[keys[0]] = []
                bucket.append(wait)

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            for wait in self._buckets.pop(key, ()):
                wait.try_complete()


class PurgatoryTask(PurgatoryConstruct, TaskConstruct):
    """A task awaits the operation."""

    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        operation = Wait(next(timeouts), request, self.tally)
        self.purgatory.try_complete_else_watch(operation, target)
        self.tally.parked += 1
        await operation
        if operation.expired:
            self.tally.expire(request)
        else:
            self.tally.completed += 1
