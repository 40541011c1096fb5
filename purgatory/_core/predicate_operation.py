"""An operation that waits for a plain function."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from purgatory._core.operation import Operation


@final
class PredicateOperation(Operation):
    """Completes with the first truthy value of `predicate`, which is called at every try."""

    __slots__ = ("_predicate", "_value")

    def __init__(self, predicate: Callable[[], object], timeout: float | None) -> None:
        Operation.__init__(self, timeout)
        self._predicate = predicate
        self._value: object = None

    def try_complete(self) -> bool:
        self._value = self._predicate()
        return self.force_complete() if self._value else False

    def on_complete(self) -> object:
        return self._value
