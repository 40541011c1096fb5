"""The older designs of a purgatory, in callback style. The designs themselves are in `benchmarks.designs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from benchmarks.designs.call_at import CallAt
from benchmarks.designs.callback_dict import CallbackDict, Waiter
from benchmarks.designs.kafka_08 import DelayedRequest, RequestPurgatory
from benchmarks.designs.kafka_purgatory import DelayedOperation, DelayedOperationPurgatory
from benchmarks.designs.lazy_heap import LazyHeap
from benchmarks.designs.ticker_wheel import TickerWheel
from benchmarks.designs.timer import Timer
from benchmarks.suites.waits.alternative import HandWrittenAlternative, Key, RoundTripAlternative, Tally


class CountedOperation(DelayedOperation):
    """A user's operation in Kafka's present purgatory, with two fields of its own."""

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
        # on_complete has run before.
        self.tally.completed -= 1
        self.tally.expire(self.request)


class KafkaToday(RoundTripAlternative):
    """Hierarchical timing wheels, and watch lists that are purged now and then."""

    name = "Kafka's present design"
    make = CountedOperation

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._purgatory = DelayedOperationPurgatory(self.loop)
        self.watch = self._purgatory.try_complete_else_watch
        self.check = self._purgatory.check_and_complete

    def start(self) -> None:
        self._purgatory.start()

    async def close(self) -> None:
        self._purgatory.close()

    @property
    def held(self) -> int:
        return self._purgatory.watched()


class CountedRequest(DelayedRequest):
    """A user's request in the purgatory of Kafka 0.8, with two fields of its own."""

    __slots__ = ("request", "tally")

    def __init__(self, timeout: float, request: int, tally: Tally) -> None:
        super().__init__(timeout)
        self.request = request
        self.tally = tally

    def check_satisfied(self) -> bool:
        return self.tally.ready

    def respond(self) -> None:
        self.tally.completed += 1

    def expire(self) -> None:
        self.tally.expire(self.request)


class Kafka08(RoundTripAlternative):
    """Watch lists and a heap of requests, both purged now and then."""

    name = "Kafka 0.8's purgatory"
    make = CountedRequest

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._purgatory: RequestPurgatory[Any] = RequestPurgatory(self.loop)
        self.watch = self._purgatory.check_and_maybe_watch
        self.check = self._purgatory.update

    def start(self) -> None:
        self._purgatory.start()

    async def close(self) -> None:
        self._purgatory.close()

    def signal(self, keys: Sequence[Key]) -> None:
        update = self._purgatory.update
        for key in keys:
            for request in update(key):
                request.respond()

    @property
    def held(self) -> int:
        return self._purgatory.watched()


class CountedWaiter(Waiter):
    """A user's waiter in a dict, with two fields of its own."""

    __slots__ = ("request", "tally")

    def __init__(self, request: int, tally: Tally) -> None:
        self.request = request
        self.tally = tally

    @property
    def ready(self) -> bool:
        return self.tally.ready

    def complete(self) -> None:
        self.tally.completed += 1

    def time_out(self) -> None:
        self.tally.expire(self.request)


class DictAlternative(HandWrittenAlternative):
    """Code by hand: waiters in a dict for each key, and the timer that a subclass names."""

    make = CountedWaiter
    design: ClassVar[type[Timer]]

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._callbacks = CallbackDict(self.design(self.loop))
        self.watch = self._callbacks.watch
        self.check = self._callbacks.check

    def start(self) -> None:
        self._callbacks.start()

    async def close(self) -> None:
        self._callbacks.close()

    @property
    def held(self) -> int:
        return self._callbacks.watched()


class DictAndLazyHeap(DictAlternative):
    """A dict over a binary heap with tombstones."""

    name = "dict + lazy heap"
    design = LazyHeap


class DictAndTickerWheel(DictAlternative):
    """A dict over a single wheel, scanned by a ticker."""

    name = "dict + ticker wheel"
    design = TickerWheel


class DictAndCallAt(DictAlternative):
    """A dict over a timer of the event loop each."""

    name = "dict + call_at"
    design = CallAt


KAFKAS: tuple[type[RoundTripAlternative], ...] = (KafkaToday, Kafka08)
# The dict over call_at is left out: the plain callbacks do the same, with a little less work.
OLDER_DESIGNS: tuple[type[RoundTripAlternative], ...] = (*KAFKAS, DictAndLazyHeap, DictAndTickerWheel)
