"""Long polls: requests that are answered when an operation is done, and end when the client disconnects."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeVar

from starlette.exceptions import HTTPException
from starlette.types import Receive

from purgatory._cancellation import Foreign
from purgatory._core.outcome import OperationState
from purgatory.delayed_operation import DelayedOperation
from purgatory.errors import (
    OperationWithdrawn,
    PurgatoryClosed,
    PurgatoryError,
    PurgatoryFull,
    PurgatoryNotOpen,
    safe_repr,
)
from purgatory.purgatory import Purgatory
from purgatory.web.interruption import Interruption

R = TypeVar("R")

RETRY_AFTER: Final = 1
"""Seconds after which a refused client may ask again. They are few, because a refusal costs little."""

CLIENT_CLOSED_REQUEST: Final = 499
"""The status that nginx logs for a client that has disconnected."""


class HasReceive(Protocol):
    """A request that has `receive`, such as a request of Starlette or FastAPI."""

    @property
    def receive(self) -> Receive: ...


class ClientDisconnected(PurgatoryError):
    """Raised when the client disconnected before its operation was done, so that no response can be sent."""


class PollWithdrawn(OperationWithdrawn):
    """Raised when a poll's operation was withdrawn by something other than its client's disconnection."""


async def long_poll(
    request: HasReceive, purgatory: Purgatory, operation: DelayedOperation[R], keys: Iterable[Hashable]
) -> R:
    """The result of `operation`, which waits on `keys` while the client of `request` stays connected.

    Starlette and FastAPI make responses of the HTTPExceptions that this raises. The status is 503, with
    Retry-After, when the purgatory is full or closed, or when the operation was withdrawn. It is 499 when the
    client has disconnected, so nobody receives it. Exceptions of the operation's hooks are raised unchanged.
    So are PurgatoryNotOpen and the errors of `poll` for wrong arguments, because a retry would not help.
    """
    try:
        return await poll(request.receive, purgatory, operation, keys)
    except ClientDisconnected as error:
        raise HTTPException(CLIENT_CLOSED_REQUEST, "the client has disconnected") from error
    except (PurgatoryFull, PurgatoryClosed, PollWithdrawn) as error:
        if not is_refusal(error, operation):
            raise
        raise try_again_later() from error


def is_refusal(error: PurgatoryError, operation: DelayedOperation[Any]) -> bool:
    """Whether the client may succeed later. A purgatory that was never opened is a fault of the program."""
    # When the operation has failed, its hook has raised the error, about another purgatory.
    return not isinstance(error, PurgatoryNotOpen) and operation.state is not OperationState.FAILED


def try_again_later() -> HTTPException:
    headers = {"Retry-After": str(RETRY_AFTER)}
    return HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "try again later", headers)


async def poll(
    receive: Receive, purgatory: Purgatory, operation: DelayedOperation[R], keys: Iterable[Hashable]
) -> R:
    """`long_poll` for plain ASGI applications. `receive` is the callable that the server passed to yours.

    The operation is withdrawn at once when the client disconnects, and when this task is cancelled. The rest
    of the request's body is dropped, so read it before. Nothing else may call `receive` until this returns.

    This task waits for the operation and for the client, and makes no other task. When the operation is done,
    `receive` is cancelled.

    Raises ClientDisconnected, and PollWithdrawn when anything else withdraws the operation. It also raises
    the exceptions of `receive`, of `Purgatory.try_complete_else_watch` and of awaiting the operation.
    """
    purgatory.try_complete_else_watch(operation, keys)
    if not operation.done:
        # Interruption is the inner block: it catches its own cancellation, so Foreign does not look at it.
        with Foreign("receive"), Interruption(operation):
            # A receive() that swallows its cancellation returns when the operation is done.
            while not operation.done:
                if (await receive())["type"] == "http.disconnect":
                    client = f"the client that waited for {safe_repr(operation)}"
                    raise ClientDisconnected(f"{client} has disconnected")
    if operation.state is not OperationState.CANCELLED:
        return operation.result()
    raise PollWithdrawn(f"{safe_repr(operation)} was withdrawn while its client waited")
