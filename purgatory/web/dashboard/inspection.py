"""The private fields of operations that the dashboard reads, all of them in this place."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

from purgatory import DelayedOperation
from purgatory._core.operation import Failure, Operation
from purgatory._core.watchers import Chunk, keys_at
from purgatory.observer import Timing


def arrival(operation: DelayedOperation[Any]) -> int:
    """The number of operations that were parked in its purgatory before it, itself included."""
    return operation._parked


def watched_keys(operation: DelayedOperation[Any], limit: int) -> tuple[list[Hashable], int]:
    """The first `limit` keys of a pending operation, which may have thousands, and how many there are."""
    places = operation._watched
    if isinstance(places, Chunk):
        return list(keys_at(places)), 1
    return list(keys_at(places[:limit])), len(places)


def timing(operation: DelayedOperation[Any]) -> Timing | None:
    """Since when it waits; None when it was offered before anybody observed its purgatory."""
    return getattr(operation, "_timing", None)


def error(operation: DelayedOperation[Any]) -> BaseException:
    """The exception of a FAILED operation, which counts as unseen afterwards, unlike after `exception()`."""
    return cast(Failure, operation._outcome).exception


def has_own_repr(operation: DelayedOperation[Any]) -> bool:
    """Whether its class overrides `__repr__`."""
    return type(operation).__repr__ is not Operation.__repr__
