"""Layer 4: telling observers what has happened."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, cast, final

from purgatory._core.operation import Operation
from purgatory._core.timer import Timer
from purgatory.errors import own_error, safe_repr

if TYPE_CHECKING:
    from purgatory.delayed_operation import DelayedOperation
    from purgatory.observer import Observer
    from purgatory.reports import Reporter


@final
class Observers:
    """The observers of one purgatory. What one of them raises keeps no other from being told."""

    def __init__(self, name: str, timer: Timer, reporter: Reporter, observers: tuple[Observer, ...]) -> None:
        self._name = name
        self._timer = timer
        self._reporter = reporter
        self.tell(observers)

    def tell(self, observers: tuple[Observer, ...]) -> None:
        """Tell these, and no others, from now on."""
        self.all = observers
        # Whether one of them asks for the context of each offer.
        self.need_context = any(getattr(observer, "needs_context", False) for observer in observers)

    def ended(self, operation: Operation) -> None:
        """Tell them that `operation` has ended."""
        try:
            timing = operation._timing
        except AttributeError:
            # It was offered before the first observer came, so nobody noted when.
            return
        timing.ended = self._timer.clock()
        timing.tries = operation._tries
        raised: BaseException | None = None
        for observer in self.all:
            try:
                observer.operation_finished(self._name, cast("DelayedOperation[Any]", operation), timing)
            except BaseException as error:
                raised = self._failed(observer, error, raised)
        if raised is not None:
            raise raised

    def checked(self, key: Hashable, tried: int, completed: int) -> None:
        """Tell them that a check of `key` is over."""
        at = self._timer.clock()
        raised: BaseException | None = None
        for observer in self.all:
            try:
                observer.key_checked(self._name, key, tried, completed, at)
            except BaseException as error:
                raised = self._failed(observer, error, raised)
        if raised is not None:
            raise raised

    def _failed(
        self, observer: Observer, error: BaseException, raised: BaseException | None
    ) -> BaseException | None:
        """Report what an observer raised. Returns what goes up when all were told: the first interruption."""
        interruption = own_error(error, type(observer).__name__)
        if isinstance(interruption, Exception):
            try:
                self._reporter.report(f"{safe_repr(observer)} raised an exception", interruption)
            except BaseException as problem:
                interruption = problem
            else:
                return raised
        return interruption if raised is None else raised
