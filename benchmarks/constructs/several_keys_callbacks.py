"""Callback style by hand on several keys: a wait is in the buckets of all of them, with one timer.

Whatever ends a wait takes it out of all its buckets and cancels its timer, as purgatory does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeVar

from benchmarks.constructs.callbacks import Callback
from benchmarks.constructs.construct import TIMEOUT, Key, RoundTripConstruct, Style, Tally

C = TypeVar("C")


class FlaggedCallback:
    """A wait with a condition of its own, and nothing to do when it is over."""

    __slots__ = ("handle", "ready")

    handle: asyncio.TimerHandle

    def __init__(self) -> None:
        self.ready = False


class SeveralKeysTimedCallback(RoundTripConstruct):
    """A callback in the dicts of several keys, and a timer each."""

    name = "plain callback + call_later"
    style = Style.CALLBACK

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._buckets: dict[Key, dict[Callback, tuple[Key, ...]]] = {}
        # Those that turn over.
        self._flagged: dict[Key, dict[FlaggedCallback, tuple[Key, ...]]] = {}
        self._outstanding: deque[tuple[FlaggedCallback, tuple[Key, ...]]] = deque()

    def park(
        self, requests: Sequence[int], targets: Sequence[tuple[Key, ...]], timeouts: Iterable[float]
    ) -> None:
        tally, buckets, call_later, expire = self.tally, self._buckets, self.loop.call_later, self._expire
        for request, keys, timeout in zip(requests, targets, timeouts, strict=False):
            callback = Callback(request, tally)
            for key in keys:
                bucket = buckets.get(key)
                if bucket is None:
                    bucket = buckets[key] = {}
                bucket[callback] = keys
            callback.handle = call_later(timeout, expire, keys, callback)

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            for callback, watched in list(self._buckets.get(key, {}).items()):
                callback.handle.cancel()
                forget(self._buckets, watched, callback)
                callback.complete()

    def _expire(self, keys: tuple[Key, ...], callback: Callback) -> None:
        forget(self._buckets, keys, callback)
        callback.expire()

    def turn_over(self, targets: Sequence[tuple[Key, ...]], outstanding: int, checked: int) -> None:
        buckets, waits, call_later = self._flagged, self._outstanding, self.loop.call_later
        for keys in targets:
            callback = FlaggedCallback()
            for key in keys:
                bucket = buckets.get(key)
                if bucket is None:
                    bucket = buckets[key] = {}
                bucket[callback] = keys
            callback.handle = call_later(TIMEOUT, forget, buckets, keys, callback)
            waits.append((callback, keys))
            if len(waits) > outstanding:
                callback, watched = waits.popleft()
                callback.ready = True
                for key in watched[:checked]:
                    self._check(key)

    def _check(self, key: Key) -> None:
        buckets = self._flagged
        bucket = buckets.get(key)
        if bucket is not None:
            for callback, keys in list(bucket.items()):
                if callback.ready:
                    callback.handle.cancel()
                    forget(buckets, keys, callback)

    @property
    def held(self) -> int:
        return sum(map(len, self._buckets.values())) + sum(map(len, self._flagged.values()))


def forget(buckets: dict[Key, dict[C, tuple[Key, ...]]], keys: tuple[Key, ...], callback: C) -> None:
    """Take `callback` out of the buckets of all its keys."""
    for key in keys:
        bucket = buckets[key]
        del bucket[callback]
        if not bucket:
            del buckets[key]
