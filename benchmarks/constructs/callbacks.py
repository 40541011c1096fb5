"""Callback style by hand on one key: waits in its bucket, with a timer of the event loop each, or none.

Whatever ends a wait also takes it out of its bucket and cancels its timer, as purgatory does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from benchmarks.constructs.construct import Construct, Key, Style, Tally


class Callback:
    """What a user writes: something to call when it is over, with a field or two of its own."""

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


class BareCallback(Construct):
    """The floor: a callback in a dict for each key, and nothing that ever times out."""

    name = "plain callback, no timer"
    style = Style.CALLBACK

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._buckets: dict[Key, dict[Callback, None]] = {}

    def park(
        self, requests: Sequence[int], targets: Sequence[tuple[Key, ...]], timeouts: Iterable[float]
    ) -> None:
        tally, buckets = self.tally, self._buckets
        for request, (key,), _ in zip(requests, targets, timeouts, strict=False):
            bucket = buckets.get(key)
            if bucket is None:
                bucket = buckets[key] = {}
            bucket[Callback(request, tally)] = None

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            for callback in self._buckets.pop(key, ()):
                callback.complete()


class TimedCallback(Construct):
    """A callback in a dict for each key, and a timer each."""

    name = "plain callback + call_later"
    style = Style.CALLBACK

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._buckets: dict[Key, dict[Callback, None]] = {}

    def park(
        self, requests: Sequence[int], targets: Sequence[tuple[Key, ...]], timeouts: Iterable[float]
    ) -> None:
        tally, buckets, call_later, expire = self.tally, self._buckets, self.loop.call_later, self._expire
        for request, (key,), timeout in zip(requests, targets, timeouts, strict=False):
            callback = Callback(request, tally)
            bucket = buckets.get(key)
            if bucket is None:
                bucket = buckets[key] = {}
            bucket[callback] = None
            callback.handle = call_later(timeout, expire, key, callback)

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            for callback in self._buckets.pop(key, ()):
                callback.handle.cancel()
                callback.complete()

    def _expire(self, key: Key, callback: Callback) -> None:
        bucket = self._buckets[key]
        del bucket[callback]
        if not bucket:
            del self._buckets[key]
        callback.expire()


class FutureCallback(Construct):
    """A future in a list for each key, with a callback, and a timer each."""

    name = "Future + call_later"
    style = Style.CALLBACK

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._buckets: dict[Key, list[asyncio.Future[None]]] = {}

    def park(
        self, requests: Sequence[int], targets: Sequence[tuple[Key, ...]], timeouts: Iterable[float]
    ) -> None:
        tally, buckets, loop, expire = self.tally, self._buckets, self.loop, self._expire
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
            for future in self._buckets.pop(key, ()):
                future.set_result(None)

    def _expire(self, key: Key, future: asyncio.Future[None]) -> None:
        bucket = self._buckets.get(key)
        # None when the key has been signalled, and this turn of the loop has yet to call back.
        if bucket is not None:
            bucket.remove(future)
            if not bucket:
                del self._buckets[key]
            future.set_exception(TimeoutError())
