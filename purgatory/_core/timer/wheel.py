"""The hierarchical timing wheel, in whole ticks.

The idea is that of G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987). The form
is Kafka's, from its request purgatory: wheels stacked on demand, and time that jumps from one occupied slot
to the next. The wheel knows no clock and no event loop: its caller says what time it is.
"""

from __future__ import annotations

from typing import Final, cast, final

from purgatory._core.timer.level import Bucket, Level, flip, flipped, slots_ahead
from purgatory._core.timer.task import TimerTask

# `python -m benchmarks wheel-size` measures it. Compiled, this was the fastest of 16 to 1024, 3 to 8 % ahead
# of 64. Interpreted, 256 and more were 10 % ahead of it.
DEFAULT_WHEEL_SIZE: Final = 32


# Compiled, 1 << 62 would be an object.
UNLIMITED: Final = 1 << 61


@final
class TimingWheel:
    """Tasks ordered by the tick at which they expire. Tasks with the same tick keep their order.

    Level 0 has `wheel_size` slots of one tick. A slot of each further level spans the whole level below.
    Each level covers `wheel_size` slots, and the first is the one that holds `now`. So a slot that has
    passed is used again. An expiration beyond the highest level adds a level.

    Adding and removing cost O(1) for a given number of levels. That number grows with the logarithm of the
    longest timeout. `advance` costs O(1) for each task that it returns, and one move for each level that a
    task sinks. Raises ValueError for a `wheel_size` below 2.

    A worked example with 20 slots:

    >>> wheel = TimingWheel(20)
    >>> def put(expiration):
    ...     task = TimerTask()
    ...     assert wheel.add(task, expiration)
    ...     return wheel.locate(task)
    >>> put(2)  # level 0, slot 2
    (0, 2)
    >>> put(350)  # beyond the 20 ticks of level 0; on level 1 slot 17 starts at tick 340
    (1, 17)
    >>> [put(expiration) for expiration in (450, 446, 455, 473)]  # on level 2 slot 1 starts at tick 400
    [(2, 1), (2, 1), (2, 1), (2, 1)]
    >>> len(wheel.advance(2))  # the task of tick 2
    1
    >>> put(10), put(21)  # slot 1 of level 0 has passed: it now serves for tick 21
    ((0, 10), (0, 1))
    >>> wheel.next_expiration()
    10
    >>> len(wheel.advance(399)), wheel.next_expiration()  # 10, 21 and 350; then slot 1 of level 2
    (3, 400)
    >>> [len(wheel.advance(tick)) for tick in (445, 446, 450, 455, 473)]  # each at its own tick
    [0, 1, 1, 1, 1]
    """

    __slots__ = ("_latest_bucket", "_latest_expiration", "_levels", "_now", "_size", "_tasks")

    def __init__(self, wheel_size: int, start: int = 0) -> None:
        if not isinstance(wheel_size, int) or wheel_size < 2:
            raise ValueError(f"wheel_size must be an integer of at least 2, not {wheel_size!r}")
        self._size = wheel_size
        self._now = start
        self._levels = [Level(0, 1, wheel_size)]
        self._tasks = 0
        # Callers that add many tasks at a time mostly give them the same timeout. The bucket of the latest
        # task serves them all until time passes and the windows of the levels move.
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
            bucket = self._bucket_for(expiration)
            self._latest_bucket = bucket
            self._latest_expiration = expiration
        # What can fail for lack of memory comes first. From here on this changes nothing or everything.
        tasks = self._tasks + 1
        last = bucket.last
        if last is None:
            level = bucket.level
            if level.wide:
                level.occupied = flipped(level.occupied, bucket.bit)
            else:
                level.occupied ^= bucket.bit
            bucket.first = task
        else:
            last._next = task
        task._expiration = expiration
        task._bucket = bucket
        task._previous = last
        task._next = None
        bucket.last = task
        self._tasks = tasks
        return True

    def remove(self, task: TimerTask) -> bool:
        """Remove `task`. False when it is not in this wheel."""
        bucket = task._bucket
        if bucket is None or bucket.wheel is not self:
            return False
        tasks = self._tasks - 1
        previous, following = task._previous, task._next
        if previous is None:
            if following is None:
                level = bucket.level
                if level.wide:
                    level.occupied = flipped(level.occupied, bucket.bit)
                else:
                    level.occupied ^= bucket.bit
            bucket.first = following
        else:
            previous._next = following
        if following is None:
            bucket.last = previous
        else:
            following._previous = previous
        task._bucket = task._previous = task._next = None
        self._tasks = tasks
        return True

    def move(self, task: TimerTask, expiration: int) -> bool:
        """Give `task` another expiration, as `add` does. When this raises, the task is where it was.

        With a later expiration, too, the task stays where it is, so that this costs next to nothing. When its
        slot starts, `sink` or `pop` moves it on.
        """
        left = task._bucket
        if left is None:
            return self.add(task, expiration)
        if left.wheel is not self:
            raise RuntimeError(f"{task!r} is in a timing wheel already: remove it there first")
        if expiration >= task._expiration:
            task._expiration = expiration
            return True
        if expiration <= self._now:
            self.remove(task)
            return False
        bucket = self._bucket_for(expiration)
        self._take_out(task, bucket)
        last = bucket.last
        if last is None:
            bucket.first = task
        else:
            last._next = task
        task._expiration = expiration
        task._bucket = bucket
        task._previous = last
        bucket.last = task
        return True

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
        """The tick at which the next occupied slot starts. No task is due before it. None when empty.

        A task that was given a later expiration occupies its old slot until that starts.
        It is `now` or earlier only after an `advance` that its limit stopped.
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
                if level.wide:
                    position += slots_ahead(level.occupied, slot, self._size)
                else:
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

        Raises ValueError when `now` is in the past or the limit is negative, TypeError when `now` is not an
        int.
        """
        if not isinstance(now, int):
            raise TypeError(f"now must be a whole number of ticks, not {now!r}")
        if now < self._now:
            raise ValueError(f"time cannot go back from tick {self._now} to {now}")
        if limit is not None and limit < 0:
            raise ValueError(f"limit must not be negative, got {limit}")
        budget = UNLIMITED if limit is None else limit
        due: list[TimerTask] = []
        while self.reach(now):
            budget -= self.sink(budget)
            while budget > 0:
                task = self.pop()
                if task is None:
                    break
                budget -= 1
                if task._bucket is None:
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
        added first, end at the very front. The order holds wherever the limit stops the work. Tasks that
        are due move to the slot of this tick on level 0.
        """
        moved = 0
        for level in self._levels[1:]:
            if self._now % level.width:
                break
            bucket = level.buckets[self._now // level.width % self._size]
            while bucket is not None and moved < limit:
                last = bucket.last
                if last is None:
                    break
                target = self._bucket_for(last._expiration)
                # Otherwise the collector has run a finalizer just now, which has removed the task.
                if bucket.last is last:
                    moved += self._sink_run(bucket, last, target, limit - moved)
        return moved

    def pop(self) -> TimerTask | None:
        """Take out the first task of the slot of level 0 that starts now. Returns it, or None.

        It is due. Or it has got a later expiration meanwhile, and is in the slot of that now. Call this when
        `sink` has nothing left to move.
        """
        task = self.first()
        if task is not None and task._expiration <= self._now:
            self.remove(task)
        return task

    def first(self) -> TimerTask | None:
        """Do what `pop` does, but leave a task that is due where it is."""
        bucket = self._levels[0].buckets[self._now % self._size]
        while bucket is not None:
            task = bucket.first
            if task is None:
                break
            if task._expiration <= self._now:
                return task
            target = self._bucket_for(task._expiration)
            # As in `sink`.
            if bucket.first is task:
                self._move_to_front(task, task, bucket, target)
                return task
        return None

    def _sink_run(self, source: Bucket, last: TimerTask, target: Bucket, limit: int) -> int:
        """Move the last task of `source`, whose slot starts now, and those before it that go to `target` too.

        Most tasks come in the order of their expirations. So these are many, and their links among each other
        stay as they are. Returns the number.
        """
        first = last
        before = last._previous
        moved = 1
        # Otherwise a later expiration takes the task to a slot that also serves for other rounds.
        if before is not None and target.level.number < source.level.number:
            # `now` is where a slot of that level starts, so the whole slot of `target` is ahead.
            width = target.level.width
            start = last._expiration - last._expiration % width
            end = start + width
            while before is not None and moved < limit and start <= before._expiration < end:
                first = before
                before = first._previous
                moved += 1
        self._move_to_front(first, last, source, target)
        return moved

    def _move_to_front(self, first: TimerTask, last: TimerTask, source: Bucket, target: Bucket) -> None:
        """Move the tasks of `source` from `first` to `last` in front of the tasks in `target`."""
        before, behind, following = first._previous, last._next, target.first
        emptied = before is None and behind is None
        if emptied or following is None:
            # What can fail for lack of memory comes first. The rest changes nothing or everything.
            left, entered = source.level, target.level
            occupied = left.occupied
            if emptied:
                occupied = flip(left, occupied, source.bit)
            among = occupied if entered is left else entered.occupied
            if following is None:
                among = flip(entered, among, target.bit)
            left.occupied = occupied
            entered.occupied = among
        if before is None:
            source.first = behind
        else:
            before._next = behind
        if behind is None:
            source.last = before
        else:
            behind._previous = before
        if following is None:
            target.last = last
        else:
            following._previous = last
        first._previous = None
        last._next = following
        target.first = first
        task: TimerTask | None = last
        while task is not None:
            task._bucket = target
            task = task._previous

    def _take_out(self, task: TimerTask, bucket: Bucket) -> None:
        """Take `task` out of its slot. The caller puts it into `bucket`, which counts as occupied already.

        When this raises, for lack of memory, the task is where it was.
        """
        left, level = cast(Bucket, task._bucket), bucket.level
        tasks, occupied = self._tasks, level.occupied
        leaves = left is not bucket and left.level is level and left.first is left.last
        if leaves:
            occupied = flip(level, occupied, left.bit)
        if bucket.first is None:
            occupied = flip(level, occupied, bucket.bit)
        self.remove(task)
        level.occupied = occupied
        self._tasks = tasks

    def _bucket_for(self, expiration: int) -> Bucket:
        """The bucket of the lowest level whose window reaches `expiration`."""
        now = self._now
        try:
            # No float has this operator. Compiled, `isinstance` would make an object of the number, and
            # without memory for it the process would end.
            ahead = (expiration | 0) - now
        except TypeError:
            raise TypeError(f"expiration must be a whole number of ticks, not {expiration!r}") from None
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

    def _check(self) -> None:
        """Raise AssertionError where an invariant does not hold. O(tasks). For tests."""
        tasks = 0
        for number, level in enumerate(self._levels):
            assert (level.number, level.width) == (number, self._size**number)
            first = self._now // level.width
            for slot, bucket in enumerate(level.buckets):
                occupied = bucket is not None and bucket.first is not None
                assert bool(level.occupied >> slot & 1) is occupied, "a bit says which slots are occupied"
                if bucket is None:
                    continue
                assert (bucket.wheel, bucket.level, bucket.slot) == (self, level, slot)
                previous: TimerTask | None = None
                task = bucket.first
                while task is not None:
                    assert task._bucket is bucket
                    assert task._previous is previous, "the links agree in both directions"
                    position = task._expiration // level.width
                    start = first + (slot - first) % self._size
                    assert position >= start, "a task is in the slot of its expiration, or in an earlier one"
                    tasks += 1
                    previous, task = task, task._next
                assert bucket.last is previous
        assert tasks == self._tasks
