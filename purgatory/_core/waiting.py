"""Layer 2: the tasks that await an operation."""

from __future__ import annotations

import asyncio
from typing import Protocol

from purgatory._core.operation import Operation, end
from purgatory._core.outcome import BY_WAITER, CANCELLED, NEW, NO_OUTCOME, Given
from purgatory.errors import safe_repr


class Waiter(Protocol):
    """Is woken by the end of an operation: an asyncio.Future, or an object with these two methods."""

    def done(self) -> bool:
        """Whether it no longer needs to be woken."""

    def set_result(self, result: None, /) -> None:
        """The operation has its outcome. Its engine is still at work, so this only takes a note."""


def settled(operation: Operation) -> bool:
    """Whether the operation has ended, and all its hooks have run. Tasks that await it wait for that."""
    if operation._owner is not None:
        return False
    outcome = operation._outcome
    return (outcome is not NO_OUTCOME and not isinstance(outcome, Given)) or operation._state is CANCELLED


def wait_for(operation: Operation) -> asyncio.Future[None]:
    """A future of the running loop, which is done when `operation`, which is not settled yet, has ended.

    Raises RuntimeError where nobody would ever wake that loop.
    """
    loop = asyncio.get_running_loop()
    owner = operation._owner
    if owner is None:
        if operation._state is NEW:
            raise RuntimeError(
                f"{safe_repr(operation)} would never end: offer it before you await it, as in "
                "`await purgatory.try_complete_else_watch(operation, keys)`"
            )
    # A ManualClock of the tests is no event loop. Any task may await the operations of its purgatories.
    elif owner.loop is not loop and isinstance(owner.loop, asyncio.AbstractEventLoop):
        raise RuntimeError(
            f"{safe_repr(operation)} belongs to the purgatory of another event loop: "
            "await it there, or use a purgatory for each loop"
        )
    waiter = loop.create_future()
    wake_when_done(operation, waiter)
    return waiter


def wake_when_done(operation: Operation, waiter: Waiter) -> None:
    """Have `waiter` woken when `operation`, which is not settled yet, ends."""
    waiters = operation._waiters
    if waiters is None:
        operation._waiters = waiter
    elif type(waiters) is dict:
        waiters[waiter] = None
    else:
        operation._waiters = {waiters: None, waiter: None}


def accompany(operation: Operation, companion: Waiter) -> None:
    """Have `companion`, of which there is one at most, woken when `operation` ends.

    Unlike other waiters, it does not keep an operation that no task awaits any more.
    """
    waiters = operation._waiters
    if type(waiters) is not dict:
        waiters = operation._waiters = {} if waiters is None else {waiters: None}
    # The only one with a value.
    waiters[companion] = companion


def abandon(operation: Operation, waiter: Waiter) -> None:
    """A task no longer awaits `operation`. When no other task awaits it, withdraw it."""
    waiters = operation._waiters
    if type(waiters) is dict:
        del waiters[waiter]
        if len(waiters) > 1 or None in waiters.values():
            return
    else:
        operation._waiters = None
    end(operation, CANCELLED, BY_WAITER)
