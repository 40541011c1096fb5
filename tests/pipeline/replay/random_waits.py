"""Random waits on one wheel."""

from __future__ import annotations

import random

from purgatory.pipeline.replay.reaper import Wait

TIMEOUTS = ([500_000], [20_000, 100_000, 500_000], [500_000, 60_000_000], [3_000, 7_000])


def random_waits(seed: int, *, most: int = 150) -> list[Wait]:
    """Waits in microseconds from 0, in the order in which they begin. No instant is a whole millisecond."""
    chance = random.Random(seed)
    between, typical = chance.choice([100, 1_000, 10_000, 100_000]), chance.choice([5_000, 150_000, 10**6])
    timeouts = chance.choice(TIMEOUTS)
    waits = list[Wait]()
    now = 0
    for _ in range(chance.randrange(5, most)):
        now = _off_the_tick(now + 1 + int(chance.expovariate(1 / between)))
        timeout = chance.choice(timeouts)
        left = _off_the_tick(now + 1 + int(typical * chance.lognormvariate(0, 1.2)))
        waits.append((now, now + timeout, left if left < now + timeout else None))
    return waits


def waits_at_slot_edges(seed: int, *, most: int = 60) -> list[Wait]:
    """Waits that begin, end and are due at few instants, many of them the starts of slots."""
    chance = random.Random(seed)
    waits = list[Wait]()
    for _ in range(chance.randrange(1, most)):
        entered = chance.choice([chance.randrange(40), 8 * chance.randrange(12), 64 * chance.randrange(3)])
        deadline = entered + chance.choice([chance.randrange(1, 9), 8 * chance.randrange(1, 20), 512])
        left = chance.randrange(entered + 1, deadline + 1) if chance.random() < 0.6 else None
        waits.append((entered, deadline, left))
    return sorted(waits, key=lambda wait: wait[0])


def _off_the_tick(instant: int) -> int:
    return instant + 1 if instant % 1_000 == 0 else instant
