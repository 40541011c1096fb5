"""Purgatory, in both styles."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from benchmarks.designs.alternative import (
    TIMEOUT,
    Key,
    RoundTrips,
    Tally,
    Targets,
    TaskAlternative,
    WaitAlternative,
)
from purgatory import DelayedOperation, DelayedValue, OperationWithdrawn, Purgatory, Session
from purgatory.observer import Observer


class Wait(DelayedOperation[None]):
    """A user's operation: a condition, and two fields of its own."""

    __slots__ = ("request", "tally")

    def __init__(self, timeout: float, request: int, tally: Tally) -> None:
        super().__init__(timeout)
        self.request = request
        self.tally = tally

    def try_complete(self) -> bool:
        return self.tally.ready and self.force_complete()


class CountedWait(Wait):
    """The same in callback style: its hooks count the outcome."""

    __slots__ = ()

    def on_complete(self) -> None:
        self.tally.completed += 1

    def on_expiration(self) -> None:
        # on_complete has run before.
        self.tally.completed -= 1
        self.tally.expire(self.request)


class PurgatoryCallback(RoundTrips):
    """Fire and forget: the operation's own hooks are the callback."""

    name = "purgatory"
    make = CountedWait

    def __init__(self, tally: Tally, observers: Iterable[Observer] = ()) -> None:
        super().__init__(tally)
        self.purgatory = Purgatory("benchmark", observers=observers)
        self.watch = self.purgatory.try_complete_else_watch
        self.check = self.purgatory.check_and_complete
        self.purgatory.start()

    async def close(self) -> None:
        await self.purgatory.aclose(cancel_pending=True)

    @property
    def held(self) -> int:
        return self.purgatory.statistics().watched


class ReadyMade(PurgatoryCallback):
    """Operations that need no class of the user's own. The signal hands them their value."""

    def park(self, requests: Sequence[int], targets: Targets, timeouts: Iterable[float]) -> None:
        watch, make = self.watch, DelayedValue
        for keys, timeout in zip(targets, timeouts, strict=False):
            watch(make(timeout), keys)

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self.tally.completed += self.purgatory.complete_for_key(key, None)

    def turn_over(self, targets: Targets, outstanding: int, checked: int) -> None:
        waits, watch, make = self._outstanding, self.watch, DelayedValue
        complete_for_key = self.purgatory.complete_for_key
        for keys in targets:
            wait: DelayedValue[None] = make(TIMEOUT)
            watch(wait, keys)
            waits.append((wait, keys))
            if len(waits) > outstanding:
                wait, watched = waits.popleft()
                for key in watched[:checked]:
                    complete_for_key(key, None)


class ReadyMadeSession(PurgatoryCallback):
    """The same, where a callback learns of the timeout."""

    def park(self, requests: Sequence[int], targets: Targets, timeouts: Iterable[float]) -> None:
        watch, make, expire = self.watch, Session, self.tally.expire
        for request, keys, timeout in zip(requests, targets, timeouts, strict=False):
            watch(make(timeout, partial(expire, request)), keys)


class OperationsAlone(WaitAlternative):
    """The floor: the same operations, made, tried and completed, but kept in plain lists and never timed."""

    name = "purgatory's hooks"

    def park(self, requests: Sequence[int], targets: Targets, timeouts: Iterable[float]) -> None:
        tally, buckets = self.tally, self.buckets
        for request, keys, timeout in zip(requests, targets, timeouts, strict=False):
            wait = CountedWait(timeout, request, tally)
            if not wait.try_complete():
                bucket = buckets.get(keys[0])
                if bucket is None:
                    bucket = buckets[keys[0]] = []
                bucket.append(wait)

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            for wait in self.buckets.pop(key, ()):
                wait.try_complete()


class PurgatoryTask(TaskAlternative, PurgatoryCallback):
    """A task awaits the operation."""

    most = None

    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        operation = self.purgatory.try_complete_else_watch(Wait(next(timeouts), request, self.tally), target)
        self.tally.parked += 1
        try:
            await operation
        except OperationWithdrawn:
            return
        if operation.expired:
            self.tally.expire(request)
        else:
            self.tally.completed += 1


class ValueTask(PurgatoryTask):
    """A task awaits an operation that needs no class of the user's own. The signal hands it its value."""

    name = "purgatory's DelayedValue"

    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        value: DelayedValue[None] = DelayedValue(next(timeouts))
        self.purgatory.try_complete_else_watch(value, target)
        self.tally.parked += 1
        try:
            await value
        except TimeoutError:
            self.tally.expire(request)
        except OperationWithdrawn:
            return
        else:
            self.tally.completed += 1

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            for operation in self.purgatory.operations(key):
                operation.complete(None)
