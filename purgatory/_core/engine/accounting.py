"""Counts of what became of a purgatory's operations, and the observers that are told of it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, assert_never, cast, final

from purgatory._core.engine.failures import FailureReporter
from purgatory._core.operation import Operation
from purgatory._core.outcome import CANCELLED, COMPLETED, EXPIRED, FAILED, NEW, PENDING, OperationState
from purgatory._core.safe_repr import safe_repr
from purgatory._core.timer import Timer

if TYPE_CHECKING:
    from purgatory.delayed_operation import DelayedOperation
    from purgatory.observer import Observer


@final
class Accounting:
    """Counts operations by their final state, and tells observers of each end and each check."""

    __slots__ = (
        "_name",
        "_observers",
        "_reporter",
        "_timer",
        "cancelled",
        "completed",
        "expired",
        "failed",
        "observed",
        "parked",
        "pending",
        "refused",
        "slices",
    )

    def __init__(
        self, name: str, timer: Timer, reporter: FailureReporter, observers: tuple[Observer, ...]
    ) -> None:
        self._name = name
        self._timer = timer
        self._reporter = reporter
        self._observers = observers
        # Whether there are observers.
        self.observed = bool(observers)
        # How many operations were ever parked. The number of an operation is its place in that order.
        self.parked = 0
        self.pending = 0
        self.completed = 0
        self.expired = 0
        self.cancelled = 0
        self.failed = 0
        # Operations that were not parked, because as many as may wait did.
        self.refused = 0
        # How often sweeps and closing have paused.
        self.slices = 0

    def add_observer(self, observer: Observer) -> None:
        self._observers += (observer,)
        self.observed = True

    def ended(self, operation: Operation) -> None:
        """Count `operation`, which has ended, and tell the observers. From here on it has no owner."""
        state: OperationState = operation._state
        if state is COMPLETED:
            self.completed += 1
        elif state is EXPIRED:
            self.expired += 1
        elif state is CANCELLED:
            self.cancelled += 1
        elif state is FAILED:
            self.failed += 1
            operation._owner = None
            try:
                self._reporter.operation_failed(operation)
            finally:
                if self.observed:
                    self._tell_ended(operation)
            return
        elif state is not NEW and state is not PENDING:  # pragma: no cover  # no such state exists
            # A type checker finds a final state that is not counted here.
            assert_never(state)
        # Who asks for the result gets it now.
        operation._owner = None
        if self.observed:
            self._tell_ended(operation)

    def _tell_ended(self, operation: Operation) -> None:
        try:
            timing = operation._timing
        except AttributeError:
            # It was offered before the first observer came, so nobody noted when.
            return
        timing.ended = self._timer.clock()
        interruption: BaseException | None = None
        for observer in self._observers:
            try:
                observer.operation_finished(self._name, cast("DelayedOperation[Any]", operation), timing)
            except BaseException as error:
                raised = self._observer_failed(observer, error)
                interruption = interruption or raised
        if interruption is not None:
            raise interruption

    def checked(self, key: Hashable, tried: int, completed: int) -> None:
        """Tell the observers that a check of `key` is over."""
        at = self._timer.clock()
        interruption: BaseException | None = None
        for observer in self._observers:
            try:
                observer.key_checked(self._name, key, tried, completed, at)
            except BaseException as error:
                raised = self._observer_failed(observer, error)
                interruption = interruption or raised
        if interruption is not None:
            raise interruption

    def _observer_failed(self, observer: Observer, error: BaseException) -> BaseException | None:
        """Report what an observer raised. Returns what has to go up once the other observers were told."""
        if not isinstance(error, Exception):
            return error
        try:
            self._reporter.report(f"{safe_repr(observer)} raised an exception", error)
        except BaseException as problem:
            return problem
        return None
