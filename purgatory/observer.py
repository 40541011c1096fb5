"""The seam for metrics, journals and dashboards."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from purgatory._core.outcome import Timing
from purgatory.delayed_operation import DelayedOperation

__all__ = ["KeyObserver", "Observer", "Timing"]


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
