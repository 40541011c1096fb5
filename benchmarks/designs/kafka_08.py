"""The request purgatory of Kafka 0.8: what is done is not removed, but found at some time, or purged.

After `kafka.server.RequestPurgatory` of 0.8.2. The timing wheel of 0.9 was made to replace its queue; the
design note (cwiki.apache.org, "Purgatory Redesign Proposal") says what was wrong with it.
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from heapq import heapify, heappop, heappush
from types import TracebackType
from typing import Generic, Self, TypeVar

from benchmarks.designs.timer import whole_milliseconds

PURGE_INTERVAL = 1000

# Seconds for which the JVM's reaper polls its queue before it sees whether to purge.
POLL = 0.2

# By how much the loop may ring early: the resolution of its clock, and rounding errors.
TOLERANCE = 1e-8


class DelayedRequest:
    """Waits on `keys` for `delay` seconds at most; subclass it for what the request is about."""

    __slots__ = ("delay", "keys", "satisfied")

    def __init__(self, keys: Sequence[Hashable], delay: float) -> None:
        self.keys = keys
        self.delay = delay
        # Set once, by whoever satisfies it first or by its expiry. An atomic flag where there are threads.
        self.satisfied = False


R = TypeVar("R", bound=DelayedRequest)


class RequestPurgatory(ABC, Generic[R]):
    """Requests by the keys they watch, and a delay queue of them all: between `start` and `close`.

    A satisfied request stays on its watch lists, until somebody walks over it in `update` of that key, and
    in the delay queue until it would have expired. Or until a purge, which walks over all the lists once
    `purge_interval` entries are on them, and over the queue once so many are in that: satisfied ones or
    not, so that with more than that pending each purge is followed by the next. The lists of keys stay
    for ever.

    On one event loop there are no locks, the flag is a plain one, and the reaper is no thread but a timer
    of the loop, armed for the head of the queue or for the 200 ms that the thread polls, whichever comes
    first. It sees whether to purge after all that is due has expired, where the thread does so after each
    single request: so purging costs less here than it did.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, purge_interval: int = PURGE_INTERVAL) -> None:
        self.loop = loop
        self._purge_interval = purge_interval
        self._watchers: dict[Hashable, list[R]] = {}
        # When it expires; a number, so that requests are never compared; the request.
        self._queue: list[tuple[float, int, R]] = []
        self._enqueued = 0
        self.purges = 0
        # How many entries the purges have looked at.
        self.walked = 0
        # How often the loop has called the reaper.
        self.wakeups = 0
        self._handle: asyncio.TimerHandle | None = None
        # The time for which the handle is armed.
        self._armed = math.inf

    @abstractmethod
    def check_satisfied(self, request: R) -> bool:
        """Whether the condition of `request` holds."""

    @abstractmethod
    def expire(self, request: R) -> None:
        """Answer a request whose time was over before it was satisfied."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the reaper."""
        self._arm()

    def close(self) -> None:
        """Leave nothing armed; as in Kafka, pending requests stay so for ever."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._armed = -math.inf

    def watched(self) -> int:
        """How many entries are on the watch lists, those of satisfied requests included."""
        return sum(map(len, self._watchers.values()))

    def delayed(self) -> int:
        """How many requests are in the delay queue, satisfied ones included."""
        return len(self._queue)

    def check_and_maybe_watch(self, request: R) -> bool:
        """Check; watch the keys; check again; then start the timeout. Whether it has been satisfied here."""
        if not request.keys or self.check_satisfied(request):
            return _satisfy(request)
        lists = self._watchers
        for key in request.keys:
            # By another thread, in Kafka.
            if request.satisfied:
                return False
            watchers = lists.get(key)
            if watchers is None:
                lists[key] = [request]
            else:
                watchers.append(request)
        if self.check_satisfied(request):
            return _satisfy(request)
        self._enqueue(request)
        return False

    def update(self, key: Hashable) -> list[R]:
        """Check those that watch `key`, and forget the satisfied; those that this call has satisfied."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return []
        check_satisfied = self.check_satisfied
        collected = []
        stale = False
        for request in watchers:
            if request.satisfied:
                stale = True
            elif check_satisfied(request):
                request.satisfied = True
                collected.append(request)
        if stale or collected:
            watchers[:] = [request for request in watchers if not request.satisfied]
        return collected

    def _enqueue(self, request: R) -> None:
        self._enqueued += 1
        expiration = self.loop.time() + request.delay
        heappush(self._queue, (expiration, self._enqueued, request))
        if expiration < self._armed:
            self._arm()

    def _arm(self) -> None:
        """For the head of the queue, or for the end of the poll."""
        if self._handle is not None:
            self._handle.cancel()
        self._armed = self.loop.time() + POLL
        if self._queue:
            self._armed = min(self._armed, self._queue[0][0])
        self._handle = self.loop.call_at(whole_milliseconds(self._armed), self._reap)

    def _reap(self) -> None:
        self.wakeups += 1
        # Awake: whatever is enqueued while requests expire, nothing needs arming before the end.
        self._armed = -math.inf
        self._handle = None
        queue = self._queue
        due = self.loop.time() + TOLERANCE
        while queue and queue[0][0] <= due:
            request = heappop(queue)[2]
            if not request.satisfied:
                request.satisfied = True
                self.expire(request)
        if self.watched() >= self._purge_interval:
            self._purge_watchers()
        if self.delayed() >= self._purge_interval:
            self._purge_queue()
        self._arm()

    def _purge_watchers(self) -> None:
        """Drop the satisfied from every watch list."""
        self.purges += 1
        for watchers in self._watchers.values():
            self.walked += len(watchers)
            watchers[:] = [request for request in watchers if not request.satisfied]

    def _purge_queue(self) -> None:
        """Drop the satisfied from the queue."""
        self.purges += 1
        queue = self._queue
        self.walked += len(queue)
        queue[:] = [item for item in queue if not item[2].satisfied]
        heapify(queue)


def _satisfy(request: DelayedRequest) -> bool:
    """Whether it has not been satisfied before."""
    if request.satisfied:
        return False
    request.satisfied = True
    return True
