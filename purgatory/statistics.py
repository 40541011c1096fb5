"""What a purgatory counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PurgatoryStatistics:
    """A purgatory's figures at one moment. Reading them costs O(1)."""

    pending: int
    """Operations that wait now."""
    watched: int
    """Operation-key pairs on the watch lists now: an operation on three keys counts three times."""
    keys: int
    """Keys that somebody watches now."""
    completed: int
    """Operations whose condition held, since the start."""
    expired: int
    """Operations that their timeout, or closing, ended."""
    cancelled: int
    """Operations withdrawn."""
    failed: int
    """Operations that an exception in one of their hooks ended."""
    wakeups: int
    """How often the event loop's timer has woken the reaper."""
    slices: int
    """How often work in bulk (expiring, sweeping, closing) has paused, because its slice was over."""
