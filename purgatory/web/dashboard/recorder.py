"""Records what happened in each second of the last minute. A purgatory itself keeps totals only."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from purgatory import DelayedOperation
from purgatory._figures.histogram import LATENESS_BOUNDS, WAIT_BOUNDS, Histogram
from purgatory._figures.operations import lateness
from purgatory.observer import OUTCOMES, Timing
from purgatory.web.dashboard.busy_keys import BusyKeys
from purgatory.web.dashboard.ended_sample import EndedSample
from purgatory.web.dashboard.failure_log import FailureLog

WINDOW: Final = 60
"""Seconds that are recorded."""

BUSY_KEYS: Final = 10
"""Keys that are kept of each past second. A viewer gets as many."""


class Second:
    """What happened in the second of the loop's time that begins at `at`."""

    __slots__ = ("at", "busy_keys", "checks", "ended", "lateness", "refused", "tried", "waits")

    def __init__(self, at: int, refused: int) -> None:
        self.at = at
        # What the purgatory had refused when the recorder began this second.
        self.refused = refused
        # Operations that ended, by outcome, and how long they had waited.
        self.ended = dict.fromkeys(OUTCOMES, 0)
        self.waits = {outcome: Histogram(WAIT_BOUNDS) for outcome in OUTCOMES}
        self.lateness = Histogram(LATENESS_BOUNDS)
        # Checks of keys, and the operations that they tried.
        self.checks = self.tried = 0
        self.busy_keys = BusyKeys()


@dataclass(frozen=True, slots=True)
class Rates:
    """Counts for each of the last `WINDOW` whole seconds, the latest second last. `ended` is by outcome."""

    ended: dict[str, list[int]]
    checks: list[int]
    tried: list[int]


class Recorder:
    """An observer that counts by the second and forgets after a minute.

    It takes some 200 KB. It also holds the busiest keys of each second, and releases them a minute later,
    when something happens or a viewer looks. Times are in seconds, by the clock of a `Timing`.
    """

    def __init__(self, refused: Callable[[], int]) -> None:
        self.failures = FailureLog()
        self.ended = EndedSample()
        # The total of refusals. A purgatory tells no observer of a refusal, so that a refusal stays cheap.
        self._refused = refused
        self._seconds: deque[Second] = deque([Second(-1, refused())])
        self._current = self._seconds[0]
        # When the last second began that is forgotten, and what had been refused then.
        self._before = (-1, refused())
        # When the first second began, and when the current one is over.
        self._since = 0
        self._until = 0.0

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        """Count an operation that has ended."""
        ended = timing.ended
        second = self._current if ended < self._until else self._begin(ended)
        # By the name of the outcome: an enum's members take long to hash, and its `value` long to read.
        outcome = operation.state._value_
        if not second.ended[outcome]:
            self.ended.note(outcome, operation, timing)
        second.ended[outcome] += 1
        second.waits[outcome].count(ended - timing.offered)
        if outcome == "expired":
            late = lateness(operation, ended)
            if late is not None:
                second.lateness.count(late)
        elif outcome == "failed":
            self.failures.note(operation, ended)

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """Count a check."""
        second = self._current if at < self._until else self._begin(at)
        second.checks += 1
        if tried:
            second.tried += tried
            second.busy_keys.count(key, tried)

    def rates(self, now: float) -> Rates:
        """The counts of the past seconds."""
        recent = {second.at: second for second in self._recent(now)}
        empty = Second(-1, 0)
        last = int(now)
        seconds = [recent.get(at, empty) for at in range(last - WINDOW, last)]
        return Rates(
            ended={outcome: [second.ended[outcome] for second in seconds] for outcome in OUTCOMES},
            checks=[second.checks for second in seconds],
            tried=[second.tried for second in seconds],
        )

    def waits(self, now: float) -> dict[str, Histogram]:
        """How long the operations that ended in the last minute had waited, by outcome."""
        seconds = list(self._recent(now))
        return {
            outcome: _sum(WAIT_BOUNDS, (second.waits[outcome] for second in seconds)) for outcome in OUTCOMES
        }

    def lateness(self, now: float) -> Histogram:
        """How long after their deadlines the operations expired in the last minute."""
        return _sum(LATENESS_BOUNDS, (second.lateness for second in self._recent(now)))

    def busy_keys(self, now: float) -> dict[Hashable, float]:
        """How many operations the checks of each busy key have tried in a second, in the last minute."""
        tries: Counter[Hashable] = Counter()
        for second in self._recent(now):
            tries.update(second.busy_keys.tries)
        seconds = max(1.0, now - max(self._since, int(now) - WINDOW))
        return {key: tried / seconds for key, tried in tries.most_common(BUSY_KEYS)}

    def refusals(self, now: float) -> tuple[int, float]:
        """How many operations were refused since the last moment that is at least a minute old, and when
        that moment was. It is older when nothing has happened and nobody has looked for longer.
        """
        self._recent(now)
        at, refused = self._before
        return self._refused() - refused, float(at)

    def _begin(self, at: float) -> Second:
        self._current.busy_keys.keep(BUSY_KEYS)
        if not self._until:
            self._since = int(at)
        second = self._current = Second(int(at), self._refused())
        self._until = second.at + 1.0
        self._seconds.append(second)
        while self._seconds[0].at < second.at - WINDOW:
            forgotten = self._seconds.popleft()
            self._before = (forgotten.at, forgotten.refused)
        return second

    def _recent(self, now: float) -> Iterator[Second]:
        # While no operation ends, the call of a viewer begins the next second.
        if now >= self._until:
            self._begin(now)
        return iter(self._seconds)


def _sum(bounds: tuple[float, ...], histograms: Iterable[Histogram]) -> Histogram:
    total = Histogram(bounds)
    total.add(histograms)
    return total
