"""What a store is asked, what it answers, and why it refuses."""

from __future__ import annotations

import math
from collections.abc import Container
from datetime import datetime
from typing import NamedTuple

from purgatory.delayed import schedule
from purgatory.delayed.storage.frames import MAX_ID, Kind
from purgatory.errors import PurgatoryError


class StoreLocked(PurgatoryError):
    """Raised when another process, or another object of this process, has the directory open."""


class StoreFailed(PurgatoryError):
    """Raised when the disk failed to sync what was written, or a directory has gone: nobody knows what is on
    the disk.

    The store takes no more messages. What was acknowledged before is safe. Open the directory again, in a
    new process, once the disk is in order.
    """


class IdTaken(PurgatoryError):
    """Raised when a message is scheduled with the id of another message that is still to come."""


class Put(NamedTuple):
    """Store a message. It stays in the log if it is `soon`.

    It may take the id of a message that is being delivered: `delivering` has the tokens of these messages.
    """

    due: int
    name: str | None
    payload: bytes
    soon: bool
    delivering: Container[int] = ()


class End(NamedTuple):
    """Note that a message was cancelled or delivered.

    With `check`, a message that was cancelled before is not cancelled again.
    """

    kind: Kind
    token: int
    due: int
    named: bool
    check: bool = False


class Stored(NamedTuple):
    """The answer to a Put: the token of the message, where it is, and whether it was there before."""

    token: int
    position: int
    repeated: bool = False


Request = Put | End
Answer = Stored | IdTaken | bool


def milliseconds(at: float | datetime) -> int:
    """Milliseconds since the epoch, rounded up. Raises ValueError and TypeError."""
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise ValueError(f"at must be an aware datetime, and {at!r} has no time zone")
        at = at.timestamp()
    elif isinstance(at, bool) or not isinstance(at, int | float):
        raise TypeError(f"at must be a datetime or seconds since the epoch, not {type(at).__name__}")
    if not abs(at * 1000) < schedule.FARTHEST:
        words = "at must be a number of seconds since the epoch, up to 35,000 years from it"
        raise ValueError(f"{words}, not {at!r}")
    # A float has microseconds only. Without the rounding, 0.001 could become 2 ms.
    return math.ceil(round(at * 1000, 2))


def check_id(id: str) -> None:
    """Raises ValueError and TypeError for what is no id."""
    if not isinstance(id, str):
        raise TypeError(f"id must be a str, not {type(id).__name__}")
    try:
        length = len(id.encode())
    except UnicodeEncodeError:
        raise ValueError(f"the id {id!r} cannot be encoded in UTF-8") from None
    if not 0 < length <= MAX_ID:
        raise ValueError(f"an id must have 1 to {MAX_ID} bytes in UTF-8, not {length}")
