"""The timing wheel, as the page draws it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from purgatory import Timer, TimingWheel

FIRST_COUNT: Final = 16
"""Tasks counted in each slot at first."""

SECOND_COUNT: Final = 4_000
"""Tasks counted in all slots together that hold at least `FIRST_COUNT`."""


@dataclass(frozen=True, slots=True)
class WheelPicture:
    """A wheel at one moment. Times are in ticks, unless stated otherwise."""

    # Seconds of one tick.
    tick: float
    # The moment, with a fraction.
    now: float
    # The wheel's own time, where the windows of its levels start. It is behind `now` while due tasks have
    # yet to expire.
    wheel_now: int
    # Slots of a level.
    size: int
    tasks: int
    # For each level its occupied slots: (slot, tasks in it).
    levels: list[list[tuple[int, int]]]
    # The most tasks counted in a slot. A slot with this many may hold more.
    count_limit: int
    # The time at which the next occupied slot begins; None when all are empty.
    next_slot: int | None
    # Seconds from now for which the event loop's timer is armed; None while it is not.
    wakeup: float | None


def picture_wheel(timer: Timer, now: float) -> WheelPicture:
    """The wheel of `timer` at the loop's time `now`, in seconds. It reads some thousand tasks."""
    wheel = timer.wheel
    loads, count_limit = _loads(wheel)
    wakeup = timer.next_wakeup
    return WheelPicture(
        tick=timer.tick,
        now=(now - timer.origin) / timer.tick,
        wheel_now=wheel.now,
        size=len(loads[0]),
        tasks=len(wheel),
        levels=[[(slot, load) for slot, load in enumerate(level) if load] for level in loads],
        count_limit=count_limit,
        next_slot=wheel.next_expiration(),
        wakeup=None if wakeup is None else wakeup - now,
    )


def _loads(wheel: TimingWheel) -> tuple[list[list[int]], int]:
    """The number of tasks in each slot of each level, and the limit up to which they were counted."""
    loads = wheel.loads(FIRST_COUNT)
    full = sum(level.count(FIRST_COUNT) for level in loads)
    if not full:
        return loads, FIRST_COUNT
    limit = max(FIRST_COUNT, SECOND_COUNT // full)
    loads = wheel.loads(limit)
    if sum(level.count(limit) for level in loads) == 1:
        # All other slots are counted to their ends, so this slot holds the other tasks.
        (level,) = (level for level in loads if limit in level)
        level[level.index(limit)] += len(wheel) - sum(map(sum, loads))
    return loads, limit
