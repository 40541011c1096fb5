"""What observers read of operations beyond their public properties. Reading has no side effects."""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast, final

from purgatory._core.operation import FAILED, Failure, Operation, OperationState, Timing
from purgatory._core.watchers import Chunk, keys_at


def ended(operation: Operation) -> tuple[tuple[Hashable, ...], OperationState, float, float]:
    """The keys, the state, the timeout and the deadline of an operation that has ended.

    The times are seconds. Infinity means that there was none. A key that was named twice is there twice.
    """
    return operation._watched, operation._state, operation._timeout, operation._deadline


def exception_of(operation: Operation) -> BaseException | None:
    """The exception of a FAILED operation. Unlike `exception()`, this does not count as having seen it."""
    return cast(Failure, operation._outcome).exception if operation._state is FAILED else None


@final
class Waiting:
    """A pending operation: its number in the order of parking, its first keys, and its timing if noted."""

    __slots__ = ("keys", "more_keys", "number", "timing")

    def __init__(
        self, number: int, keys: tuple[Hashable, ...], more_keys: int, timing: Timing | None
    ) -> None:
        self.number = number
        self.keys = keys
        self.more_keys = more_keys
        self.timing = timing


def waiting(operation: Operation, most_keys: int) -> Waiting:
    """Look at a pending operation and at `most_keys` of its keys at most. O(most_keys)."""
    record = operation._watched
    more_keys = 0
    if not isinstance(record, Chunk):
        more_keys = max(0, len(record) - most_keys)
        record = record[:most_keys]
    try:
        timing: Timing | None = operation._timing
    except AttributeError:
        # It was offered before the first observer came.
        timing = None
    return Waiting(operation._parked, keys_at(record), more_keys, timing)
