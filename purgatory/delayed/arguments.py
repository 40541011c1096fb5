"""The due times, ids and functions that users pass."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from datetime import datetime

from purgatory.delayed.frame import MAX_ID
from purgatory.delayed.schedule import FARTHEST


def milliseconds(at: float | datetime) -> int:
    """Milliseconds since the epoch, rounded up. Raises ValueError and TypeError."""
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise ValueError(f"at must be an aware datetime, and {at!r} has no time zone")
        at = at.timestamp()
    elif isinstance(at, bool) or not isinstance(at, int | float):
        raise TypeError(f"at must be a datetime or seconds since the epoch, not {type(at).__name__}")
    # A float has microseconds only. Without the rounding, 0.001 could become 2 ms.
    if not abs(at * 1000) < FARTHEST:
        raise ValueError(
            f"at must be a number of seconds since the epoch, up to 35,000 years from it, not {at!r}"
        )
    return math.ceil(round(at * 1000, 2))


def check_function(name: str, function: Callable[..., object], *arguments: str) -> None:
    """Raises TypeError for what cannot be called with these arguments."""
    if not callable(function):
        raise TypeError(f"{name} must be a function, not {type(function).__name__}")
    try:
        signature = inspect.signature(function)
    except ValueError:
        # Some functions that are written in C have none.
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise TypeError(f"{name} is called with ({', '.join(arguments)}): {error}") from None


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
