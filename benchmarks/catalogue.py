"""All questions, and for which numbers of pending waits they are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks import (
    checks,
    expiry,
    growth,
    idle,
    journal,
    memory,
    one_instant,
    park_and_complete,
    sessions,
    steady_state,
    timers,
)
from benchmarks.question import Question
from benchmarks.setting import Setting


@dataclass(frozen=True)
class Entry:
    """A question, the sizes it is asked for in a usual run, and those in a full one.

    The first of the sizes is the one that ratios are of.
    """

    make: Callable[[Setting, Sequence[int]], Question]
    usual: tuple[int, ...]
    full: tuple[int, ...]

    def question(self, setting: Setting) -> Question:
        """The question as it is asked in this setting."""
        return self.make(setting, setting.sizes or (self.full if setting.full else self.usual))


CATALOGUE: dict[str, Entry] = {
    "one-key": Entry(park_and_complete.one_key, (100_000, 10_000), (100_000, 10_000, 1_000_000)),
    "three-keys": Entry(park_and_complete.three_keys, (100_000,), (100_000, 10_000, 1_000_000)),
    "steady-state": Entry(steady_state.steady_state, (1_000,), (1_000, 10_000, 100_000)),
    "timers": Entry(timers.timers, (100_000, 10_000), (100_000, 10_000, 1_000_000)),
    "sessions": Entry(sessions.sessions, (100_000,), (100_000, 10_000, 1_000_000)),
    "expiry": Entry(expiry.expiry, (100_000,), (100_000, 1_000_000)),
    "one-instant": Entry(one_instant.one_instant, (100_000,), (100_000, 1_000_000)),
    "growth": Entry(growth.growth, (100_000, 1_000, 10_000), (100_000, 1_000, 10_000)),
    "checks": Entry(checks.checks, (100_000,), (100_000, 10_000, 1_000_000)),
    "memory": Entry(memory.memory, (10_000,), (10_000,)),
    "idle": Entry(idle.idle, (100_000,), (100_000,)),
    "journal": Entry(journal.journal, (100_000,), (100_000, 1_000_000)),
}
