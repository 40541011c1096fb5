"""The seam for metrics, journals and dashboards."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from purgatory._core.operation import Timing
from purgatory.delayed_operation import DelayedOperation

__all__ = ["Observer", "Timing"]


class Observer(Protocol):
    """Is told what a purgatory does, at once and on the loop: be quick, and do not block.

    `purgatory` is the name of the one it happened in, since one observer may be given to several. What an
    observer raises goes to the loop's exception handler. A purgatory without observers pays nothing.
    """

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        """`operation` has ended, in whichever way; its hooks have run."""

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """A check of `key` tried so many of its operations and completed so many of those.

        It was over `at` this time, in seconds, by the clock of a `Timing`.
        """
