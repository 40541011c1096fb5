"""Kafka's present purgatory, in callback style."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from benchmarks.constructs.construct import TIMEOUT, Key, RoundTripConstruct, Style, Tally
from benchmarks.designs.kafka_purgatory import DelayedOperation, DelayedOperationPurgatory


class CountedOperation(DelayedOperation):
    """What a user of Kafka's present purgatory writes, with a field or two of its own."""

    __slots__ = ("request", "tally")

    def __init__(self, timeout: float, request: int, tally: Tally) -> None:
        super().__init__(timeout)
        self.request = request
        self.tally = tally

    def try_complete(self) -> bool:
        return self.tally.ready and self.force_complete()

    def on_complete(self) -> None:
        self.tally.completed += 1

    def on_expiration(self) -> None:
        # After on_complete, which runs in either case.
        self.tally.completed -= 1
        self.tally.expire(self.request)


class FlaggedOperation(DelayedOperation):
    """An operation with a condition of its own."""

    __slots__ = ("ready",)

    def __init__(self, timeout: float) -> None:
        super().__init__(timeout)
        self.ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        """There is nothing to do when it is over."""

    def on_expiration(self) -> None:
        """Nor then."""


class KafkaToday(RoundTripConstruct):
    """Kafka's present design: hierarchical timing wheels, and watch lists that are purged now and then."""

    name = "Kafka's present design"
    style = Style.CALLBACK

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._purgatory = DelayedOperationPurgatory(self.loop)
        self._outstanding: deque[tuple[FlaggedOperation, tuple[Key, ...]]] = deque()

    async def __aenter__(self) -> Self:
        self._purgatory.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._purgatory.close()

    def park(
        self, requests: Sequence[int], targets: Sequence[tuple[Key, ...]], timeouts: Iterable[float]
    ) -> None:
        tally, watch = self.tally, self._purgatory.try_complete_else_watch
        for request, keys, timeout in zip(requests, targets, timeouts, strict=False):
            watch(CountedOperation(timeout, request, tally), keys)

    def signal(self, keys: Sequence[Key]) -> None:
        check_and_complete = self._purgatory.check_and_complete
        for key in keys:
            check_and_complete(key)

    def turn_over(self, targets: Sequence[tuple[Key, ...]], outstanding: int, checked: int) -> None:
        waits, purgatory = self._outstanding, self._purgatory
        watch, check_and_complete = purgatory.try_complete_else_watch, purgatory.check_and_complete
        for keys in targets:
            operation = FlaggedOperation(TIMEOUT)
            watch(operation, keys)
            waits.append((operation, keys))
            if len(waits) > outstanding:
                operation, watched = waits.popleft()
                operation.ready = True
                for key in watched[:checked]:
                    check_and_complete(key)

    @property
    def held(self) -> int:
        return self._purgatory.watched()
