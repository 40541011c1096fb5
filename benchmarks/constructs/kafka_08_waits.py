"""Kafka 0.8's purgatory, in callback style."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from benchmarks.constructs.construct import TIMEOUT, Key, RoundTripConstruct, Style, Tally
from benchmarks.designs.kafka_08 import DelayedRequest, RequestPurgatory


class CountedRequest(DelayedRequest):
    """What a user of the 0.8 purgatory writes, with a field or two of its own."""

    __slots__ = ("request", "tally")

    def __init__(self, keys: tuple[Key, ...], timeout: float, request: int, tally: Tally) -> None:
        super().__init__(keys, timeout)
        self.request = request
        self.tally = tally

    def respond(self) -> None:
        self.tally.completed += 1

    def time_out(self) -> None:
        self.tally.expire(self.request)


class CountedRequests(RequestPurgatory[CountedRequest]):
    """And what makes a purgatory of them."""

    def check_satisfied(self, request: CountedRequest) -> bool:
        return request.tally.ready

    def expire(self, request: CountedRequest) -> None:
        request.time_out()


class FlaggedRequest(DelayedRequest):
    """A request with a condition of its own."""

    __slots__ = ("ready",)

    def __init__(self, keys: tuple[Key, ...], timeout: float) -> None:
        super().__init__(keys, timeout)
        self.ready = False


class FlaggedRequests(RequestPurgatory[FlaggedRequest]):
    """And the purgatory."""

    def check_satisfied(self, request: FlaggedRequest) -> bool:
        return request.ready

    def expire(self, request: FlaggedRequest) -> None:
        """There is nothing to do when it is over."""


class Kafka08(RoundTripConstruct):
    """Kafka 0.8: watch lists and a heap of requests, both purged now and then."""

    name = "Kafka 0.8's purgatory"
    style = Style.CALLBACK

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        # For what is parked, and for what turns over.
        self._counted = CountedRequests(self.loop)
        self._flagged = FlaggedRequests(self.loop)
        self._outstanding: deque[FlaggedRequest] = deque()

    async def __aenter__(self) -> Self:
        self._counted.start()
        self._flagged.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._counted.close()
        self._flagged.close()

    def park(
        self, requests: Sequence[int], targets: Sequence[tuple[Key, ...]], timeouts: Iterable[float]
    ) -> None:
        tally, watch = self.tally, self._counted.check_and_maybe_watch
        for request, keys, timeout in zip(requests, targets, timeouts, strict=False):
            delayed = CountedRequest(keys, timeout, request, tally)
            if watch(delayed):
                delayed.respond()

    def signal(self, keys: Sequence[Key]) -> None:
        update = self._counted.update
        for key in keys:
            for request in update(key):
                request.respond()

    def turn_over(self, targets: Sequence[tuple[Key, ...]], outstanding: int, checked: int) -> None:
        waits, watch, update = self._outstanding, self._flagged.check_and_maybe_watch, self._flagged.update
        for keys in targets:
            request = FlaggedRequest(keys, TIMEOUT)
            watch(request)
            waits.append(request)
            if len(waits) > outstanding:
                request = waits.popleft()
                request.ready = True
                for key in request.keys[:checked]:
                    update(key)

    @property
    def held(self) -> int:
        return self._counted.watched() + self._flagged.watched()
