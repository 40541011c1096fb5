"""The library's own errors, and how messages and files show a user's object.

Wrong arguments raise ValueError, TypeError or RuntimeError.
"""

from __future__ import annotations

import asyncio
from typing import Any


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


class QuorumNotReached(PurgatoryError):
    """Raised when so many members have refused that a `DelayedQuorum` cannot be reached any more.

    `missing` has the members that have not acknowledged, and `refused` the members that have refused.
    """

    # The defaults are for pickle, which makes an exception from its message alone.
    def __init__(self, message: str, missing: tuple[Any, ...] = (), refused: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.missing = missing
        self.refused = refused


class QuorumTimedOut(QuorumNotReached, TimeoutError):
    """Raised when the timeout, or closing, ends the wait for a `DelayedQuorum`."""


class NoCondition(PurgatoryError, NotImplementedError, TypeError):
    """Raised when an operation is offered whose class does not override `try_complete`."""


def safe_repr(subject: object) -> str:
    """The repr() of `subject`, or its class and the class of the exception that its repr() raised.

    For reports about users' objects. Such an object may be half made or broken, and the report must arrive.
    """
    try:
        return repr(subject)
    except (Exception, asyncio.CancelledError) as error:
        return f"<{type(subject).__name__}, whose repr() raised {type(error).__name__}>"


def safe_text(subject: object) -> str:
    """The str() of `subject` as text that UTF-8 can encode. Never raises.

    For what leaves the process. Code points that UTF-8 does not allow are escaped. If str() of the subject
    raises, the text says so.
    """
    try:
        text = str(subject)
    except (Exception, asyncio.CancelledError) as error:
        text = f"<{type(subject).__name__} whose str() raised {type(error).__name__}>"
    # A subclass of str may override encode().
    return str.encode(text, "utf-8", "backslashreplace").decode()


def own_error(error: BaseException, who: str) -> BaseException:
    """The error of `who`, whose code has raised `error` in the middle of somebody else's call.

    It is `error` itself, except for a CancelledError. Such code reads futures, and `result()` of a cancelled
    one raises CancelledError. Nobody has cancelled the task that makes the call, and a task that raised this
    would end as if somebody had. So it becomes a RuntimeError, with the CancelledError as its cause.
    """
    if not isinstance(error, asyncio.CancelledError):
        return error
    replaced = RuntimeError(f"{who} raised CancelledError: something that it reads was cancelled")
    replaced.__cause__ = error
    return replaced
