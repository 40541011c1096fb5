"""What is written by hand, in callback style: a dict of waiters for each key, over several timers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import ClassVar, Self

from benchmarks.constructs.construct import TIMEOUT, Key, RoundTripConstruct, Style, Tally
from benchmarks.designs.call_at import CallAt
from benchmarks.designs.callback_dict import CallbackDict, Waiter
from benchmarks.designs.lazy_heap import LazyHeap
from benchmarks.designs.ticker_wheel import TickerWheel
from benchmarks.designs.timer import Timer


class CountedWaiter(Waiter):
    """What is written by hand, with a field or two of its own."""

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


class FlaggedWaiter(Waiter):
    """One with a condition of its own."""

    __slots__ = ("ready",)

    ready: bool

    def __init__(self) -> None:
        self.ready = False

    def complete(self) -> None:
        """There is nothing to do when it is over."""

    def time_out(self) -> None:
        """Nor then."""


class DictConstruct(RoundTripConstruct):
    """Waiters in a dict for each key, and the timer that a subclass names."""

    style = Style.CALLBACK
    design: ClassVar[type[Timer]]

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._callbacks = CallbackDict(self.design(self.loop))
        self._outstanding: deque[FlaggedWaiter] = deque()

    async def __aenter__(self) -> Self:
        self._callbacks.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._callbacks.close()

    def park(
        self, requests: Sequence[int], targets: Sequence[tuple[Key, ...]], timeouts: Iterable[float]
    ) -> None:
        tally, watch = self.tally, self._callbacks.watch
        for request, keys, timeout in zip(requests, targets, timeouts, strict=False):
            watch(CountedWaiter(request, tally), keys, timeout)

    def signal(self, keys: Sequence[Key]) -> None:
        check = self._callbacks.check
        for key in keys:
            check(key)

    def turn_over(self, targets: Sequence[tuple[Key, ...]], outstanding: int, checked: int) -> None:
        waits, watch, check = self._outstanding, self._callbacks.watch, self._callbacks.check
        for keys in targets:
            waiter = FlaggedWaiter()
            watch(waiter, keys, TIMEOUT)
            waits.append(waiter)
            if len(waits) > outstanding:
                waiter = waits.popleft()
                waiter.ready = True
                for key in waiter.keys[:checked]:
                    check(key)

    @property
    def held(self) -> int:
        return self._callbacks.watched()


class DictAndLazyHeap(DictConstruct):
    """With a binary heap with tombstones."""

    name = "dict + lazy heap"
    design = LazyHeap


class DictAndTickerWheel(DictConstruct):
    """With a single wheel, scanned by a ticker."""

    name = "dict + ticker wheel"
    design = TickerWheel


class DictAndCallAt(DictConstruct):
    """With a timer of the event loop each."""

    name = "dict + call_at"
    design = CallAt
