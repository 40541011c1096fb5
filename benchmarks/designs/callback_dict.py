"""Code by hand: a dict of waiters for each key, and a timer of any design for their timeouts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from benchmarks.designs.alternative import HandWrittenAlternative, Tally
from benchmarks.designs.timers import CallAt, Entry, LazyHeap, TickerWheel, Timer


class Waiter(Entry):
    """A user's wait for `ready`, or for its timeout."""

    __slots__ = ("keys", "owner")

    # While it waits.
    keys: Sequence[Hashable]
    owner: CallbackDict

    @property
    def ready(self) -> bool:
        return self.tally.ready

    def complete(self) -> None:
        """Called once, when a check finds the waiter ready."""
        self.tally.completed += 1

    def time_out(self) -> None:
        """Called once, instead of `complete`, when the time is over."""
        self.tally.expire(self.request)

    def expire(self) -> None:
        self.owner.forget(self)
        self.time_out()


class CallbackDict(HandWrittenAlternative):
    """Waiters by the keys they watch. Whatever ends a wait takes it off all its keys and out of the timer."""

    make = Waiter
    design: ClassVar[type[Timer]]

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self.timer = self.design(tally)

    async def close(self) -> None:
        for bucket in self.buckets.values():
            for waiter in bucket:
                self.timer.cancel(waiter)
        await self.timer.close()

    def watch(self, waiter: Waiter, keys: Sequence[Hashable], timeout: float) -> None:
        """Have `waiter` wait for a check of any of `keys`, each given once, that finds it ready."""
        buckets = self.buckets
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
        bucket = self.buckets.get(key)
        if bucket is not None:
            for waiter in list(bucket):
                if waiter.ready:
                    self.timer.cancel(waiter)
                    self.forget(waiter)
                    waiter.complete()

    def forget(self, waiter: Waiter) -> None:
        buckets = self.buckets
        for key in waiter.keys:
            bucket = buckets[key]
            del bucket[waiter]
            if not bucket:
                del buckets[key]


class DictAndLazyHeap(CallbackDict):
    name = "dict + lazy heap"
    design = LazyHeap


class DictAndTickerWheel(CallbackDict):
    name = "dict + ticker wheel"
    design = TickerWheel


class DictAndCallAt(CallbackDict):
    name = "dict + call_at"
    design = CallAt
