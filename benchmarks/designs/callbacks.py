"""Callback style by hand: waits in a bucket for each key, with a timer of the loop, of any design, or none.

Whatever ends a wait also takes it out of all its buckets and cancels its timer, as purgatory does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Sequence

from benchmarks.designs.alternative import Key, RoundTrips, Tally, Targets, WaitAlternative
from benchmarks.designs.timers import Entry, TickerWheel


class Callback:
    """A user's callback: something to call at the end, with two fields of its own."""

    __slots__ = ("handle", "request", "tally")

    handle: asyncio.TimerHandle

    def __init__(self, request: int, tally: Tally) -> None:
        self.request = request
        self.tally = tally

    def complete(self) -> None:
        self.tally.completed += 1

    def expire(self) -> None:
        self.tally.expire(self.request)

    def resolved(self, future: asyncio.Future[None]) -> None:
        """The same as the callback of a future, whose exception says that it timed out."""
        self.handle.cancel()
        if future.exception() is None:
            self.complete()
        else:
            self.expire()


class BareCallback(WaitAlternative):
    """The floor: a callback in a dict for each key, and nothing that ever times out."""

    name = "plain callback, no timer"

    def park(self, requests: Sequence[int], targets: Targets, timeouts: Iterable[float]) -> None:
        tally, buckets = self.tally, self.buckets
        for request, (key,), _ in zip(requests, targets, timeouts, strict=False):
            bucket = buckets.get(key)
            if bucket is None:
                bucket = buckets[key] = {}
            bucket[Callback(request, tally)] = None

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            for callback in self.buckets.pop(key, ()):
                callback.complete()


class TimedCallback(BareCallback):
    """A callback in a dict for each key, and a timer each."""

    name = "plain callback + call_later"

    def park(self, requests: Sequence[int], targets: Targets, timeouts: Iterable[float]) -> None:
        tally, buckets, call_later, expire = self.tally, self.buckets, self.loop.call_later, self._expire
        for request, (key,), timeout in zip(requests, targets, timeouts, strict=False):
            callback = Callback(request, tally)
            bucket = buckets.get(key)
            if bucket is None:
                bucket = buckets[key] = {}
            bucket[callback] = None
            callback.handle = call_later(timeout, expire, key, callback)

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            for callback in self.buckets.pop(key, ()):
                callback.handle.cancel()
                callback.complete()

    def _expire(self, key: Key, callback: Callback) -> None:
        bucket = self.buckets[key]
        del bucket[callback]
        if not bucket:
            del self.buckets[key]
        callback.expire()


class FutureCallback(WaitAlternative):
    """A future in a list for each key, with a callback, and a timer each."""

    name = "Future + call_later"

    def park(self, requests: Sequence[int], targets: Targets, timeouts: Iterable[float]) -> None:
        tally, buckets, loop, expire = self.tally, self.buckets, self.loop, self._expire
        for request, (key,), timeout in zip(requests, targets, timeouts, strict=False):
            callback = Callback(request, tally)
            future = loop.create_future()
            future.add_done_callback(callback.resolved)
            bucket = buckets.get(key)
            if bucket is None:
                bucket = buckets[key] = []
            bucket.append(future)
            callback.handle = loop.call_later(timeout, expire, key, future)

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            for future in self.buckets.pop(key, ()):
                future.set_result(None)

    def _expire(self, key: Key, future: asyncio.Future[None]) -> None:
        bucket = self.buckets.get(key)
        # None when the key has been signalled, and the callbacks run later in this turn of the loop.
        if bucket is not None:
            bucket.remove(future)
            if not bucket:
                del self.buckets[key]
            future.set_exception(TimeoutError())


class SeveralKeysTimedCallback(RoundTrips):
    """A callback in the dicts of several keys, and a timer each."""

    name = "plain callback + call_later"
    make = Callback
    holds_timeout = False

    def watch(self, callback: Callback, keys: tuple[Key, ...], timeout: float) -> None:
        buckets = self.buckets
        for key in keys:
            bucket = buckets.get(key)
            if bucket is None:
                bucket = buckets[key] = {}
            bucket[callback] = keys
        callback.handle = self.loop.call_later(timeout, self._expire, keys, callback)

    def check(self, key: Key) -> None:
        """Complete the waits on one key whose own condition holds."""
        for callback, keys in list(self.buckets.get(key, {}).items()):
            if callback.tally.ready:
                callback.handle.cancel()
                self._forget(callback, keys)
                callback.complete()

    def _expire(self, keys: tuple[Key, ...], callback: Callback) -> None:
        self._forget(callback, keys)
        callback.expire()

    def _forget(self, callback: Callback, keys: tuple[Key, ...]) -> None:
        for key in keys:
            bucket = self.buckets[key]
            del bucket[callback]
            if not bucket:
                del self.buckets[key]


class Waiter(Entry):
    """A user's wait for its condition, which the tally has, or for its timeout."""

    __slots__ = ("keys", "owner")

    # While it waits.
    keys: Sequence[Hashable]
    owner: DictAndTickerWheel

    def complete(self) -> None:
        """Called once, when a check finds the condition true."""
        self.tally.completed += 1

    def expire(self) -> None:
        """Called once, instead of `complete`, when the time is over."""
        self.owner.forget(self)
        self.tally.expire(self.request)


class DictAndTickerWheel(RoundTrips):
    """Waiters by the keys they watch. Whatever ends a wait takes it off all its keys and out of the wheel."""

    name = "dict + ticker wheel"
    make = Waiter
    holds_timeout = False

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self.timer = TickerWheel(tally)

    async def close(self) -> None:
        for bucket in self.buckets.values():
            for waiter in bucket:
                self.timer.cancel(waiter)
        await self.timer.close()

    def watch(self, waiter: Waiter, keys: Sequence[Hashable], timeout: float) -> None:
        """Have `waiter` wait for a check of any of `keys`, each given once, that finds its condition true."""
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
        """Complete the waiters on `key` whose condition holds. Their hooks must not check in turn."""
        bucket = self.buckets.get(key)
        if bucket is not None:
            for waiter in list(bucket):
                if waiter.tally.ready:
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
