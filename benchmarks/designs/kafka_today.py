"""Kafka's present purgatory and its timer, without locks: on one event loop nothing else runs meanwhile.

The timer is hierarchical timing wheels, driven by a delay queue of their buckets, after `TimingWheel`,
`TimerTaskList` and `SystemTimer` in org.apache.kafka.server.util.timer. The purgatory has watch lists that
are purged of completed operations now and then, after `DelayedOperationPurgatory` and `DelayedOperation` in
org.apache.kafka.server.purgatory (Kafka 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from heapq import heappop, heappush

from benchmarks.designs.alternative import RoundTrips, Tally
from benchmarks.designs.timers import Entry, Timer

TICK_MS = 1
WHEEL_SIZE = 20
# In milliseconds: by how much the loop may ring early, and rounding errors.
TOLERANCE = 1e-5
PURGE_INTERVAL = 1000
# Seconds for which the JVM's reaper polls its timer before it looks whether to purge.
POLL = 0.2


class TimerTaskEntry:
    """One task in a bucket. An entry that is no longer its task's place has been cancelled."""

    __slots__ = ("bucket", "expiration", "following", "previous", "task")

    # While it is in a bucket.
    previous: TimerTaskEntry
    following: TimerTaskEntry

    def __init__(self, task: Entry | None, expiration: int) -> None:
        self.task = task
        self.expiration = expiration
        self.bucket: TimerTaskList | None = None


class TimerTaskList:
    """One bucket: a doubly linked ring of entries around a root, and the time when it is due."""

    __slots__ = ("expiration", "number", "root", "timer")

    def __init__(self, number: int, timer: SystemTimer) -> None:
        self.number = number
        self.timer = timer
        # -1 when it is not in the delay queue.
        self.expiration = -1
        self.root = root = TimerTaskEntry(None, -1)
        root.previous = root.following = root

    def add(self, entry: TimerTaskEntry) -> None:
        root = self.root
        last = root.previous
        entry.bucket = self
        entry.previous = last
        entry.following = root
        last.following = root.previous = entry
        self.timer.tasks += 1

    def remove(self, entry: TimerTaskEntry) -> None:
        """Remove the entry in O(1). The bucket stays in the delay queue, even when it is empty."""
        previous, following = entry.previous, entry.following
        previous.following = following
        following.previous = previous
        del entry.previous, entry.following
        entry.bucket = None
        self.timer.tasks -= 1

    def flush(self) -> list[TimerTaskEntry]:
        entries = []
        root = self.root
        entry = root.following
        while entry is not root:
            entries.append(entry)
            following = entry.following
            del entry.previous, entry.following
            entry.bucket = None
            entry = following
        root.previous = root.following = root
        self.timer.tasks -= len(entries)
        self.expiration = -1
        return entries


class TimingWheel:
    """One level of the hierarchy, with a clock of its own, which moves in steps of the level's tick."""

    __slots__ = ("buckets", "current", "interval", "overflow", "tick", "timer", "wheel_size")

    def __init__(self, tick: int, wheel_size: int, start: int, timer: SystemTimer) -> None:
        self.tick = tick
        self.wheel_size = wheel_size
        self.interval = tick * wheel_size
        self.current = start - start % tick
        self.timer = timer
        self.buckets = [TimerTaskList(timer.buckets + number, timer) for number in range(wheel_size)]
        timer.buckets += wheel_size
        self.overflow: TimingWheel | None = None

    def add(self, entry: TimerTaskEntry) -> bool:
        """Put the entry into its bucket, here or on a level above; False when it is due already."""
        expiration = entry.expiration
        wheel = self
        if expiration < wheel.current + wheel.tick:
            return False
        while expiration >= wheel.current + wheel.interval:
            if wheel.overflow is None:
                wheel.overflow = TimingWheel(wheel.interval, wheel.wheel_size, wheel.current, wheel.timer)
            wheel = wheel.overflow
        number = expiration // wheel.tick
        bucket = wheel.buckets[number % wheel.wheel_size]
        bucket.add(entry)
        due = number * wheel.tick
        if bucket.expiration != due:
            bucket.expiration = due
            heappush(wheel.timer.queue, (due, bucket.number, bucket))
        return True

    def advance_clock(self, now: int) -> None:
        """Let time pass, also on the levels above."""
        if now >= self.current + self.tick:
            self.current = now - now % self.tick
            if self.overflow is not None:
                self.overflow.advance_clock(self.current)


# When it is due; a number to compare where that is equal; the bucket.
DelayedBucket = tuple[int, int, TimerTaskList]


class SystemTimer(Timer):
    """Adds and cancels in O(1), and wakes for the next bucket that has been used, even if it is empty.

    A bucket that is due puts its entries a level down, again and again until they are due themselves.

    As in Kafka, time is cut to whole milliseconds when an entry is added, so that it expires up to a
    millisecond early. The JVM's reaper is a thread that polls the delay queue, for 200 ms at most each time;
    here a timer of the loop is armed for the head of the queue. Due entries run on another thread there;
    here they run once all due buckets have been emptied, and can be cancelled until then.
    """

    name = "Kafka's present timer"

    def __init__(self, tally: Tally, *, after_advance: Callable[[], None] | None = None) -> None:
        super().__init__(tally)
        self._after_advance = after_advance
        self.queue: list[DelayedBucket] = []
        # The buckets of all levels, and the tasks in them.
        self.buckets = self.tasks = 0
        self._wheel = TimingWheel(TICK_MS, WHEEL_SIZE, self._milliseconds(), self)
        # The entries that are in the executor's queue, in Kafka.
        self._due: list[TimerTaskEntry] = []

    def __len__(self) -> int:
        return self.tasks

    def add(self, entry: Entry, delay: float) -> None:
        now = self._milliseconds()
        task_entry = entry.place = TimerTaskEntry(entry, now + math.ceil(delay * 1000))
        if not self._wheel.add(task_entry):
            self._due.append(task_entry)
            if now / 1000 < self._armed:
                self._arm(now / 1000)
        elif self.queue[0][0] / 1000 < self._armed:
            self._arm(self.queue[0][0] / 1000)

    def cancel(self, entry: Entry) -> None:
        cancel(entry)

    def _milliseconds(self) -> int:
        return int(self.loop.time() * 1000 + TOLERANCE)

    def _wake(self) -> None:
        self.wakeups += 1
        # Awake: entries that are added while tasks run arm nothing before the end.
        self._armed = -math.inf
        self._handle = None
        queue, wheel = self.queue, self._wheel
        now = self._milliseconds()
        while queue and queue[0][0] <= now:
            expiration, _, bucket = heappop(queue)
            wheel.advance_clock(expiration)
            self._due += [entry for entry in bucket.flush() if not wheel.add(entry)]
        due, self._due = self._due, []
        for entry in due:
            task = entry.task
            if task is not None and task.place is entry:
                task.place = None
                task.expire()
        if self._after_advance is not None:
            self._after_advance()
        self._armed = math.inf
        if self._due:
            self._arm(self._milliseconds() / 1000)
        elif self.queue:
            self._arm(self.queue[0][0] / 1000)


def cancel(task: Entry) -> None:
    """Take `task` out of its bucket. This needs no timer, because the entry knows the bucket."""
    entry = task.place
    if entry is not None:
        task.place = None
        if entry.bucket is not None:
            entry.bucket.remove(entry)


class DelayedOperation(Entry):
    """A user's wait for its condition, which the tally has, or for `delay` seconds."""

    __slots__ = ("completed", "delay")

    def __init__(self, delay: float, request: int, tally: Tally) -> None:
        super().__init__(request, tally)
        self.place = None
        self.delay = delay
        self.completed = False

    def try_complete(self) -> bool:
        return self.tally.ready and self.force_complete()

    def on_complete(self) -> None:
        """Called once, when the operation is completed or has expired."""
        self.tally.completed += 1

    def on_expiration(self) -> None:
        """Called after `on_complete` if the operation has expired."""
        self.tally.completed -= 1
        self.tally.expire(self.request)

    def force_complete(self) -> bool:
        """Complete the operation, unless it is completed; whether this call did."""
        if self.completed:
            return False
        self.completed = True
        cancel(self)
        self.on_complete()
        return True

    def expire(self) -> None:
        if self.force_complete():
            self.on_expiration()


class KafkaToday(RoundTrips):
    """Operations by the keys they watch, and a timer.

    A completed operation leaves the timer at once. It leaves the watch lists only when a check of the key, or
    a purge, finds it: a purge comes once more than `purge_interval` are estimated to have completed since the
    last one. The estimate is compared when the timer has advanced, and every 200 ms. (The JVM's reaper does
    both in one thread, which polls the timer for so long.)

    On one event loop there are no locks: neither those of the operations, nor those of the 512 shards of the
    table of watch lists, which is one dict here.
    """

    name = "Kafka's present design"
    make = DelayedOperation

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self.timer = SystemTimer(tally, after_advance=self._purge_if_worthwhile)
        # Those pending at the last purge, and all that have been watched since.
        self.estimated_total_operations = 0
        # How many entries the purges have looked at.
        self.walked = 0
        self._reaper = self.loop.call_later(POLL, self._poll)

    async def close(self) -> None:
        """Leave nothing armed; as in Kafka, pending operations stay so for ever."""
        await self.timer.close()
        self._reaper.cancel()

    def watch(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> bool:
        """Try; watch the keys; try again; then start the timeout. Whether it was completed here."""
        if operation.try_complete():
            return True
        lists = self.buckets
        for key in keys:
            if not operation.completed:
                watchers = lists.get(key)
                if watchers is None:
                    lists[key] = [operation]
                else:
                    watchers.append(operation)
        self.estimated_total_operations += 1
        # Nothing can have happened in between here, but the second try is part of the design.
        if operation.try_complete():
            return True
        if not operation.completed:
            self.timer.add(operation, operation.delay)
        return False

    def check(self, key: Hashable) -> int:
        """Try the operations that watch `key`, and forget the completed; how many completed here."""
        watchers = self.buckets.get(key)
        if watchers is None:
            return 0
        completed = stale = 0
        for operation in watchers:
            if operation.completed:
                stale += 1
            elif operation.try_complete():
                completed += 1
        if completed or stale:
            # Looked up again: a hook may have checked or watched the key.
            self._purge_completed(key, self.buckets.get(key, []))
        return completed

    def _purge_completed(self, key: Hashable, watchers: list[DelayedOperation]) -> None:
        """Drop the completed from the key's list, and with the last one the key."""
        pending = [operation for operation in watchers if not operation.completed]
        if pending:
            self.buckets[key] = pending
        else:
            self.buckets.pop(key, None)

    def _poll(self) -> None:
        self._purge_if_worthwhile()
        self._reaper = self.loop.call_later(POLL, self._poll)

    def _purge_if_worthwhile(self) -> None:
        pending = len(self.timer)
        if self.estimated_total_operations - pending > PURGE_INTERVAL:
            self.estimated_total_operations = pending
            for key, watchers in list(self.buckets.items()):
                self.walked += len(watchers)
                self._purge_completed(key, watchers)
