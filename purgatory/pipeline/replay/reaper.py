"""Simulates the reaper of a purgatory on a timing wheel, with the waits of recorded operations.

The simulation does what `Timer` does, in whole ticks and without an event loop. There is one alarm. It is set
to the earliest expiration that is added. After it has rung, it is set to the next occupied slot. It is off
while the wheel is empty. An alarm also rings if all its operations have left. These wake-ups count, too: if
all operations complete early, there are no other wake-ups.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from purgatory import TimerTask, TimingWheel

NEVER: Final = 1 << 62

# When a wait was added to the wheel, its deadline, and when it left the wheel before its deadline, in
# microseconds. The last is None if the wait expired.
Wait: TypeAlias = tuple[int, int, int | None]
# An instant, and the number of the wait that begins, or the inverted number of the wait that ends. So at one
# microsecond, ends sort before beginnings.
_Event: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings of a wheel: the tick in microseconds, and the wheel size."""

    tick_us: int
    wheel_size: int


@dataclass(slots=True)
class Work:
    """The work of a reaper, and the lateness of its expirations."""

    wakeups: int = 0
    # How often an operation moved from a slot of a higher level to a lower one.
    moves: int = 0
    # The most operations that one slot held at a time.
    fullest_slot: int = 0
    levels: int = 1
    # The number of expirations, by microseconds after the deadline.
    lateness: Counter[int] = field(default_factory=Counter)


class ReplayInterval:
    """An interval of the replay: from `since` until before `until`, with the waits of one wheel.

    Waits that began before `since` are a warm-up: they are added to the wheel at their time, but the work is
    not counted. No wait may end after its deadline.

    The work of adjacent intervals adds up to the work of one long interval, for every setting, under two
    conditions. Each interval has all waits that overlap it. And each interval begins at an instant at which
    the state of the alarm is known: when a wait expires, because then the alarm rings, or when the wheel is
    empty, because then the alarm is off. The path of a wait through the wheel depends on no other wait.

    The simulation differs from the timer in one way. The simulation empties a slot when the slot starts. The
    timer empties a slot at its alarm. The alarm may be later, at the expiration of an operation in the slot.
    The timer does not move operations that leave in between, so it makes slightly fewer moves.
    """

    __slots__ = ("begun", "deadlines", "end", "events", "since", "until", "warm_up")

    def __init__(self, waits: Sequence[Wait], since: int = 0, until: int = NEVER) -> None:
        self.since = since
        self.until = until
        self.deadlines = [deadline for _, deadline, _ in waits]
        events: list[_Event] = [(entered, number) for number, (entered, _, _) in enumerate(waits)]
        events += [(left, ~number) for number, (_, _, left) in enumerate(waits) if left is not None]
        events.sort()
        first, last = (bisect_left(events, (moment,)) for moment in (since, until))
        self.warm_up = events[:first]
        self.events = events[first:last]
        # The number of waits that begin in the interval.
        self.begun = sum(number >= 0 for _, number in self.events)
        # When the last wait ends, or `until` if that is earlier.
        self.end = min(
            until, max((deadline if left is None else left for _, deadline, left in waits), default=since)
        )

    def replayed(self, setting: Setting) -> Work:
        """The work of a reaper with this setting. Ticks are counted from 1970."""
        tick = setting.tick_us
        start = self.warm_up[0][0] if self.warm_up else self.since
        reaper = _Reaper(setting, self.deadlines, start // tick)
        reaper.run(self.warm_up)
        reaper.go_to((self.since - 1) // tick)
        reaper.count_from_here()
        reaper.run(self.events)
        reaper.go_to((self.until - 1) // tick)
        return reaper.work


class _Task(TimerTask):
    __slots__ = ("deadline", "slot")

    deadline: int
    # All tasks in the same slot.
    slot: set[_Task]


class _Reaper:
    __slots__ = ("_alarm", "_deadlines", "_setting", "_slots", "_tasks", "_wheel", "work")

    def __init__(self, setting: Setting, deadlines: Sequence[int], start: int) -> None:
        self._setting = setting
        self._deadlines = deadlines
        self._wheel = TimingWheel(setting.wheel_size, start)
        self._alarm = NEVER
        self._tasks: dict[int, _Task] = {}
        self._slots: defaultdict[tuple[int, int], set[_Task]] = defaultdict(set)
        self.work = Work()

    def count_from_here(self) -> None:
        self.work = Work(fullest_slot=max(map(len, self._slots.values()), default=0))

    def run(self, events: Iterable[_Event]) -> None:
        tick, wheel, tasks, deadlines = self._setting.tick_us, self._wheel, self._tasks, self._deadlines
        present = wheel.now
        for at, number in events:
            # A wait that ends just as a tick begins is not on the wheel in that tick.
            now = at // tick if number >= 0 else (at - 1) // tick
            if now > present:
                self.go_to(now)
                present = now
            if number >= 0:
                tasks[number] = task = _Task()
                task.deadline = deadlines[number]
                # The deadline is rounded up. `Timer.schedule` does so, too, in floats of seconds. A test
                # compares the two: tests/pipeline/replay/test_against_the_timer.py.
                expiration = -(-task.deadline // tick)
                wheel.add(task, expiration)
                if expiration < self._alarm:
                    self._alarm = expiration
                self._enter_slot(task)
            else:
                task = tasks.pop(~number)
                wheel.remove(task)
                task.slot.discard(task)
                if not len(wheel):
                    self._alarm = NEVER
        self.work.levels = wheel.levels

    def go_to(self, now: int) -> None:
        """Advance until the tick `now` has begun."""
        wheel = self._wheel
        while self._alarm <= now:
            while wheel.reach(self._alarm):
                self._empty_slots()
            self.work.wakeups += 1
            self._set_alarm()
        while wheel.reach(now):
            self._empty_slots()

    def _set_alarm(self) -> None:
        start = self._wheel.next_expiration()
        self._alarm = NEVER if start is None else start

    def _empty_slots(self) -> None:
        """Empty the slots that start now: tasks on higher levels move down, and due tasks expire."""
        wheel, size, work = self._wheel, self._setting.wheel_size, self.work
        now = wheel.now
        sinking: list[_Task] = []
        level, width = 1, size
        while level < wheel.levels and now % width == 0:
            sinking += self._slots.pop((level, now // width % size), ())
            level, width = level + 1, width * size
        work.moves += wheel.sink(len(wheel))
        for task in sinking:
            self._enter_slot(task)
        while (due := wheel.pop()) is not None:
            expired = cast(_Task, due)
            expired.slot.discard(expired)
            work.lateness[now * self._setting.tick_us - expired.deadline] += 1

    def _enter_slot(self, task: _Task) -> None:
        task.slot = slot = self._slots[self._wheel.locate(task)]
        slot.add(task)
        if len(slot) > self.work.fullest_slot:
            self.work.fullest_slot = len(slot)
