"""Operations that need no class of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from purgatory._core.operation import HOOKS, Unconditional
from purgatory._core.outcome import OperationState
from purgatory.delayed_operation import DelayedOperation, check_names
from purgatory.errors import QuorumNotReached, QuorumTimedOut, safe_repr

if TYPE_CHECKING:
    pass

T = TypeVar("T")
M = TypeVar("M", bound=Hashable)


class DelayedValue(Unconditional, DelayedOperation[T]):
    """Waits for a value that somebody hands over: ``DelayedValue[str](timeout=5)``.

    `complete(value)` ends the wait, and awaiting gives that value. `fail(error)` ends it, too, and awaiting
    raises that error. When the timeout, or closing, ends the wait, awaiting raises TimeoutError, and the
    operation counts as expired. Use it for a response that belongs to a request, and for the result of a job.

    A check of its key does nothing. `Purgatory.operations` and `Purgatory.cancel_for_key` find the operation
    by the key. Offer it before the value can come, because an operation that is done cannot be offered.
    """

    __slots__ = ()

    def on_expiration(self) -> None:
        keys = ", ".join(map(safe_repr, self.keys))
        awaited = f" for {keys}" if keys else ""
        raise TimeoutError(f"no value came{awaited} {limit(self)}")


class DelayedQuorum(Unconditional, DelayedOperation[tuple[M, ...]]):
    """Waits until `needed` of the `members` have acknowledged: ``DelayedQuorum(2, replicas, timeout=5)``.

    Each `acknowledge(member)` counts one. The result is a tuple of the members that have acknowledged, in the
    order in which they did. When the timeout, or closing, ends the wait, awaiting raises QuorumTimedOut,
    which is a TimeoutError. When too few members are left that have not refused, awaiting raises
    QuorumNotReached at once, which is no TimeoutError. Both errors have the tuples `missing` and `refused`.
    The operation needs no check of its key, because `acknowledge` and `refuse` look at the count themselves.

    A member that is named twice counts once. Raises TypeError when `needed` is no int or `members` is a text,
    and ValueError when `needed` is below 1 or above the number of members.
    """

    __slots__ = ("_acknowledged", "_members", "_needed", "_refused")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_names(cls, _PROTECTED)

    def __init__(self, needed: int, members: Iterable[M], timeout: float | None) -> None:
        super().__init__(timeout)
        if isinstance(members, (str, bytes)):
            raise TypeError(f"members must be a collection, not {members!r}: did you mean [{members!r}]?")
        # Sets that keep an order.
        self._members: dict[M, None] = dict.fromkeys(members)
        self._acknowledged: dict[M, None] = {}
        self._refused: dict[M, None] = {}
        if not isinstance(needed, int) or isinstance(needed, bool):
            raise TypeError(f"needed must be an int, not {safe_repr(needed)}")
        if not 1 <= needed <= len(self._members):
            raise ValueError(f"needed must be from 1 to the {len(self._members)} members, not {needed}")
        self._needed = needed

    def acknowledge(self, member: M) -> bool:
        """Note that `member` has acknowledged. True for the one call that completes the operation.

        A member counts once. Acknowledgements before the offer count, too: when there are enough of them, the
        offer completes the operation. Those after the end are noted, and change no result. Raises ValueError
        for an object that is no member.
        """
        return _note(self, member, self._acknowledged, self._refused)

    def refuse(self, member: M) -> bool:
        """Note that `member` will not acknowledge. True for the one call that ends the operation.

        As soon as too few members are left, the operation fails with QuorumNotReached. A refusal counts as an
        acknowledgement does, before the offer and after the end, too. Of one member, the latest call counts:
        an acknowledgement replaces a refusal, and a refusal takes an acknowledgement back.
        """
        return _note(self, member, self._refused, self._acknowledged)

    @property
    def acknowledged(self) -> tuple[M, ...]:
        """The members that have acknowledged, in the order in which they did."""
        return tuple(self._acknowledged)

    @property
    def refused(self) -> tuple[M, ...]:
        """The members that have refused, in the order in which they did."""
        return tuple(self._refused)

    @property
    def missing(self) -> tuple[M, ...]:
        """The members that have not acknowledged, refused ones included, in the order given."""
        return tuple([member for member in self._members if member not in self._acknowledged])

    def try_complete(self) -> bool:
        if len(self._acknowledged) >= self._needed:
            return self.force_complete()
        if len(self._members) - len(self._refused) < self._needed:
            return self.fail(QuorumNotReached(_count(self), self.missing, self.refused))
        return False

    def on_complete(self) -> tuple[M, ...]:
        return tuple(self._acknowledged)

    def on_expiration(self) -> None:
        raise QuorumTimedOut(_count(self, f" {limit(self)}"), self.missing, self.refused)


class Session(Unconditional, DelayedOperation[None]):
    """Calls `callback` when nobody has renewed it for `timeout` seconds: ``Session(30, go_offline)``.

    `renew()` gives it its timeout again, in O(1). `cancel()` ends it without the callback. So does closing
    the purgatory, because then the timeout is not over. It needs no key.

    The callback takes no arguments, and the session is done when it runs. When it raises, the session fails,
    and nothing else does. It must not be async. Where something has to be awaited, it creates a task.
    """

    __slots__ = ("_callback",)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_names(cls, _PROTECTED)

    def __init__(self, timeout: float | None, callback: Callable[[], object]) -> None:
        super().__init__(timeout)
        self._callback = callback

    def renew(self) -> bool:
        """Give the session its timeout again, from now. False when it has ended. The cost is O(1)."""
        return self.reschedule(self.timeout)

    # In on_expiration a TimeoutError would be the outcome, and a callback that raises it would go unseen.
    def on_complete(self) -> None:
        if self.timed_out:
            returned = self._callback()
            if inspect.iscoroutine(returned):
                # Otherwise it would warn that nobody has awaited it.
                returned.close()
                raise TypeError("the callback of a session must not be async: create a task in it")


# The names that no subclass may use for anything else.
_PROTECTED: Final[Mapping[type, frozenset[str]]] = {
    kind: frozenset(name for name in vars(kind) if name[:2] != "__" and name not in HOOKS)
    for kind in (DelayedQuorum, Session)
}


def _note(quorum: DelayedQuorum[M], member: M, answers: dict[M, None], others: dict[M, None]) -> bool:
    if member not in quorum._members:
        raise ValueError(f"{safe_repr(member)} is no member: there are {safe_repr(list(quorum._members))}")
    answers[member] = None
    others.pop(member, None)
    return quorum.state is not OperationState.NEW and quorum.try_complete()


def _count(quorum: DelayedQuorum[M], limit: str = "") -> str:
    """What is known of the members, in words for an error."""
    count = f"{len(quorum._acknowledged)} of {len(quorum._members)} members acknowledged{limit}"
    needed = f"{quorum._needed} {'is' if quorum._needed == 1 else 'are'} needed"
    words = f"{count}, {needed}; missing: {', '.join(map(safe_repr, quorum.missing))}"
    if quorum._refused:
        words += f"; refused: {', '.join(map(safe_repr, quorum._refused))}"
    return words


def limit(operation: DelayedOperation[Any]) -> str:
    """Until when an operation that expired has waited, in words for an error."""
    if operation.timed_out:
        return f"within {max(operation.timeout or 0.0, 0.0)} s"
    return "before the purgatory was closed"
