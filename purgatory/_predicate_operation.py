"""The operation behind `wait_until`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Literal, TypeVar, cast

from purgatory._core.safe_repr import safe_repr
from purgatory.delayed_operation import DelayedOperation

T = TypeVar("T")


class PredicateOperation(DelayedOperation[T]):
    """Completes with the first truthy value of `predicate`, which every try calls."""

    __slots__ = ("_predicate", "_value")

    def __init__(self, predicate: Callable[[], T | Literal[False] | None], timeout: float | None) -> None:
        super().__init__(timeout)
        self._predicate = predicate
        self._value: T | Literal[False] | None = None

    def try_complete(self) -> bool:
        self._value = value = self._predicate()
        if not value:
            return False
        if value is not True and inspect.isawaitable(value):
            if inspect.iscoroutine(value):
                # Otherwise it would warn that nobody has awaited it.
                value.close()
            raise TypeError(
                f"{safe_repr(self._predicate)} returned an awaitable: wait_until needs a plain function, "
                "which returns the value itself"
            )
        return self.force_complete()

    def on_complete(self) -> T:
        return cast(T, self._value)
