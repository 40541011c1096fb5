"""Kafka's present purgatory: watch lists that are purged of completed operations now and then.

After `DelayedOperationPurgatory` and `DelayedOperation` in org.apache.kafka.server.purgatory (Kafka 4).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence

from benchmarks.designs.alternative import RoundTripAlternative, Tally
from benchmarks.designs.kafka_timer import SystemTimer, cancel
from benchmarks.designs.timer import Entry

PURGE_INTERVAL = 1000
# Seconds for which the JVM's reaper polls its timer before it looks whether to purge.
POLL = 0.2


class DelayedOperation(Entry):
    """Waits for its condition, or for `delay` seconds. Subclasses override the hooks."""

    __slots__ = ("completed", "delay")

    def __init__(self, delay: float) -> None:
        self.place = None
        self.delay = delay
        self.completed = False

    @abstractmethod
    def try_complete(self) -> bool:
        """Look at the condition; when it holds, return `force_complete()`."""

    def on_complete(self) -> None:
        """Called once, when the operation is completed or has expired."""

    def on_expiration(self) -> None:
        """Called after `on_complete` if the operation has expired."""

    def force_complete(self) -> bool:
        """Complete the operation, unless it is completed; whether this call did."""
        if self.completed:
            return False
        self.completed = True
        cancel(self)
        self.on_complete()
        return True

    def expire(self) -> None:
        if self.force_complete():
            self.on_expiration()


class CountedOperation(DelayedOperation):
    """A user's operation, with two fields of its own."""

    __slots__ = ()

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
    """Operations by the keys they watch, and a timer.

    A completed operation leaves the timer at once. It leaves the watch lists only when a check of the key, or
    a purge, finds it: a purge comes once more than `purge_interval` are estimated to have completed since the
    last one. The estimate is compared when the timer has advanced, and every 200 ms. (The JVM's reaper does
    both in one thread, which polls the timer for so long.)

    On one event loop there are no locks: neither those of the operations, nor those of the 512 shards of the
    table of watch lists, which is one dict here.
    """

    name = "Kafka's present design"
    make = CountedOperation

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self.timer = SystemTimer(tally, after_advance=self._purge_if_worthwhile)
        # Those pending at the last purge, and all that have been watched since.
        self.estimated_total_operations = 0
        # How many entries the purges have looked at.
        self.walked = 0
        self._reaper = self.loop.call_later(POLL, self._poll)

    async def close(self) -> None:
        """Leave nothing armed; as in Kafka, pending operations stay so for ever."""
        await self.timer.close()
        self._reaper.cancel()

    def watch(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> bool:
        """Try; watch the keys; try again; then start the timeout. Whether it was completed here."""
        if operation.try_complete():
            return True
        lists = self.buckets
        for key in keys:
            if not operation.completed:
                watchers = lists.get(key)
                if watchers is None:
                    lists[key] = [operation]
                else:
                    watchers.append(operation)
        self.estimated_total_operations += 1
        # Nothing can have happened in between here, but the second try is part of the design.
        if operation.try_complete():
            return True
        if not operation.completed:
            self.timer.add(operation, operation.delay)
        return False

    def check(self, key: Hashable) -> int:
        """Try the operations that watch `key`, and forget the completed; how many completed here."""
        watchers = self.buckets.get(key)
        if watchers is None:
            return 0
        completed = stale = 0
        for operation in watchers:
            if operation.completed:
                stale += 1
            elif operation.try_complete():
                completed += 1
        if completed or stale:
            # Looked up again: a hook may have checked or watched the key.
            self._purge_completed(key, self.buckets.get(key, []))
        return completed

    def _purge_completed(self, key: Hashable, watchers: list[DelayedOperation]) -> None:
        """Drop the completed from the key's list, and with the last one the key."""
        pending = [operation for operation in watchers if not operation.completed]
        if pending:
            self.buckets[key] = pending
        else:
            self.buckets.pop(key, None)

    def _poll(self) -> None:
        self._purge_if_worthwhile()
        self._reaper = self.loop.call_later(POLL, self._poll)

    def _purge_if_worthwhile(self) -> None:
        pending = len(self.timer)
        if self.estimated_total_operations - pending > PURGE_INTERVAL:
            self.estimated_total_operations = pending
            for key, watchers in list(self.buckets.items()):
                self.walked += len(watchers)
                self._purge_completed(key, watchers)
