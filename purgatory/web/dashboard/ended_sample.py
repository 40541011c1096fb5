"""A sample of the operations that have ended: the first operation of each outcome in each second."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from purgatory import DelayedOperation
from purgatory.observer import OUTCOMES, Timing, ended, exception_of
from purgatory.web.dashboard.label import TEXT_LENGTH, kind_of, label

KEPT: Final = 20
"""The most operations of an outcome that are kept."""

SHOWN_KEYS: Final = 3
"""The most keys of an operation that are kept."""


@dataclass(frozen=True, slots=True)
class EndedOperation:
    """An operation that has ended. All is text, so that no object is kept alive.

    `at` is when it ended, in seconds of the loop's time, and `waited` how long it had waited, in seconds.
    `error` is the exception that ended it, or None.
    """

    kind: str
    keys: list[str]
    more_keys: int
    at: float
    waited: float
    tries: int
    error: str | None


class EndedSample:
    """The latest operations of the sample, by outcome."""

    def __init__(self) -> None:
        self._ended: dict[str, deque[EndedOperation]] = {outcome: deque(maxlen=KEPT) for outcome in OUTCOMES}

    def note(self, outcome: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        """Add `operation`, which has ended with `outcome`, to the sample."""
        keys, *_ = ended(operation)
        error = exception_of(operation)
        self._ended[outcome].append(
            EndedOperation(
                kind=kind_of(operation),
                keys=[label(key) for key in keys[:SHOWN_KEYS]],
                more_keys=max(0, len(keys) - SHOWN_KEYS),
                at=timing.ended,
                waited=timing.ended - timing.offered,
                tries=timing.tries,
                error=None if error is None else label(error, TEXT_LENGTH),
            )
        )

    def latest(self, outcome: str) -> list[EndedOperation]:
        """The operations that ended with `outcome`, the latest first."""
        return list(reversed(self._ended[outcome]))
