"""Checks that other threads ask for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable
from typing import final


@final
class Signals:
    """The keys that threads have signalled since the loop last took them, each key once.

    However many signals come before the loop wakes, it wakes once.
    """

    __slots__ = ("_keys", "_lock", "_loop", "_wake")

    def __init__(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        self._loop = loop
        self._wake = wake
        # Re-entrant, because the hash of a key, or a finalizer that runs at that moment, may signal itself.
        self._lock = threading.RLock()
        self._keys: dict[Hashable, None] = {}

    def signal(self, key: Hashable) -> None:
        """Have the loop call `wake`, which takes this key among others. From any thread."""
        with self._lock:
            if not self._keys:
                self._loop.call_soon_threadsafe(self._wake)
            # `take` waits for the lock, so it finds this key.
            self._keys[key] = None

    def take(self) -> list[Hashable]:
        """The keys signalled since the last call, in the order of their first signal."""
        with self._lock:
            # One assignment, because a finalizer may signal in the middle of it.
            keys, self._keys = self._keys, {}
        return list(keys)
