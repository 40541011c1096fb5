"""The interface behind which timers are measured, and the older designs' timers, but for Kafka's."""

import asyncio
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.designs.alternative import Alternative, Tally

# The least fraction of a ticker wheel's tick by which a loop that wakes early, or a rounding error, differs
# from a tick.
TICK_TOLERANCE = 1e-5


class TimerAlternative(Alternative):
    """One design of a timer.

    An expiration calls `Tally.expire` with the number of its request, which counts from 0 in the order of
    adding. The timeouts that are pending at the end are withdrawn.
    """

    # Functions of the design, of a timeout and of a timeout and a delay.
    cancel: Callable[[Any], object]
    reschedule: Callable[[Any, float], object]

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        # The pending timeout of each request.
        self.timeouts: list[Any] = []

    @abstractmethod
    def add_all(self, delays: Iterable[float]) -> None:
        """Add one timeout for each delay, in seconds, taken as it starts."""

    def cancel_all(self, requests: Sequence[int]) -> None:
        """Withdraw these pending timeouts."""
        timeouts, cancel = self.timeouts, self.cancel
        for request in requests:
            cancel(timeouts[request])

    def renew_all(self, requests: Sequence[int], delay: float) -> None:
        """Have these pending timeouts expire `delay` seconds from now instead, as heartbeats do."""
        timeouts, reschedule = self.timeouts, self.reschedule
        for request in requests:
            reschedule(timeouts[request], delay)


class Entry:
    """Something that expires, for a user's request."""

    __slots__ = ("place", "request", "tally")

    # Where its timer keeps the entry, each design in its own way; None when the entry has been taken out.
    place: Any

    def __init__(self, request: int, tally: Tally) -> None:
        self.request = request
        self.tally = tally

    def expire(self) -> None:
        """Called once, when the delay is over. Must not raise."""
        self.tally.expire(self.request)


class Timer(TimerAlternative):
    """Calls `expire` of each entry when its delay is over. None renews: they cancel and add again."""

    # How often the loop has called the timer.
    wakeups = 0

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._handle: asyncio.TimerHandle | None = None
        # The time for which the handle is armed.
        self._armed = math.inf

    async def close(self) -> None:
        for timeout in self.timeouts:
            self.cancel(timeout)
        if self._handle is not None:
            self._handle.cancel()

    def add_all(self, delays: Iterable[float]) -> None:
        tally, timeouts, add = self.tally, self.timeouts, self.add
        for request, delay in enumerate(delays, len(timeouts)):
            timeout = Entry(request, tally)
            timeouts.append(timeout)
            add(timeout, delay)

    def renew_all(self, requests: Sequence[int], delay: float) -> None:
        timeouts, cancel, add = self.timeouts, self.cancel, self.add
        for request in requests:
            timeout = timeouts[request]
            cancel(timeout)
            add(timeout, delay)

    def _arm(self, when: float) -> None:
        """Have the loop call `_wake` at this time, instead of the time for which the timer was armed."""
        if self._handle is not None:
            self._handle.cancel()
        self._armed = when
        self._handle = self.loop.call_at(whole_milliseconds(when), self._wake)

    def _wake(self) -> None:  # `CallAt` is not armed
        """Expire what is due. Called by the loop."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of pending entries."""

    @abstractmethod
    def add(self, entry: Entry, delay: float) -> None:
        """Have `entry`, which is not pending, expire in `delay` seconds."""

    @abstractmethod
    def cancel(self, entry: Entry) -> None:
        """Have `entry`, which has been added once, not expire, if it is still pending."""


def whole_milliseconds(when: float) -> float:
    """The first whole millisecond that is not before `when`, give or take a nanosecond.

    A loop that counts in milliseconds, as uvloop does, would round to the nearest: half of the time it would
    wake too early, and again and again until the time has come.
    """
    return math.ceil(when * 1000 - 1e-6) / 1000


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
        reached = int((self.loop.time() - self._origin) / self._tick + TICK_TOLERANCE)
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
