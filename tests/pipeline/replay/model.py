"""A model of the reaper's work that follows each wait by itself, without a wheel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from purgatory.pipeline.replay.reaper import NEVER, Setting, Wait, Work

# An instant in microseconds, and the order of events at the same instant. First waits are cancelled. Then
# slots start: their operations leave the old slot, enter the new one, or expire. Then new waits are added.
LEAVES, GOES, COMES, EXPIRES, ENTERS = range(5)
Moment = tuple[int, int]


@dataclass
class Visit:
    """The time that a wait spent in one slot."""

    place: tuple[int, int]
    began: Moment
    ended: Moment
    # The tick in which the slot starts.
    start: int


def visits(wait: Wait, setting: Setting) -> list[Visit]:
    entered, deadline, left = wait
    tick, size = setting.tick_us, setting.wheel_size
    now, expiration = entered // tick, -(-deadline // tick)
    end = (NEVER, LEAVES) if left is None else (left, LEAVES)
    found = list[Visit]()
    began = (entered, ENTERS)
    while True:
        level = 0
        while expiration // size**level - now // size**level >= size:
            level += 1
        start = expiration // size**level * size**level
        place = (level, expiration // size**level % size)
        ended = (start * tick, EXPIRES if level == 0 else GOES)
        if end < ended:
            return [*found, Visit(place, began, end, start)]
        found.append(Visit(place, began, ended, start))
        if level == 0:
            return found
        now, began = start, (start * tick, COMES)


def model(waits: Sequence[Wait], setting: Setting) -> Work:
    """The work that `ReplayInterval.replayed` must report for all of these waits."""
    paths = [visits(wait, setting) for wait in waits]
    expired = [wait for wait, path in zip(waits, paths, strict=True) if path[-1].ended[1] == EXPIRES]
    everything = [visit for path in paths for visit in path]
    return Work(
        wakeups=wakeups(waits, paths, setting),
        moves=len(everything) - len(paths),
        fullest_slot=fullest(everything),
        levels=1 + max(visit.place[0] for visit in everything),
        lateness=Counter(-deadline % setting.tick_us for _, deadline, _ in expired),
    )


def fullest(everything: Sequence[Visit]) -> int:
    changes = sorted(
        [(visit.began, 1, visit.place) for visit in everything]
        + [(visit.ended, -1, visit.place) for visit in everything]
    )
    held = Counter[tuple[int, int]]()
    most = 0
    for _, change, place in changes:
        held[place] += change
        most = max(most, held[place])
    return most


def wakeups(waits: Sequence[Wait], paths: Sequence[Sequence[Visit]], setting: Setting) -> int:
    tick = setting.tick_us
    moments = sorted({path[0].began for path in paths} | {path[-1].ended for path in paths})
    wakes, alarm = 0, NEVER
    for moment in moments:
        while (alarm * tick, EXPIRES) < moment:
            wakes += 1
            alarm = next_start(paths, alarm, tick)
        if moment[1] == ENTERS:
            added = [
                -(-wait[1] // tick)
                for wait, path in zip(waits, paths, strict=True)
                if path[0].began == moment
            ]
            alarm = min(alarm, *added)
        if moment[1] == LEAVES and not any(path[0].began < moment < path[-1].ended for path in paths):
            alarm = NEVER
    while alarm < NEVER:
        wakes += 1
        alarm = next_start(paths, alarm, tick)
    return wakes


def next_start(paths: Sequence[Sequence[Visit]], now: int, tick: int) -> int:
    """The start of the next occupied slot, after the events at the tick `now`."""
    done = (now * tick, EXPIRES)
    return min(
        (visit.start for path in paths for visit in path if visit.began <= done < visit.ended), default=NEVER
    )
