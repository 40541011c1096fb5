"""The latest failures. Equal failures are kept as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from purgatory import DelayedOperation
from purgatory.observer import exception_of
from purgatory.web.dashboard.label import TEXT_LENGTH, kind_of, label

KEPT_FAILURES: Final = 8
"""The most different failures that are kept."""


@dataclass(slots=True)
class EqualFailures:
    """Operations of one kind that equal exceptions ended. All is text, so that no object is kept alive.

    `first` and `last` are times, in seconds of the loop's time. `keys` are the keys of the last operation.
    """

    kind: str
    error: str
    keys: list[str]
    count: int
    first: float
    last: float


class FailureLog:
    """The latest failures. Two are equal when the kinds of the operations and the texts of the errors are."""

    def __init__(self) -> None:
        # The latest failure is the last.
        self._failures: dict[tuple[str, str], EqualFailures] = {}

    def note(self, operation: DelayedOperation[Any], at: float) -> None:
        """Note that `operation` has failed at the time `at`."""
        kind, error = kind_of(operation), label(exception_of(operation), TEXT_LENGTH)
        keys = [label(key) for key in operation.keys[:3]]
        failures = self._failures.pop((kind, error), None) or EqualFailures(kind, error, keys, 0, at, at)
        failures.keys, failures.last = keys, at
        failures.count += 1
        self._failures[kind, error] = failures
        if len(self._failures) > KEPT_FAILURES:
            del self._failures[next(iter(self._failures))]

    def latest(self) -> list[EqualFailures]:
        """The failures, the latest first."""
        return list(reversed(self._failures.values()))
