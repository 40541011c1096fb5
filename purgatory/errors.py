"""The library's own errors. Wrong arguments raise ValueError, TypeError or RuntimeError."""

from __future__ import annotations


class PurgatoryError(Exception):
    """The root of this library's errors."""


class PurgatoryClosed(PurgatoryError):
    """Raised when a purgatory that is closing or closed is offered an operation, or is started again.

    When the reaper ends by an exception such as KeyboardInterrupt, awaiting an operation raises this one.
    """


class PurgatoryNotOpen(PurgatoryClosed):
    """Raised when a purgatory that was never started is offered an operation, or is asked to check a key.

    Doing it again fails until somebody starts the purgatory.
    """


class OperationWithdrawn(PurgatoryError):
    """Raised when an awaited operation was withdrawn: by `cancel`, by `cancel_for_key` or by closing.

    It is no CancelledError, which would look as if the task that awaits had been cancelled itself. A task
    that is cancelled gets its own CancelledError.
    """


class PurgatoryFull(PurgatoryError):
    """Raised when `max_pending` operations wait already. The refused operation can be offered again later."""
