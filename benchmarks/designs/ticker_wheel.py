"""The single-level timing wheel: an array of slots, one of which is scanned at every tick."""

from __future__ import annotations

import math

from benchmarks.designs.alternative import Tally
from benchmarks.designs.timer import Entry, Timer

# The least fraction of a tick by which a loop that wakes early, or a rounding error, differs from a tick.
TOLERANCE = 1e-5


class TickerWheel(Timer):
    """The hashed timing wheel with unsorted lists (scheme 6) of Varghese and Lauck, 1987.

    It follows Netty's `HashedWheelTimer`, whose size it has; but Netty's tick is 100 ms. An entry goes to
    the slot of its tick, modulo the size, together with the round in which it is due. (Netty counts down the
    rounds that are left; an absolute number need not be written when the wheel passes the entry.)

    Adding and cancelling cost O(1). But the ticker wakes at every tick, whether an entry is due or pending or
    not; and each time it looks at all the entries of a slot, however many rounds away they are.
    """

    name = "ticker wheel"

    def __init__(self, tally: Tally, *, wheel_size: int = 512) -> None:
        super().__init__(tally)
        self._tick = 0.001
        self._wheel_size = wheel_size
        self._slots: list[dict[Entry, int]] = [{} for _ in range(wheel_size)]
        self._origin = self.loop.time()
        # The tick whose slot has been scanned last.
        self._now = 0
        # How many entries the scans have looked at.
        self.visited = 0
        self._next_tick()

    def __len__(self) -> int:
        return sum(map(len, self._slots))

    def _next_tick(self) -> None:
        self._handle = self.loop.call_at(self._origin + (self._now + 1) * self._tick, self._wake)

    def add(self, entry: Entry, delay: float) -> None:
        tick = math.ceil((self.loop.time() - self._origin + delay) / self._tick)
        if tick <= self._now:
            tick = self._now + 1
        slot = self._slots[tick % self._wheel_size]
        slot[entry] = tick // self._wheel_size
        entry.place = slot

    def cancel(self, entry: Entry) -> None:
        slot = entry.place
        if slot is not None:
            entry.place = None
            del slot[entry]

    def _wake(self) -> None:
        self.wakeups += 1
        reached = int((self.loop.time() - self._origin) / self._tick + TOLERANCE)
        # More than one tick when something else has held the loop.
        while self._now < reached:
            self._now += 1
            slot = self._slots[self._now % self._wheel_size]
            if slot:
                self._scan(slot, self._now // self._wheel_size)
        self._next_tick()

    def _scan(self, slot: dict[Entry, int], current: int) -> None:
        """Expire the entries that are due in the `current` round."""
        self.visited += len(slot)
        due = [entry for entry, round_due in slot.items() if round_due <= current]
        for entry in due:
            # Unless an entry before it has cancelled it, or added it anew for a later round.
            if slot.get(entry, math.inf) <= current:
                del slot[entry]
                entry.place = None
                entry.expire()
