"""The errors of `purgatory.relay`."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from purgatory.errors import PurgatoryError


class RelayClosed(PurgatoryError):
    """Raised when a relay is asked for something that it can do only while it is open.

    Also raised by `Relay.signalled` when the relay ends before the transport has taken the signal.
    """


def described(error: BaseException) -> str:
    """The class of `error` and its text. The `repr()` of redis-py's errors has no text."""
    return "".join(traceback.format_exception_only(error)).strip()


@contextmanager
def in_time(seconds: float, what: str) -> Iterator[None]:
    """`anyio.fail_after`, with a text: its TimeoutError has none."""
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise TimeoutError(f"{what} has taken more than {seconds:.2g} seconds")
