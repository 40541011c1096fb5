"""A long poll: a request that is answered when its operation is done, and given up when its client leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeVar

from starlette.exceptions import HTTPException

from purgatory._core.operation import OperationState
from purgatory._core.safe_repr import safe_repr
from purgatory.delayed_operation import DelayedOperation
from purgatory.errors import PurgatoryClosed, PurgatoryError, PurgatoryFull, PurgatoryNotOpen
from purgatory.purgatory import Purgatory
from purgatory.web.interruption import Interruption

R = TypeVar("R")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

RETRY_AFTER: Final = 1
"""Seconds after which a refused client may ask again. Refusing it once more costs next to nothing."""

CLIENT_CLOSED_REQUEST: Final = 499
"""nginx's status for a client that has left. Nobody gets it, and no log shows it as a fault of the server."""


class HasReceive(Protocol):
    """What `long_poll` needs of a request; Starlette's and FastAPI's have it."""

    @property
    def receive(self) -> Receive: ...


class ClientDisconnected(PurgatoryError):
    """Raised when the client left before its operation was done: nobody is there to be answered."""


class PollWithdrawn(PurgatoryError):
    """Raised when a poll's operation was withdrawn, and not because its client has left."""


async def long_poll(
    request: HasReceive, purgatory: Purgatory, operation: DelayedOperation[R], keys: Iterable[Hashable]
) -> R:
    """The result of `operation`, which waits on `keys` for as long as the client of `request` does.

    For Starlette and FastAPI. What can go wrong becomes an HTTPException, which both answer by themselves:
    503 with Retry-After when the purgatory is full or closed, or somebody has withdrawn the operation; 499,
    which nobody sees, when the client has left. What the operation's hooks raise goes up as it is, as does
    PurgatoryNotOpen, and whatever `poll` raises for wrong arguments: no client can help these by coming back.
    """
    try:
        return await poll(request.receive, purgatory, operation, keys)
    except ClientDisconnected as error:
        raise HTTPException(CLIENT_CLOSED_REQUEST, "the client has left") from error
    except PurgatoryNotOpen:
        raise
    except (PurgatoryFull, PurgatoryClosed, PollWithdrawn) as error:
        if operation.state is OperationState.FAILED:
            # A hook of its own has met with another purgatory.
            raise
        headers = {"Retry-After": str(RETRY_AFTER)}
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "try again later", headers) from error


async def poll(
    receive: Receive, purgatory: Purgatory, operation: DelayedOperation[R], keys: Iterable[Hashable]
) -> R:
    """`long_poll` for plain ASGI: `receive` is what the application was called with.

    When the client disconnects the operation is withdrawn at once, and so it is when this task is cancelled.
    What is left of the request's body is dropped: read it before. Meanwhile nobody else may call `receive`.

    Both waits are this task's own: no other is made. When the operation is done, `receive` is cancelled.

    Raises ClientDisconnected; PollWithdrawn when somebody else has withdrawn the operation; what `receive`
    raises; and everything that `Purgatory.try_complete_else_watch` and awaiting the operation do.
    """
    purgatory.try_complete_else_watch(operation, keys)
    left = False
    if not operation.done:
        try:
            with Interruption(operation):
                # Done already, if receive() has swallowed its cancellation.
                while not operation.done and (await receive())["type"] != "http.disconnect":
                    pass
        finally:
            # Whatever has ended it: a client that left, a cancellation, or an error of receive().
            left = operation.cancel()
    if operation.state is not OperationState.CANCELLED:
        return operation.result()
    if left:
        raise ClientDisconnected(f"the client that waited for {safe_repr(operation)} has left")
    raise PollWithdrawn(f"{safe_repr(operation)} was withdrawn while its client waited")
