"""The seam for metrics, journals and dashboards."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from purgatory.delayed_operation import DelayedOperation


class Observer(Protocol):
    """Is told what a purgatory does, at once and on the loop: be quick, and do not block.

    What it raises goes to the loop's exception handler. A purgatory without observers pays nothing.
    """

    def operation_finished(self, operation: DelayedOperation[Any]) -> None:
        """`operation` has ended, in whichever way; its hooks have run."""

    def key_checked(self, key: Hashable, tried: int, completed: int) -> None:
        """A check of `key` tried so many of its operations and completed so many of those."""
