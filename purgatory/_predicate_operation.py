"""The operation behind `wait_until`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from purgatory._evaluator import Evaluator
from purgatory.delayed_operation import DelayedOperation

T = TypeVar("T")


class PredicateOperation(DelayedOperation[T]):
    """Completes with the first truthy value of `predicate`, which every try calls.

    As soon as the predicate returns an awaitable, it is an async one. From then on every try asks for an
    evaluation. (The first call tells, because no look at a function or a lambda does. It costs a plain
    predicate nothing.)
    """

    __slots__ = ("_predicate", "_value", "evaluator")

    def __init__(self, predicate: Callable[[], Any], timeout: float | None) -> None:
        super().__init__(timeout)
        self._predicate = predicate
        self._value: Any = None
        # Only an async predicate has one.
        self.evaluator: Evaluator | None = None

    def try_complete(self) -> bool:
        self._value = value = self._predicate()
        if not value:
            return False
        if value is not True and inspect.isawaitable(value):
            self._value = None
            self.evaluator = Evaluator(self, self._predicate, value)
            self._predicate = self.evaluator.ask
            return self.evaluator.ask()
        return self.force_complete()

    def on_complete(self) -> T:
        return cast(T, self._value)
