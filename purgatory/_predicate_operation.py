"""The operation behind `wait_until`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar, cast

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
        self._value = self._predicate()
        return self.force_complete() if self._value else False

    def on_complete(self) -> T:
        return cast(T, self._value)
