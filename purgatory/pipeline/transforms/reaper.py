"""The reaper of a purgatory at work on a timing wheel, over operations that were recorded.

It does what `Timer` does, in whole ticks and without a loop: one alarm, set to the earliest
expiration that is added and, after it has rung, to the next occupied slot; off when nothing waits any more.
An alarm whose operations have all left rings in vain, which counts: someone whose operations complete early
sees no other wake-ups.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from purgatory import TimerTask, TimingWheel

NEVER: Final = 1 << 62

# When it was put on the wheel, when it was due, and when it left before; None if it did not. Microseconds.
Wait: TypeAlias = tuple[int, int, int | None]
# When, and the number of the wait that begins; inverted, that of the wait that ends. So those that end sort
# before those that begin at the same microsecond.
_Event: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a wheel can be made with; the tick in microseconds."""

    tick_us: int
    wheel_size: int


@dataclass(slots=True)
class Work:
    """What there was to do, and how well it was done."""

    wakeups: int = 0
    # From a slot of a higher level to a lower one, one operation at a time.
    moves: int = 0
    # The most that one slot held at a time.
    fullest_slot: int = 0
    levels: int = 1
    # How many expired so many microseconds after their deadlines.
    lateness: Counter[int] = field(default_factory=Counter)


class Stretch:
    """The waits of one wheel, and the time of which the work is asked: from `since`, until before `until`.

    Waits that have begun before are led in: they are put on the wheel at their time, and what that takes is
    not counted. None may end after its deadline.

    Stretches that lie end to end, each with all waits that it has a part of, count together what one does
    that is as long, whatever the setting, if each begins where it is known how the alarm is set: when a wait
    is due that does not leave before, since then it rings, or when the wheel is empty, since then it is off.
    The rest of a wait's way depends on no other. (A slot is emptied when it starts, alarm or not. The timer
    does so at its alarm, which it may have set to the expiration of an operation in that slot. What leaves
    meanwhile is not moved, so it moves somewhat less.)
    """

    __slots__ = ("begun", "deadlines", "end", "events", "led_in", "since", "until")

    def __init__(self, waits: Sequence[Wait], since: int = 0, until: int = NEVER) -> None:
        self.since = since
        self.until = until
        self.deadlines = [deadline for _, deadline, _ in waits]
        events: list[_Event] = [(entered, number) for number, (entered, _, _) in enumerate(waits)]
        events += [(left, ~number) for number, (_, _, left) in enumerate(waits) if left is not None]
        events.sort()
        first, last = (bisect_left(events, (moment,)) for moment in (since, until))
        self.led_in = events[:first]
        self.events = events[first:last]
        # How many waits begin in it.
        self.begun = sum(number >= 0 for _, number in self.events)
        # When the last of them ends, if that is before `until`.
        self.end = min(
            until, max((deadline if left is None else left for _, deadline, left in waits), default=since)
        )

    def replayed(self, setting: Setting) -> Work:
        """The work of a reaper with this setting. Ticks are counted from 1970."""
        tick = setting.tick_us
        start = self.led_in[0][0] if self.led_in else self.since
        reaper = _Reaper(setting, self.deadlines, start // tick)
        reaper.run(self.led_in)
        reaper.go_to((self.since - 1) // tick)
        reaper.count_from_here()
        reaper.run(self.events)
        reaper.go_to((self.until - 1) // tick)
        return reaper.work


class _Task(TimerTask):
    __slots__ = ("deadline", "slot")

    deadline: int
    # All that are in the same slot.
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
            # Who leaves just as a tick begins is not there any more when it does.
            now = at // tick if number >= 0 else (at - 1) // tick
            if now > present:
                self.go_to(now)
                present = now
            if number >= 0:
                tasks[number] = task = _Task()
                task.deadline = deadlines[number]
                expiration = -(-task.deadline // tick)
                wheel.add(task, expiration)
                if expiration < self._alarm:
                    self._alarm = expiration
                self._settle(task)
            else:
                task = tasks.pop(~number)
                wheel.remove(task)
                task.slot.discard(task)
                if not len(wheel):
                    self._alarm = NEVER
        self.work.levels = wheel.levels

    def go_to(self, now: int) -> None:
        """Do what there is to do until the tick `now` has begun."""
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
        """Those that start now: who waits in a higher level sinks, and who is due expires."""
        wheel, size, work = self._wheel, self._setting.wheel_size, self.work
        now = wheel.now
        sinking: list[_Task] = []
        level, width = 1, size
        while level < wheel.levels and now % width == 0:
            sinking += self._slots.pop((level, now // width % size), ())
            level, width = level + 1, width * size
        work.moves += wheel.sink(len(wheel))
        for task in sinking:
            self._settle(task)
        while (due := wheel.pop()) is not None:
            expired = cast(_Task, due)
            expired.slot.discard(expired)
            work.lateness[now * self._setting.tick_us - expired.deadline] += 1

    def _settle(self, task: _Task) -> None:
        task.slot = slot = self._slots[self._wheel.locate(task)]
        slot.add(task)
        if len(slot) > self.work.fullest_slot:
            self.work.fullest_slot = len(slot)
