"""Records what happened in the last minute, by the second, since a purgatory itself keeps only totals."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from purgatory import DelayedOperation
from purgatory._core.inspection import exception_of
from purgatory._histogram import DASHBOARD_BOUNDS, Histogram
from purgatory._statistics import OUTCOMES
from purgatory.observer import Timing
from purgatory.web.dashboard.label import TEXT_LENGTH, label

WINDOW: Final = 60
"""Seconds that are recorded."""

KEPT_FAILURES: Final = 8
"""The latest failures, of which the text is kept."""


class Second:
    """What happened in the second of the loop's time that begins at `at`."""

    __slots__ = ("at", "busiest_key", "busiest_tried", "checks", "ended", "lateness", "tried", "waits")

    def __init__(self, at: int) -> None:
        self.at = at
        # Operations that ended, by outcome.
        self.ended = dict.fromkeys(OUTCOMES, 0)
        # Checks of keys, and the operations that they tried.
        self.checks = self.tried = 0
        self.waits = Histogram(DASHBOARD_BOUNDS)
        self.lateness = Histogram(DASHBOARD_BOUNDS)
        # The key with the check that tried the most operations.
        self.busiest_key: Hashable = None
        self.busiest_tried = 0


@dataclass(frozen=True, slots=True)
class Rates:
    """Counts for each of the last `WINDOW` whole seconds, the latest last; those of ends by outcome."""

    ended: dict[str, list[int]]
    checks: list[int]
    tried: list[int]


@dataclass(frozen=True, slots=True)
class FailedOperation:
    """An operation that an exception ended. All is text, so that no object is kept alive."""

    at: float
    kind: str
    keys: list[str]
    error: str


class Recorder:
    """An observer that counts by the second and forgets after a minute.

    It keeps at most some 50 KB. It also holds the busiest key of each second. It releases that key a minute
    later, when something happens or a viewer looks. Times are in seconds, by the clock of a `Timing`.
    """

    def __init__(self) -> None:
        self._seconds: deque[Second] = deque([Second(-1)])
        self._current = self._seconds[0]
        # When the current second is over.
        self._until = 0.0
        self._failures: deque[FailedOperation] = deque(maxlen=KEPT_FAILURES)

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        """Count it."""
        ended = timing.ended
        second = self._current if ended < self._until else self._begin(ended)
        # By the name of the outcome: an enum's members take long to hash, and its `value` long to read.
        outcome = operation.state._value_
        second.ended[outcome] += 1
        second.waits.count(ended - timing.offered)
        if outcome == "expired":
            deadline = operation.deadline
            # An operation has no lateness when closing ended it, or when its timeout was zero.
            if deadline is not None and ended >= deadline:
                second.lateness.count(ended - deadline)
        elif outcome == "failed":
            self._note_failure(operation, ended)

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """Count it."""
        second = self._current if at < self._until else self._begin(at)
        second.checks += 1
        second.tried += tried
        if tried > second.busiest_tried:
            second.busiest_key, second.busiest_tried = key, tried

    def rates(self, now: float) -> Rates:
        """The counts of the seconds that are over."""
        recent = {second.at: second for second in self._recent(now)}
        empty = Second(-1)
        last = int(now)
        seconds = [recent.get(at, empty) for at in range(last - WINDOW, last)]
        return Rates(
            ended={outcome: [second.ended[outcome] for second in seconds] for outcome in OUTCOMES},
            checks=[second.checks for second in seconds],
            tried=[second.tried for second in seconds],
        )

    def waits(self, now: float) -> Histogram:
        """How long the operations that ended in the last minute had waited."""
        return _sum(second.waits for second in self._recent(now))

    def lateness(self, now: float) -> Histogram:
        """How long after their deadlines the operations expired in the last minute."""
        return _sum(second.lateness for second in self._recent(now))

    def busiest_keys(self, now: float) -> list[Hashable]:
        """For each second, the key with the check that tried the most operations."""
        return [second.busiest_key for second in self._recent(now) if second.busiest_tried]

    def failures(self) -> list[FailedOperation]:
        """The latest failures, the newest first."""
        return list(reversed(self._failures))

    def _begin(self, at: float) -> Second:
        second = self._current = Second(int(at))
        self._until = second.at + 1.0
        self._seconds.append(second)
        while self._seconds[0].at < second.at - WINDOW:
            self._seconds.popleft()
        return second

    def _recent(self, now: float) -> Iterator[Second]:
        # While no operation ends, the call of a viewer begins the next second.
        if now >= self._until:
            self._begin(now)
        return iter(self._seconds)

    def _note_failure(self, operation: DelayedOperation[Any], at: float) -> None:
        kind = type(operation).__name__
        keys = [label(key) for key in operation.keys[:3]]
        error = label(exception_of(operation), TEXT_LENGTH)
        self._failures.append(FailedOperation(at, kind, keys, error))


def _sum(histograms: Iterable[Histogram]) -> Histogram:
    total = Histogram(DASHBOARD_BOUNDS)
    total.add(histograms)
    return total
