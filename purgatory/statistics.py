"""What a purgatory counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PurgatoryStatistics:
    """A purgatory's figures at one moment. Reading them costs O(1)."""

    pending: int
    """Operations that wait now."""
    max_pending: int | None
    """Operations that may wait. None when there is no limit."""
    watched: int
    """Operation-key pairs on the watch lists now: an operation on three keys counts three times.

    An operation without a key counts once.
    """
    keys: int
    """Keys that at least one operation watches now.

    A key that raised, or had changed, as its last operation left counts, too. All operations without a key
    count as one key.
    """
    completed: int
    """Operations whose condition held, since the start."""
    expired: int
    """Operations that their timeout, or closing, ended."""
    cancelled: int
    """Operations that were withdrawn."""
    failed: int
    """Operations that an exception in one of their hooks ended."""
    refused: int
    """Operations that had to wait, and were refused with PurgatoryFull."""
    wakeups: int
    """How often the event loop's timer has woken the reaper."""
    slices: int
    """How often bulk work (expiring, sweeping, closing) has paused because its time slice was over."""
    expired_untried: int = 0
    """Those of the expired whose timeout ended them, and that no check had tried since their offer.

    When many expire like this, perhaps nobody checks their keys, or checks them before the change.
    """
    missed_changes: int = 0
    """Operations that expired although their condition held. Only debug mode looks for them.

    After the change, nobody had checked a key of theirs.
    """


OUTCOMES: Final = ("completed", "expired", "cancelled", "failed")
"""The ways in which an operation ends: values of `OperationState`, and fields of `PurgatoryStatistics`."""
