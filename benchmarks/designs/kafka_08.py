"""The request purgatory of Kafka 0.8: satisfied requests are not removed, but found at some time, or purged.

After `kafka.server.RequestPurgatory` of 0.8.2. The timing wheel of 0.9 was made to replace its queue; the
design note (cwiki.apache.org, "Purgatory Redesign Proposal") says what was wrong with it.
"""

import asyncio
import math
from collections.abc import Hashable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from benchmarks.designs.alternative import Key, RoundTrips, Tally
from benchmarks.designs.kafka_today import POLL, PURGE_INTERVAL
from benchmarks.designs.timers import whole_milliseconds

# By how much the loop may wake early: the resolution of its clock, and rounding errors.
EARLY = 1e-8


class DelayedRequest:
    """A user's request, which waits for its condition, which the tally has, or for `delay` seconds.

    In Kafka the purgatory has the methods, and the request its keys from the beginning.
    """

    __slots__ = ("delay", "keys", "request", "satisfied", "tally")

    # While it waits.
    keys: Sequence[Hashable]

    def __init__(self, delay: float, request: int, tally: Tally) -> None:
        self.delay = delay
        self.request = request
        self.tally = tally
        # Set once, by a check or by its expiry. An atomic flag where there are threads.
        self.satisfied = False

    def check_satisfied(self) -> bool:
        return self.tally.ready

    def respond(self) -> None:
        """Answer the request, which was satisfied."""
        self.tally.completed += 1

    def expire(self) -> None:
        """Answer the request, whose time was over before it was satisfied."""
        self.tally.expire(self.request)


class Kafka08(RoundTrips):
    """Requests by the keys they watch, and a delay queue of them all.

    A satisfied request stays on its watch lists until a check of that key walks over it, and in the delay
    queue until it would have expired. Or until a purge, which walks over all the lists once `purge_interval`
    entries are on them, and over the queue once so many are in that: satisfied ones or not, so that with
    more than that pending each purge is followed by the next. The lists of keys stay for ever.

    On one event loop there are no locks, the flag is a plain one, and the reaper is no thread but a timer of
    the loop, armed for the head of the queue or for the 200 ms that the thread polls, whichever comes first.
    It looks whether to purge after all due requests have expired, where the thread does so after each single
    request: so purging costs less here than it did.
    """

    name = "Kafka 0.8's purgatory"
    make = DelayedRequest

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        # When it expires; a number, so that requests are never compared; the request.
        self.queue: list[tuple[float, int, Any]] = []
        self._enqueued = 0
        # How many entries the purges have looked at.
        self.walked = 0
        self._handle: asyncio.TimerHandle | None = None
        # The time for which the handle is armed.
        self._armed = math.inf
        self._arm()

    def _arm(self) -> None:
        """Have the reaper wake for the head of the queue, or at the end of the poll."""
        if self._handle is not None:
            self._handle.cancel()
        self._armed = self.loop.time() + POLL
        if self.queue:
            self._armed = min(self._armed, self.queue[0][0])
        self._handle = self.loop.call_at(whole_milliseconds(self._armed), self._reap)

    async def close(self) -> None:
        """Leave nothing armed; as in Kafka, pending requests stay so for ever."""
        if self._handle is not None:
            self._handle.cancel()

    def watch(self, request: DelayedRequest, keys: Sequence[Hashable]) -> bool:
        """Check; watch the keys; check again; then start the timeout. Whether it was satisfied here."""
        if not keys or request.check_satisfied():
            return _satisfy(request)
        request.keys = keys
        lists = self.buckets
        for key in keys:
            # By another thread, in Kafka.
            if request.satisfied:
                return False
            watchers = lists.get(key)
            if watchers is None:
                lists[key] = [request]
            else:
                watchers.append(request)
        if request.check_satisfied():
            return _satisfy(request)
        self._enqueued += 1
        expiration = self.loop.time() + request.delay
        heappush(self.queue, (expiration, self._enqueued, request))
        if expiration < self._armed:
            self._arm()
        return False

    def signal(self, keys: Sequence[Key]) -> None:
        check = self.check
        for key in keys:
            for request in check(key):
                request.respond()

    def check(self, key: Hashable) -> list[Any]:
        """Check the requests that watch `key`, and forget the satisfied; returns those of this call."""
        watchers = self.buckets.get(key)
        if watchers is None:
            return []
        collected = []
        stale = False
        for request in watchers:
            if request.satisfied:
                stale = True
            elif request.check_satisfied():
                request.satisfied = True
                collected.append(request)
        if stale or collected:
            watchers[:] = [request for request in watchers if not request.satisfied]
        return collected

    def _reap(self) -> None:
        # Awake: requests that are enqueued while others expire arm nothing before the end.
        self._armed = -math.inf
        self._handle = None
        queue = self.queue
        due = self.loop.time() + EARLY
        while queue and queue[0][0] <= due:
            request = heappop(queue)[2]
            if not request.satisfied:
                request.satisfied = True
                request.expire()
        if self.held >= PURGE_INTERVAL:
            for watchers in self.buckets.values():
                self.walked += len(watchers)
                watchers[:] = [request for request in watchers if not request.satisfied]
        if len(queue) >= PURGE_INTERVAL:
            self.walked += len(queue)
            queue[:] = [item for item in queue if not item[2].satisfied]
            heapify(queue)
        self._arm()


def _satisfy(request: DelayedRequest) -> bool:
    """Whether the request has not been satisfied before."""
    if request.satisfied:
        return False
    request.satisfied = True
    return True
