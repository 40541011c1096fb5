"""One timer of the event loop for each entry."""

from __future__ import annotations

from benchmarks.designs.alternative import Tally
from benchmarks.designs.timer import Entry, Timer


class CallAt(Timer):
    """`loop.call_at` for each entry: asyncio keeps them in a lazy heap of its own, uvloop in libuv's.

    It keeps no list of what is pending: who adds entries one by one cancels them before `close`.
    """

    name = "one call_at each"

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._added = 0
        self._cancelled = 0

    def __len__(self) -> int:
        return self._added - self._cancelled - self.wakeups

    def add(self, entry: Entry, delay: float) -> None:
        loop = self.loop
        entry.place = loop.call_at(loop.time() + delay, self._expire, entry)
        self._added += 1

    def cancel(self, entry: Entry) -> None:
        handle = entry.place
        if handle is not None:
            entry.place = None
            handle.cancel()
            self._cancelled += 1

    def _expire(self, entry: Entry) -> None:
        self.wakeups += 1
        entry.place = None
        entry.expire()
