"""What the library raises of its own. Wrong arguments raise ValueError, TypeError or RuntimeError."""

from __future__ import annotations


class PurgatoryError(Exception):
    """The root of this library's errors."""


class PurgatoryClosed(PurgatoryError):
    """Raised when an operation is offered to a purgatory that is not open: not started yet, or closed."""


class PurgatoryNotOpen(PurgatoryClosed):
    """It has not been started: no use to try again, until somebody does that."""


class PurgatoryFull(PurgatoryError):
    """Raised when `max_pending` operations wait already; the one refused can be offered again later."""
