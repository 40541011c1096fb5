"""The waits that most questions make: ten on a key, with one key each or several."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.constructs import Key

WAITS_PER_KEY = 10

# A task starts in the first turn after it is made, the task that wait_for makes within it in the second.
TURNS_TO_PARK = 3
# As many to wake up and to undo what was made for the wait; and some to clear cancelled timers away.
TURNS_TO_COMPLETE = 6


def targets(waits: int, keys: int, per_key: int = WAITS_PER_KEY) -> list[tuple[Key, ...]]:
    """So many keys for each wait, taking turns. Waits that share one share all."""
    distinct = [tuple(range(first, first + keys)) for first in signals(waits, keys, per_key)]
    return (distinct * per_key)[:waits]


def signals(waits: int, keys: int, per_key: int = WAITS_PER_KEY) -> Sequence[Key]:
    """The first key of each target, which between them complete all."""
    return range(0, keys * -(-waits // per_key), keys)
