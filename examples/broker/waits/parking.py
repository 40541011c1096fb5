"""How an operation is parked."""

from collections.abc import Collection, Hashable
from typing import Any, TypeVar

from purgatory import DelayedOperation, Purgatory, PurgatoryError

Op = TypeVar("Op", bound=DelayedOperation[Any])


def park(purgatory: Purgatory, operation: Op, keys: Collection[Hashable]) -> Op:
    """Try an operation, and have it wait on the ``keys`` if its condition does not hold. Return it to await.

    A purgatory that is full, or is closed because the broker stops, refuses the operation. Then it has the
    result that it would have after its timeout.
    """
    try:
        return purgatory.try_complete_else_watch(operation, keys)
    except PurgatoryError:
        operation.force_complete()
        return operation
