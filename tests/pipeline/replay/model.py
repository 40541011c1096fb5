"""What a reaper has to do, worked out wait by wait and without a wheel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from purgatory.pipeline.transforms.reaper import NEVER, Setting, Wait, Work

# An instant in microseconds, and what of it comes first: those that leave, then slots that start (whose
# operations go from where they were, are put where they belong, and expire), then those that are added.
LEAVES, GOES, COMES, EXPIRES, ENTERS = range(5)
Moment = tuple[int, int]


@dataclass
class Visit:
    """A wait was in this slot of this level, from one moment to another."""

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
    """The work that `ReplayInterval.replayed` is to report for all of these waits."""
    stays = [visits(wait, setting) for wait in waits]
    expired = [wait for wait, stay in zip(waits, stays, strict=True) if stay[-1].ended[1] == EXPIRES]
    everything = [visit for stay in stays for visit in stay]
    return Work(
        wakeups=wakeups(waits, stays, setting),
        moves=len(everything) - len(stays),
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


def wakeups(waits: Sequence[Wait], stays: Sequence[Sequence[Visit]], setting: Setting) -> int:
    tick = setting.tick_us
    moments = sorted({stay[0].began for stay in stays} | {stay[-1].ended for stay in stays})
    rung, alarm = 0, NEVER
    for moment in moments:
        while (alarm * tick, EXPIRES) < moment:
            rung += 1
            alarm = next_start(stays, alarm, tick)
        if moment[1] == ENTERS:
            added = [
                -(-wait[1] // tick)
                for wait, stay in zip(waits, stays, strict=True)
                if stay[0].began == moment
            ]
            alarm = min(alarm, *added)
        if moment[1] == LEAVES and not any(stay[0].began < moment < stay[-1].ended for stay in stays):
            alarm = NEVER
    while alarm < NEVER:
        rung += 1
        alarm = next_start(stays, alarm, tick)
    return rung


def next_start(stays: Sequence[Sequence[Visit]], now: int, tick: int) -> int:
    """When the next occupied slot starts, after all is done that there is to do at this tick."""
    done = (now * tick, EXPIRES)
    return min(
        (visit.start for stay in stays for visit in stay if visit.began <= done < visit.ended), default=NEVER
    )
