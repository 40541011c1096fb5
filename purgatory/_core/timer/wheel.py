"""The hierarchical timing wheel, in whole ticks.

After G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), in the form that
Kafka gave it for its request purgatory: wheels stacked on demand, time jumping from one occupied slot to the
next. It knows no clock and no event loop: whoever drives it says what time it is.
"""

from __future__ import annotations

from typing import final

from purgatory._core.timer.task import Bucket, Level, TimerTask

# Measures best compiled, of 16 to 1024, if not by much: 3 to 8 % ahead of 64. Interpreted, 256 and more would
# be 10 % ahead of it. See benchmarks/wheel_size.py.
DEFAULT_WHEEL_SIZE = 32


@final
class TimingWheel:
    """Tasks ordered by the tick at which they expire, first in first out among equals.

    Level 0 has `wheel_size` slots of one tick; a slot of each further level spans the whole level below.
    Every level covers `wheel_size` slots from the one that holds `now`, so a slot already passed is used
    again, and levels are added when an expiration lies beyond them all.

    Adding and removing cost O(1) for a given number of levels (which is logarithmic in the longest
    timeout); `advance` costs O(1) per task returned, plus one move per level that a task sinks.

    Raises ValueError for a `wheel_size` below 2.
    """

    __slots__ = ("_latest_bucket", "_latest_expiration", "_levels", "_now", "_size", "_tasks")

    def __init__(self, wheel_size: int, start: int = 0) -> None:
        if not isinstance(wheel_size, int) or wheel_size < 2:
            raise ValueError(f"wheel_size must be an integer of at least 2, not {wheel_size!r}")
        self._size = wheel_size
        self._now = start
        self._levels = [Level(0, 1, wheel_size)]
        self._tasks = 0
        # Whoever adds many tasks at a time mostly adds them with the same timeout: the bucket that the
        # latest one went to serves them all until time passes, and with it the levels' windows.
        self._latest_expiration = -1
        self._latest_bucket: Bucket | None = None

    def __len__(self) -> int:
        return self._tasks

    def __repr__(self) -> str:
        return f"<TimingWheel now={self._now} tasks={self._tasks} levels={self.levels}>"

    @property
    def now(self) -> int:
        """The tick up to which this wheel has been advanced."""
        return self._now

    @property
    def levels(self) -> int:
        """How many levels there are; they grow on demand and timing."""
        return len(self._levels)

    def add(self, task: TimerTask, expiration: int) -> bool:
        """Store `task` until tick `expiration`; False, and nothing stored, when that has been reached.

        Raises RuntimeError for a task that is in a wheel already, TypeError when `expiration` is no int.
        """
        if task._bucket is not None:
            raise RuntimeError(f"{task!r} is in a timing wheel already: remove it first")
        if expiration <= self._now:
            return False
        bucket = self._latest_bucket
        if bucket is None or expiration != self._latest_expiration:
            bucket = self._latest_bucket = self._bucket_for(expiration)
            self._latest_expiration = expiration
        last = bucket.last
        task._expiration = expiration
        task._bucket = bucket
        task._previous = last
        task._next = None
        if last is None:
            bucket.first = task
            bucket.level.occupied |= 1 << bucket.slot
        else:
            last._next = task
        bucket.last = task
        self._tasks += 1
        return True

    def remove(self, task: TimerTask) -> bool:
        """Take `task` out; False when it is not in this wheel."""
        bucket = task._bucket
        if bucket is None or bucket.wheel is not self:
            return False
        previous, following = task._previous, task._next
        if previous is None:
            bucket.first = following
        else:
            previous._next = following
        if following is None:
            bucket.last = previous
        else:
            following._previous = previous
        if bucket.first is None:
            bucket.level.occupied ^= 1 << bucket.slot
        task._bucket = task._previous = task._next = None
        self._tasks -= 1
        return True

    def locate(self, task: TimerTask) -> tuple[int, int]:
        """The (level, slot) where `task` is. Raises ValueError when it is not in this wheel."""
        bucket = task._bucket
        if bucket is None or bucket.wheel is not self:
            raise ValueError(f"{task!r} is not in this timing wheel")
        return bucket.level.number, bucket.slot

    def loads(self, most: int) -> list[list[int]]:
        """How many tasks are in each slot of each level, each counted up to `most`: O(most) a slot."""
        loads: list[list[int]] = []
        for level in self._levels:
            slots = [0] * self._size
            for slot in range(self._size):
                bucket = level.buckets[slot]
                task = None if bucket is None else bucket.first
                load = 0
                while task is not None and load < most:
                    load += 1
                    task = task._next
                slots[slot] = load
            loads.append(slots)
        return loads

    def next_expiration(self) -> int | None:
        """The tick at which the next occupied slot starts: no task is due before it. None when empty.

        It is `now` or earlier only while an `advance` with a limit has left something undone.
        """
        if not self._tasks:
            return None
        soonest = 0
        found = False
        for level in self._levels:
            if level.occupied:
                position = self._now // level.width
                slot = position % self._size
                ahead = level.occupied >> slot
                if ahead:
                    position += (ahead & -ahead).bit_length() - 1
                else:
                    passed = level.occupied
                    position += self._size - slot + (passed & -passed).bit_length() - 1
                start = position * level.width
                if not found or start < soonest:
                    soonest = start
                    found = True
        return soonest

    def advance(self, now: int, limit: int | None = None) -> list[TimerTask]:
        """Go to tick `now`; the tasks due by then, by expiration, first in first out among equals.

        With a `limit` at most that many tasks are moved to a lower level or returned. When the limit
        stops it, the wheel's `now` stays where the work stopped and the next call goes on from there.
        Limit 0 only lets time pass, as far as nothing has to move for it.

        Raises ValueError when `now` is in the past or the limit is negative, TypeError when `now` is no int.
        """
        if not isinstance(now, int):
            raise TypeError(f"now must be a whole number of ticks, not {now!r}")
        if now < self._now:
            raise ValueError(f"time cannot go back from tick {self._now} to {now}")
        if limit is not None and limit < 0:
            raise ValueError(f"limit must not be negative, got {limit}")
        budget = self._tasks * (len(self._levels) + 1) if limit is None else limit
        due: list[TimerTask] = []
        while self.reach(now):
            budget -= self.sink(budget)
            while budget > 0:
                task = self.pop()
                if task is None:
                    break
                budget -= 1
                due.append(task)
            if budget == 0:
                break
        return due

    # The steps of advance, for who has to look at the clock in between

    def reach(self, now: int) -> bool:
        """Go to the next occupied slot begun by tick `now`; False, and go to `now`, when there is none."""
        start = self.next_expiration()
        found = start is not None and start <= now
        # A task that is run may itself have led to an advance, so this may be in the past already.
        self._now = start if start is not None and found else max(now, self._now)
        self._latest_bucket = None
        return found

    def sink(self, limit: int) -> int:
        """Move what waits in the higher levels' slots that start now to where it belongs now; how many.

        Because the windows roll, a task added later may sit on a lower level than an earlier one with the
        same expiration. So everything goes in front of what is there: the lower level's slot first, each
        from its end, which leaves the highest level's tasks, the earliest added, at the very front.
        Stopping anywhere in between keeps that order. Those due land in level 0's slot of this tick.
        """
        moved = 0
        for level in self._levels[1:]:
            if self._now % level.width:
                break
            bucket = level.buckets[self._now // level.width % self._size]
            while bucket is not None and moved < limit:
                task = bucket.last
                if task is None:
                    break
                moved += 1
                self.remove(task)
                self._add_in_front(task)
        return moved

    def pop(self) -> TimerTask | None:
        """Take out the first task due now, once all has sunk that has to; None when there is none."""
        bucket = self._levels[0].buckets[self._now % self._size]
        task = None if bucket is None else bucket.first
        if task is not None:
            self.remove(task)
        return task

    def _add_in_front(self, task: TimerTask) -> None:
        bucket = self._bucket_for(task._expiration)
        first = bucket.first
        task._bucket = bucket
        task._next = first
        if first is None:
            bucket.last = task
            bucket.level.occupied |= 1 << bucket.slot
        else:
            first._previous = task
        bucket.first = task
        self._tasks += 1

    def _bucket_for(self, expiration: int) -> Bucket:
        """The bucket of the lowest level whose window reaches `expiration`."""
        if not isinstance(expiration, int):
            raise TypeError(f"expiration must be a whole number of ticks, not {expiration!r}")
        now = self._now
        ahead = expiration - now
        level = self._levels[0]
        while ahead >= level.span:
            level = level.above or self._grow()
        position = expiration // level.width
        if position - now // level.width >= self._size:
            # Within the level's span of now, yet past its last slot: now is in the middle of the first.
            level = level.above or self._grow()
            position = expiration // level.width
        slot = position % self._size
        bucket = level.buckets[slot]
        if bucket is None:
            bucket = level.buckets[slot] = Bucket(self, level, slot)
        return bucket

    def _grow(self) -> Level:
        highest = self._levels[-1]
        highest.above = level = Level(len(self._levels), highest.span, self._size)
        self._levels.append(level)
        return level
