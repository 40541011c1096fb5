"""Callback style by hand: waits in a bucket for each key, with a timer of the event loop each, or none.

Whatever ends a wait also takes it out of all its buckets and cancels its timer, as purgatory does.
"""

import asyncio
from collections.abc import Iterable, Sequence

from benchmarks.designs.alternative import HandWrittenAlternative, Key, Tally, Targets, WaitAlternative


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


class SeveralKeysTimedCallback(HandWrittenAlternative):
    """A callback in the dicts of several keys, and a timer each."""

    name = "plain callback + call_later"
    make = Callback

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
