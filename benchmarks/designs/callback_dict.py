"""Code by hand: a dict of waiters for each key, and a timer of any design for their timeouts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence

from benchmarks.designs.timer import Entry, Timer


class Waiter(Entry):
    """Waits for `ready`, or for its timeout. Subclasses have a field or property `ready`, and the hooks."""

    __slots__ = ("keys", "owner")

    # While it waits.
    keys: Sequence[Hashable]
    owner: CallbackDict

    @property
    @abstractmethod
    def ready(self) -> bool:
        """Whether the condition holds."""

    def complete(self) -> None:
        """Called once, when a check finds the waiter ready."""

    def time_out(self) -> None:
        """Called once, instead of `complete`, when the time is over."""

    def expire(self) -> None:
        self.owner.forget(self)
        self.time_out()


class CallbackDict:
    """Waiters by the keys they watch. Whatever ends a wait takes it off all its keys and out of the timer."""

    def __init__(self, timer: Timer) -> None:
        self.timer = timer
        self._buckets: dict[Hashable, dict[Waiter, None]] = {}

    def start(self) -> None:
        """Start the timer."""
        self.timer.start()

    def close(self) -> None:
        """Cancel all waiters, and leave nothing armed."""
        for bucket in self._buckets.values():
            for waiter in bucket:
                self.timer.cancel(waiter)
        self._buckets.clear()
        self.timer.close()

    def watched(self) -> int:
        """The number of entries in the dicts."""
        return sum(map(len, self._buckets.values()))

    def watch(self, waiter: Waiter, keys: Sequence[Hashable], timeout: float) -> None:
        """Have `waiter` wait for a check of any of `keys`, each given once, that finds it ready."""
        buckets = self._buckets
        waiter.owner = self
        waiter.keys = keys
        for key in keys:
            bucket = buckets.get(key)
            if bucket is None:
                bucket = buckets[key] = {}
            bucket[waiter] = None
        self.timer.add(waiter, timeout)

    def check(self, key: Hashable) -> None:
        """Complete the waiters on `key` that are ready. Their hooks must not check in turn."""
        bucket = self._buckets.get(key)
        if bucket is not None:
            for waiter in list(bucket):
                if waiter.ready:
                    self.timer.cancel(waiter)
                    self.forget(waiter)
                    waiter.complete()

    def forget(self, waiter: Waiter) -> None:
        """Take the waiter off all its keys."""
        buckets = self._buckets
        for key in waiter.keys:
            bucket = buckets[key]
            del bucket[waiter]
            if not bucket:
                del buckets[key]
