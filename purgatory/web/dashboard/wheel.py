"""The timing wheel, as it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from purgatory import Timer, TimingWheel

# Tasks counted in any slot, and tasks counted in all of those that have more.
FIRST: Final = 16
VISITS: Final = 4_000


@dataclass(frozen=True, slots=True)
class WheelPicture:
    """A wheel at one moment. Times in ticks of so many seconds, the moment itself (`now`) with a fraction."""

    tick: float
    now: float
    # Where the wheel itself is, and its windows with it: behind, while it has yet to expire what is due.
    reached: int
    # Slots of a level.
    size: int
    tasks: int
    # Of each level the occupied slots, and how many tasks are in each.
    levels: list[list[tuple[int, int]]]
    # In slots with so many there may be more.
    most: int
    # Where the next occupied slot begins; None when all are empty.
    next_slot: int | None
    # For when the event loop's timer is armed, in seconds from now; None while it is not.
    wakeup: float | None


def draw(timer: Timer, now: float) -> WheelPicture:
    """The wheel of `timer` at `now`, in the loop's seconds. Some thousand of its tasks are looked at."""
    wheel = timer.wheel
    loads, most = _loads(wheel)
    wakeup = timer.next_wakeup
    return WheelPicture(
        tick=timer.tick,
        now=(now - timer.origin) / timer.tick,
        reached=wheel.now,
        size=len(loads[0]),
        tasks=len(wheel),
        levels=[[(slot, load) for slot, load in enumerate(level) if load] for level in loads],
        most=most,
        next_slot=wheel.next_expiration(),
        wakeup=None if wakeup is None else wakeup - now,
    )


def _loads(wheel: TimingWheel) -> tuple[list[list[int]], int]:
    """How many tasks are in each slot of each level, and up to how many were counted."""
    loads = wheel.loads(FIRST)
    full = sum(level.count(FIRST) for level in loads)
    if not full:
        return loads, FIRST
    most = max(FIRST, VISITS // full)
    loads = wheel.loads(most)
    if sum(level.count(most) for level in loads) == 1:
        # All the others are known, and so is their sum.
        (fullest,) = (level for level in loads if most in level)
        fullest[fullest.index(most)] += len(wheel) - sum(map(sum, loads))
    return loads, most
