"""The seam for metrics, journals and dashboards: what an observer is told, and what it may read."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from purgatory._core.operation import named
from purgatory._core.outcome import FAILED, Failure, OperationState, Timing
from purgatory._core.watch_list import Chunk, operations_at
from purgatory._core.watchers import keys_at
from purgatory.delayed_operation import DelayedOperation

if TYPE_CHECKING:
    from purgatory.purgatory import Purgatory

__all__ = [
    "ContextObserver",
    "KeyObserver",
    "Observer",
    "Timing",
    "arrival",
    "ended",
    "exception_of",
    "first_watchers",
    "timing_of",
    "watched_keys",
]


class Observer(Protocol):
    """Called by a purgatory for every operation that ends and every check of a key.

    The purgatory calls it at once and on the event loop, so an observer has to be quick and must not block.
    `purgatory` is the name of the purgatory, since one observer may observe several. An exception of an
    observer goes to the loop's exception handler. A purgatory without observers pays nothing.
    """

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        """`operation` has ended, with any outcome, and its hooks have run."""

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """A check of `key` has tried `tried` operations and completed `completed` of them.

        The check was over at the time `at`, in seconds by the clock of a `Timing`.
        """


class ContextObserver(Observer, Protocol):
    """An observer that needs to know in which context each operation was offered, such as one that traces.

    When its `needs_context` is true as it is added, `Timing.context` is a copy of that context: of the
    `contextvars` of the task that offered the operation. A purgatory without such an observer copies nothing.
    """

    needs_context: bool


class KeyObserver(Protocol):
    """Told by a purgatory which keys somebody waits for: `purgatory.relay` subscribes to these.

    The purgatory calls it at once and on the event loop, in the middle of parking or ending an operation.
    What it asks of a purgatory is done after that. A purgatory without one pays nothing.
    """

    def key_watched(self, key: Hashable) -> None:
        """`key` has its first watcher, which is being parked.

        When this raises, the operation is refused with that exception, and nothing of it is kept.
        """

    def key_left(self, key: Hashable) -> None:
        """The last watcher of `key` has gone. Also called for the keys of an operation that was refused.

        An exception goes to the loop's exception handler.
        """


def ended(operation: DelayedOperation[Any]) -> tuple[tuple[Hashable, ...], OperationState, float, float]:
    """The keys, the state, the timeout and the deadline of an operation that has ended.

    The times are seconds. Infinity means that there was none. A key that was named twice is there twice.
    """
    return named(operation._watched), operation._state, operation._timeout, operation._deadline


def exception_of(operation: DelayedOperation[Any]) -> BaseException | None:
    """The exception of a FAILED operation. Unlike `exception()`, this does not count as having seen it."""
    return cast(Failure, operation._outcome).exception if operation._state is FAILED else None


def arrival(operation: DelayedOperation[Any]) -> int:
    """The place of an operation in the order in which its purgatory parked operations. The first has 1."""
    return operation._parked


def watched_keys(operation: DelayedOperation[Any], limit: int) -> tuple[tuple[Hashable, ...], int]:
    """The first `limit` keys of a pending operation, and how many keys it has. O(limit)."""
    record = operation._watched
    if isinstance(record, Chunk):
        keys, count = keys_at(record), 1
    else:
        keys, count = keys_at(record[: limit + 1]), len(record)
    shown = named(keys)
    return shown[:limit], count - len(keys) + len(shown)


def first_watchers(purgatory: Purgatory, limit: int) -> list[DelayedOperation[Any]]:
    """The first operation on each of the `limit` keys that have been watched for longest. O(limit).

    The loop's thread may call it. It calls no code of a key.
    """
    places = islice(purgatory._engine.watchers.table.values(), limit)
    found = [operation for place in places for operation in operations_at(place, 1)]
    return cast("list[DelayedOperation[Any]]", found)


def timing_of(operation: DelayedOperation[Any]) -> Timing | None:
    """The timing of an operation. None when it was offered before the first observer came."""
    try:
        timing = operation._timing
    except AttributeError:
        return None
    timing.tries = operation._tries
    return timing


@dataclass(frozen=True, slots=True)
class PurgatoryStatistics:
    """A purgatory's figures at one moment. Reading them costs O(1)."""

    pending: int
    """Operations that wait now."""
    max_pending: int | None
    """Operations that may wait. None when there is no limit."""
    watched: int
    """Operation-key pairs on the watch lists now: an operation on three keys counts three times.

    An operation that was offered without a key counts once more.
    """
    keys: int
    """Keys that at least one operation watches now.

    A key that raised, or had changed, as its last operation left counts, too. All operations without a key
    count as one key.
    """
    completed: int
    """Operations whose condition held, since the start."""
    expired: int
    """Operations that ended by their timeout, or by closing."""
    cancelled: int
    """Operations that were withdrawn."""
    failed: int
    """Operations that an exception in one of their hooks ended."""
    refused: int
    """Operations that had to wait, and were refused with PurgatoryFull."""
    wakeups: int
    """How often the event loop's timer has woken the reaper."""
    slices: int
    """How often bulk work (expiring, sweeping, closing) has paused because its time slice was over."""
    expired_untried: int = 0
    """Those of the expired whose timeout ended them, and that no check had tried since their offer.

    When many expire like this, perhaps nobody checks their keys, or checks them before the change.
    """
    missed_changes: int = 0
    """Operations that expired although their condition held. Only debug mode looks for them.

    After the change, nobody had checked a key of theirs.
    """


OUTCOMES: Final = ("completed", "expired", "cancelled", "failed")
"""The ways in which an operation ends: values of `OperationState`, and fields of `PurgatoryStatistics`."""
