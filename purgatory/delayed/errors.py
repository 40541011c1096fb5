"""The errors of the store."""

from __future__ import annotations

from purgatory.errors import PurgatoryError


class StoreLocked(PurgatoryError):
    """Raised when another process, or another object of this process, has the directory open."""


class StoreFailed(PurgatoryError):
    """Raised when the disk failed to sync what was written, or the directory has gone: nobody knows what is
    on the disk.

    The store takes no more messages. What was acknowledged before is safe. Open the directory again, in a
    new process, once the disk is in order.
    """


class IdTaken(PurgatoryError):
    """Raised when a message is scheduled with the id of another message that is still to come."""
