"""The hierarchical timing wheel, in whole ticks.

The idea is by G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987). The form
is Kafka's, from its request purgatory: wheels stacked on demand, and time that jumps from one occupied slot
to the next. The wheel knows no clock and no event loop: its caller says what time it is.
"""

from __future__ import annotations

from typing import Final, final

from purgatory._core.timer.task import TimerTask

# All tasks of a slot of level 1 sink at once: of a million timeouts in a second on a quiet machine, 99 % are
# at most 4 ms late, with 100 slots 5, with 32 slots 37 to 75. Compiled code does not allocate the bits of 60
# slots.
DEFAULT_WHEEL_SIZE: Final = 60


@final
class Level:
    """One wheel of the stack: `size` slots, each `width` ticks wide."""

    __slots__ = ("above", "buckets", "number", "occupied", "span", "width")

    def __init__(self, number: int, width: int, size: int) -> None:
        self.number = number
        self.width = width
        self.span = width * size
        self.buckets: list[Bucket | None] = [None] * size
        # One bit for each slot. Arithmetic finds the next occupied slot, however many are empty.
        self.occupied = 0
        self.above: Level | None = None


@final
class Bucket:
    """The tasks of one slot, in order: a doubly linked list whose links are fields of the tasks."""

    __slots__ = ("bit", "first", "last", "level", "slot", "wheel")

    def __init__(self, wheel: TimingWheel, level: Level, slot: int) -> None:
        self.wheel = wheel
        self.level = level
        self.slot = slot
        self.bit = 1 << slot
        self.first: TimerTask | None = None
        self.last: TimerTask | None = None


@final
class TimingWheel:
    """Tasks ordered by the tick at which they expire. Tasks with the same tick keep their order.

    Level 0 has `wheel_size` slots of one tick. A slot of each further level spans the whole level below.
    Each level covers `wheel_size` slots, and the first is the one that holds `now`. So a slot that has
    passed is used again. An expiration beyond the highest level adds a level.

    Adding and removing cost O(1) for a given number of levels. That number grows with the logarithm of the
    longest timeout. `advance` costs O(1) for each task that it returns, and one move for each level that a
    task sinks. Raises ValueError for a `wheel_size` below 2.
    """

    __slots__ = ("_latest_bucket", "_latest_expiration", "_levels", "_now", "_size", "_tasks")

    def __init__(self, wheel_size: int, start: int = 0) -> None:
        if not isinstance(wheel_size, int) or wheel_size < 2:
            raise ValueError(f"wheel_size must be an integer of at least 2, not {wheel_size!r}")
        self._size = wheel_size
        self._now = start
        self._levels = [Level(0, 1, wheel_size)]
        self._tasks = 0
        # Callers mostly give many tasks in a row one timeout. The bucket of the latest task serves them all
        # until time passes and the windows of the levels move.
        self._latest_expiration = -1
        self._latest_bucket: Bucket | None = None

    def __len__(self) -> int:
        return self._tasks

    def __repr__(self) -> str:
        return f"<TimingWheel now={self._now} tasks={self._tasks} levels={self.levels}>"

    @property
    def now(self) -> int:
        """The tick to which the wheel has advanced."""
        return self._now

    @property
    def levels(self) -> int:
        """The number of levels. The wheel adds levels on demand and keeps them."""
        return len(self._levels)

    def add(self, task: TimerTask, expiration: int) -> bool:
        """Store `task` until tick `expiration`. False, and nothing stored, when `now` has reached it.

        Raises RuntimeError for a task that is in a wheel already, TypeError when `expiration` is not an int.
        """
        if task._bucket is not None:
            raise RuntimeError(f"{task!r} is in a timing wheel already: remove it first")
        if expiration <= self._now:
            return False
        bucket = self._latest_bucket
        if bucket is None or expiration != self._latest_expiration:
            if not isinstance(expiration, int):
                raise TypeError(f"expiration must be a whole number of ticks, not {expiration!r}")
            bucket = self._bucket_for(expiration)
            self._latest_bucket = bucket
            self._latest_expiration = expiration
        last = bucket.last
        if last is None:
            bucket.level.occupied ^= bucket.bit
            bucket.first = task
        else:
            last._next = task
        task._expiration = expiration
        task._bucket = bucket
        task._previous = last
        task._next = None
        bucket.last = task
        self._tasks += 1
        return True

    def remove(self, task: TimerTask) -> bool:
        """Remove `task`. False when it is not in this wheel."""
        bucket = task._bucket
        if bucket is None or bucket.wheel is not self:
            return False
        previous, following = task._previous, task._next
        if previous is None:
            bucket.first = following
            if following is None:
                bucket.level.occupied ^= bucket.bit
        else:
            previous._next = following
        if following is None:
            bucket.last = previous
        else:
            following._previous = previous
        task._bucket = task._previous = task._next = None
        self._tasks -= 1
        return True

    def move(self, task: TimerTask, expiration: int) -> bool:
        """Give `task` another expiration, as `add` does.

        With a later expiration, too, the task stays where it is, so that this costs next to nothing. When its
        slot starts, `sink` or `pop` moves it on.
        """
        bucket = task._bucket
        if bucket is not None:
            if bucket.wheel is not self:
                raise RuntimeError(f"{task!r} is in a timing wheel already: remove it there first")
            if expiration >= task._expiration:
                task._expiration = expiration
                return True
            self.remove(task)
        return self.add(task, expiration)

    def free(self, task: TimerTask) -> None:
        """Remove `task` if it is in a wheel. Raises RuntimeError when that is another one."""
        if task._bucket is not None and not self.remove(task):
            raise RuntimeError(f"{task!r} is in a timing wheel already: remove it there first")

    def locate(self, task: TimerTask) -> tuple[int, int]:
        """The (level, slot) of `task`. Raises ValueError when it is not in this wheel."""
        bucket = task._bucket
        if bucket is None or bucket.wheel is not self:
            raise ValueError(f"{task!r} is not in this timing wheel")
        return bucket.level.number, bucket.slot

    def loads(self, most: int) -> list[list[int]]:
        """The number of tasks in each slot of each level, counted up to `most`. O(most) for each slot."""
        return [[_load(bucket, most) for bucket in level.buckets] for level in self._levels]

    def next_expiration(self) -> int | None:
        """The tick at which the next occupied slot starts. No task is due before it. None when empty.

        A task that was given a later expiration occupies its old slot until that starts. It is `now` or
        earlier only after an `advance` that its limit stopped.
        """
        return self.next_start() if self._tasks else None

    def next_start(self) -> int:
        """Do what `next_expiration` does, but return 0 when empty. Compiled, this makes no object."""
        soonest = 0
        found = False
        for level in self._levels:
            if level.occupied:
                position = self._now // level.width
                slot = position % self._size
                ahead = level.occupied >> slot
                if not ahead:
                    position += self._size - slot
                    ahead = level.occupied
                position += (ahead & -ahead).bit_length() - 1
                start = position * level.width
                if not found or start < soonest:
                    soonest = start
                    found = True
        return soonest

    def advance(self, now: int, limit: int | None = None) -> list[TimerTask]:
        """Advance to tick `now`. Returns the tasks due by then, by expiration, then in order of insertion.

        A `limit` bounds how many tasks this call moves to a lower level or returns. When the limit stops
        it, the wheel's `now` is where the work stopped, and the next call goes on from there. A limit of 0
        advances as far as no task has to move.

        Raises ValueError for a `now` in the past or a negative limit, TypeError for a `now` that is no int.
        """
        if not isinstance(now, int):
            raise TypeError(f"now must be a whole number of ticks, not {now!r}")
        if now < self._now:
            raise ValueError(f"time cannot go back from tick {self._now} to {now}")
        if limit is not None and limit < 0:
            raise ValueError(f"limit must not be negative, got {limit}")
        budget = 1 << 60 if limit is None else limit  # More tasks than any wheel holds.
        due: list[TimerTask] = []
        while self.reach(now):
            budget -= self.sink(budget)
            while budget > 0:
                task = self.pop()
                if task is None:
                    break
                budget -= 1
                # A finalizer may have removed one that is not due, while its new slot was made.
                if task._bucket is None and task._expiration <= self._now:
                    due.append(task)
            if budget == 0:
                break
        return due

    # The steps of `advance`, for a caller that looks at the clock between two of them

    def reach(self, now: int) -> bool:
        """Go to the first occupied slot that starts by tick `now`. False, and go to `now`, when none does."""
        start = self.next_start()
        found = self._tasks > 0 and start <= now
        # A task that ran may itself have advanced the wheel, so `now` may be in the past.
        self._now = start if found else max(now, self._now)
        self._latest_bucket = None
        return found

    def sink(self, limit: int) -> int:
        """Move tasks out of the slots of higher levels that start now; returns how many it moved.

        The windows roll, so a task that was added later can be on a lower level than an earlier one with
        the same expiration. Therefore a moved task goes in front of the tasks of its new slot. The lower
        level's slot is emptied first, each slot from its end. So the tasks of the highest level, which were
        added first, end at the very front. Tasks that are due move to the slot of this tick on level 0.
        """
        moved = 0
        target: Bucket | None = None
        expiration = 0
        for level in self._levels[1:]:
            if self._now % level.width:
                break
            bucket = level.buckets[self._now // level.width % self._size]
            while bucket is not None and moved < limit:
                last = bucket.last
                if last is None:
                    break
                # Tasks mostly come in the order of their expirations, so many in a row go to one slot.
                if target is None or last._expiration != expiration:
                    expiration = last._expiration
                    target = self._bucket_for(expiration)
                self._move_to_front(last, bucket, target)
                moved += 1
        return moved

    def pop(self) -> TimerTask | None:
        """Take out the first task of the slot of level 0 that starts now. Returns it, or None.

        Either it is due, or it has a later expiration by now, and has moved on. Call this after `sink`.
        """
        bucket = self._levels[0].buckets[self._now % self._size]
        task = None if bucket is None else bucket.first
        if task is not None:
            if task._expiration <= self._now:
                self.remove(task)
            else:
                self._move_to_front(task, task._bucket, self._bucket_for(task._expiration))
        return task

    def _move_to_front(self, task: TimerTask, source: Bucket | None, target: Bucket) -> None:
        """Move `task` from `source` in front of the tasks of `target`."""
        if task._bucket is not source:
            # `target` was made just now, and the collector has run a finalizer that took the task away.
            return
        self.remove(task)
        first = target.first
        if first is None:
            target.level.occupied ^= target.bit
            target.last = task
        else:
            first._previous = task
        task._bucket = target
        task._previous = None
        task._next = first
        target.first = task
        self._tasks += 1

    def _bucket_for(self, expiration: int) -> Bucket:
        """The bucket of the lowest level whose window reaches `expiration`."""
        now = self._now
        ahead = expiration - now
        level = self._levels[0]
        while ahead >= level.span:
            level = level.above or self._grow()
        position = expiration // level.width
        if position - now // level.width >= self._size:
            # `now` is in the middle of the level's first slot, so its last slot ends before `expiration`.
            level = level.above or self._grow()
            position = expiration // level.width
        slot = position % self._size
        bucket = level.buckets[slot]
        if bucket is None:
            made = Bucket(self, level, slot)
            # The collector may have run a finalizer just now, which may have used this wheel.
            bucket = level.buckets[slot] or made
            level.buckets[slot] = bucket
        return bucket

    def _grow(self) -> Level:
        highest = self._levels[-1]
        level = Level(len(self._levels), highest.span, self._size)
        self._levels.append(level)
        highest.above = level
        return level


def _load(bucket: Bucket | None, most: int) -> int:
    task = None if bucket is None else bucket.first
    load = 0
    while task is not None and load < most:
        load += 1
        task = task._next
    return load
