"""A binary heap of deadlines, from which cancelled entries are only taken when they come to the top."""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush

from benchmarks.designs.alternative import Tally
from benchmarks.designs.timer import Entry, Timer

# A smaller heap is not rebuilt; asyncio's figure (_MIN_SCHEDULED_TIMER_HANDLES).
LEAST_TO_COMPACT = 100
# By how much the loop may wake early: the resolution of its clock, and rounding errors.
TOLERANCE = 1e-8


class LazyHeap(Timer):
    """asyncio's own way to keep timers, under a single timer of the event loop.

    Adding costs O(log n). Cancelling leaves a tombstone: the item stays in the heap, and keeps its entry
    alive, until its deadline. As in asyncio, the heap is rebuilt without the tombstones as soon as they are
    more than half of it, which holds the loop for as long as that takes.
    """

    name = "lazy heap"

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        # Deadline; number, so that equal deadlines keep their order and entries are never compared; entry,
        # whose place is that number as long as the item is not a tombstone.
        self._heap: list[tuple[float, int, Entry]] = []
        self._added = 0
        self.tombstones = 0

    def __len__(self) -> int:
        return len(self._heap) - self.tombstones

    def add(self, entry: Entry, delay: float) -> None:
        deadline = self.loop.time() + delay
        self._added = entry.place = number = self._added + 1
        heappush(self._heap, (deadline, number, entry))
        if deadline < self._armed:
            self._arm(deadline)

    def cancel(self, entry: Entry) -> None:
        if entry.place is not None:
            entry.place = None
            self.tombstones += 1
            heap = self._heap
            if self.tombstones * 2 > len(heap) > LEAST_TO_COMPACT:
                heap[:] = [item for item in heap if item[2].place == item[1]]
                heapify(heap)
                self.tombstones = 0

    def _wake(self) -> None:
        self.wakeups += 1
        # Awake: entries that are added while others expire arm nothing before the end.
        self._armed = -math.inf
        self._handle = None
        heap = self._heap
        due = self.loop.time() + TOLERANCE
        while heap and heap[0][0] <= due:
            _, number, entry = heappop(heap)
            if entry.place == number:
                entry.place = None
                entry.expire()
            else:
                self.tombstones -= 1
        self._armed = math.inf
        if heap:
            self._arm(heap[0][0])
