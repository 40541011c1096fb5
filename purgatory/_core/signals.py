"""Checks asked for by other threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable
from typing import final


@final
class Signals:
    """The keys that threads have signalled since the loop last looked, each once.

    However many signals come before the loop wakes, it wakes once.
    """

    __slots__ = ("_keys", "_lock", "_loop", "_wake")

    def __init__(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        self._loop = loop
        self._wake = wake
        # Re-entrant: hashing a key, or a finalizer run at that moment, may itself signal.
        self._lock = threading.RLock()
        self._keys: dict[Hashable, None] = {}

    def signal(self, key: Hashable) -> None:
        """Have `wake` called on the loop, to `take` this key among others. From any thread."""
        with self._lock:
            if not self._keys:
                self._loop.call_soon_threadsafe(self._wake)
            # Whoever takes the keys waits for the lock, so will find this one.
            self._keys[key] = None

    def take(self) -> list[Hashable]:
        """The keys signalled since the last call, in the order of their first signal."""
        with self._lock:
            # At one stroke, because a signal from a finalizer may come in the middle of this.
            keys, self._keys = self._keys, {}
        return list(keys)
