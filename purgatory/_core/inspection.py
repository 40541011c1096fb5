"""What the journal and the dashboard read of operations. Reading is cheap and has no side effects."""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

from purgatory._core.operation import Operation, named
from purgatory._core.outcome import FAILED, Failure, OperationState, Timing
from purgatory._core.watch_list import Chunk
from purgatory._core.watchers import keys_at


def ended(operation: Operation) -> tuple[tuple[Hashable, ...], OperationState, float, float]:
    """The keys, the state, the timeout and the deadline of an operation that has ended.

    The times are seconds. Infinity means that there was none. A key that was named twice is there twice.
    """
    return named(operation._watched), operation._state, operation._timeout, operation._deadline


def exception_of(operation: Operation) -> BaseException | None:
    """The exception of a FAILED operation. Unlike `exception()`, this does not count as having seen it."""
    return cast(Failure, operation._outcome).exception if operation._state is FAILED else None


def arrival(operation: Operation) -> int:
    """The place of an operation in the order in which its purgatory parked operations. The first has 1."""
    return operation._parked


def watched_keys(operation: Operation, limit: int) -> tuple[tuple[Hashable, ...], int]:
    """The first `limit` keys of a pending operation, and how many keys it has. O(limit)."""
    record = operation._watched
    if isinstance(record, Chunk):
        keys, count = keys_at(record), 1
    else:
        keys, count = keys_at(record[: limit + 1]), len(record)
    shown = named(keys)
    return shown[:limit], count - len(keys) + len(shown)


def timing_of(operation: Operation) -> Timing | None:
    """The timing of an operation. None when it was offered before the first observer came."""
    try:
        timing = operation._timing
    except AttributeError:
        return None
    timing.tries = operation._tries
    return timing
