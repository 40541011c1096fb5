"""What happened in the last minute, by the second: what a dashboard has to observe, since nobody keeps it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from purgatory import DelayedOperation, OperationState
from purgatory._core.operation import Failure
from purgatory.observer import Timing
from purgatory.web.dashboard.label import TEXT_LENGTH, label

WINDOW: Final = 60
"""Seconds that are remembered."""

BUCKETS: Final = 42
"""Bucket n of a histogram counts what took less than 2**n microseconds, the last one all that took longer."""

KEPT_FAILURES: Final = 8

# Members of the enum are slow to look up.
_COMPLETED: Final = OperationState.COMPLETED
_EXPIRED: Final = OperationState.EXPIRED
_CANCELLED: Final = OperationState.CANCELLED


class Second:
    """What happened in one second of the loop's time; how many operations it ended, in each way."""

    __slots__ = (
        "at",
        "busiest",
        "busiest_tried",
        "cancelled",
        "checks",
        "completed",
        "expired",
        "failed",
        "lateness",
        "tried",
        "waits",
    )

    def __init__(self, at: int) -> None:
        self.at = at
        self.completed = self.expired = self.cancelled = self.failed = 0
        # Of keys, and how many operations they tried.
        self.checks = self.tried = 0
        self.waits = [0] * BUCKETS
        self.lateness = [0] * BUCKETS
        # The key whose check tried the most.
        self.busiest: Hashable = None
        self.busiest_tried = 0


@dataclass(frozen=True, slots=True)
class Rates:
    """How much happened in each of the last `WINDOW` whole seconds, the latest one last."""

    completed: list[int]
    expired: list[int]
    cancelled: list[int]
    failed: list[int]
    checks: list[int]
    tried: list[int]


@dataclass(frozen=True, slots=True)
class FailedOperation:
    """One that an exception ended, in text: nothing of it is kept."""

    at: float
    kind: str
    keys: list[str]
    error: str


class Recorder:
    """An observer that counts by the second and forgets after a minute.

    It costs the loop half a microsecond an operation, and keeps some 50 KB, whatever happens. It also holds
    the busiest key of each second, until that is a minute ago and something happens or somebody looks. Times
    are in seconds, by the clock of a `Timing`.
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
        # Its fields, because to ask its properties would take as long as all the rest.
        state = operation._state
        if state is _COMPLETED:
            second.completed += 1
        elif state is _EXPIRED:
            second.expired += 1
            # Closing expires what is not due yet, and a timeout of zero has no deadline, which is infinity.
            late = ended - operation._deadline
            if late >= 0:
                second.lateness[min(int(late * 1e6).bit_length(), BUCKETS - 1)] += 1
        elif state is _CANCELLED:
            second.cancelled += 1
        else:
            second.failed += 1
            self._note(operation, ended)
        second.waits[min(int((ended - timing.offered) * 1e6).bit_length(), BUCKETS - 1)] += 1

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """Count it."""
        second = self._current if at < self._until else self._begin(at)
        second.checks += 1
        second.tried += tried
        if tried > second.busiest_tried:
            second.busiest, second.busiest_tried = key, tried

    def rates(self, now: float) -> Rates:
        """Of the seconds that are over."""
        seconds = {second.at: second for second in self._recent(now)}
        none = Second(-1)
        last = int(now)
        row = [seconds.get(at, none) for at in range(last - WINDOW, last)]

        def of(count: Callable[[Second], int]) -> list[int]:
            return [count(second) for second in row]

        return Rates(
            completed=of(lambda second: second.completed),
            expired=of(lambda second: second.expired),
            cancelled=of(lambda second: second.cancelled),
            failed=of(lambda second: second.failed),
            checks=of(lambda second: second.checks),
            tried=of(lambda second: second.tried),
        )

    def waits(self, now: float) -> list[int]:
        """How long the operations waited that ended in the last minute, in `BUCKETS`."""
        return _sums(second.waits for second in self._recent(now))

    def lateness(self, now: float) -> list[int]:
        """How long after their deadlines those expired, in `BUCKETS`."""
        return _sums(second.lateness for second in self._recent(now))

    def busiest_keys(self, now: float) -> list[Hashable]:
        """For each second the key whose check tried the most operations."""
        return [second.busiest for second in self._recent(now) if second.busiest_tried]

    def failures(self) -> list[FailedOperation]:
        """The latest, the very latest one first."""
        return list(reversed(self._failures))

    def _begin(self, at: float) -> Second:
        second = self._current = Second(int(at))
        self._until = second.at + 1.0
        self._seconds.append(second)
        while self._seconds[0].at < second.at - WINDOW:
            self._seconds.popleft()
        return second

    def _recent(self, now: float) -> Iterator[Second]:
        # With nothing happening, it is looking that lets time pass.
        if now >= self._until:
            self._begin(now)
        return iter(self._seconds)

    def _note(self, operation: DelayedOperation[Any], at: float) -> None:
        # Not by exception(), after which it would count as seen.
        error = cast(Failure, operation._outcome).exception
        keys = [label(key) for key in operation.keys[:3]]
        self._failures.append(FailedOperation(at, type(operation).__name__, keys, label(error, TEXT_LENGTH)))


def _sums(histograms: Iterator[list[int]]) -> list[int]:
    return [sum(column) for column in zip([0] * BUCKETS, *histograms, strict=True)]
