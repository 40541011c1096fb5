"""Operations that need no class of the user's own. Compiled, they run no interpreted code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable
from typing import Any, final

from purgatory._core.operation import Operation
from purgatory._core.outcome import NEW
from purgatory._mypyc import mypyc_attr
from purgatory.errors import QuorumNotReached, QuorumTimedOut, safe_repr


@mypyc_attr(allow_interpreted_subclasses=True)
class Unconditional(Operation):
    """An operation that its own methods end. A check does nothing to it, so it needs no key."""

    __slots__ = ()

    def try_complete(self) -> bool:
        return False


@mypyc_attr(allow_interpreted_subclasses=True)
class Value(Unconditional):
    """A `DelayedValue` without its type parameter and without `await`."""

    __slots__ = ()

    def on_expiration(self) -> None:
        keys = ", ".join(map(safe_repr, self.keys))
        awaited = f" for {keys}" if keys else ""
        raise TimeoutError(f"no value came{awaited} {limit(self)}")


@mypyc_attr(allow_interpreted_subclasses=True)
class Session(Unconditional):
    """A `purgatory.Session` without `await`."""

    __slots__ = ("_callback",)

    def __init__(self, timeout: Any, callback: Callable[[], object]) -> None:
        super().__init__(timeout)
        self._callback = callback

    @final
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


@mypyc_attr(allow_interpreted_subclasses=True)
class Quorum(Unconditional):
    """A `DelayedQuorum` without its type parameter and without `await`."""

    __slots__ = ("_acknowledged", "_members", "_needed", "_refused")

    # Any: compiled code refuses what is no number without naming the argument.
    def __init__(self, needed: Any, members: Iterable[Hashable], timeout: Any) -> None:
        super().__init__(timeout)
        # Sets that keep an order.
        self._members: dict[Hashable, None] = dict.fromkeys(members)
        self._acknowledged: dict[Hashable, None] = {}
        self._refused: dict[Hashable, None] = {}
        if not isinstance(needed, int) or isinstance(needed, bool):
            raise TypeError(f"needed must be an int, not {safe_repr(needed)}")
        if not 1 <= needed <= len(self._members):
            raise ValueError(f"needed must be from 1 to the {len(self._members)} members, not {needed}")
        self._needed = needed

    @final
    def acknowledge(self, member: Hashable) -> bool:
        """Note that `member` has acknowledged. True for the one call that completes the operation.

        A member counts once. Acknowledgements before the offer count, too: when there are enough of them, the
        offer completes the operation. Those after the end are noted, and change no result. Raises ValueError
        for an object that is no member.
        """
        return _note(self, member, self._acknowledged, self._refused)

    @final
    def refuse(self, member: Hashable) -> bool:
        """Note that `member` will not acknowledge. True for the one call that ends the operation.

        As soon as too few members are left, the operation fails with QuorumNotReached. A refusal counts as an
        acknowledgement does, before the offer and after the end, too. Of one member, the latest call counts:
        an acknowledgement replaces a refusal, and a refusal takes an acknowledgement back.
        """
        return _note(self, member, self._refused, self._acknowledged)

    @property
    def acknowledged(self) -> tuple[Hashable, ...]:
        """The members that have acknowledged, in the order in which they did."""
        return tuple(self._acknowledged)

    @property
    def refused(self) -> tuple[Hashable, ...]:
        """The members that have refused, in the order in which they did."""
        return tuple(self._refused)

    @property
    def missing(self) -> tuple[Hashable, ...]:
        """The members that have not acknowledged, in the order given, with those that have refused."""
        return tuple([member for member in self._members if member not in self._acknowledged])

    def try_complete(self) -> bool:
        if len(self._acknowledged) >= self._needed:
            return self.force_complete()
        if len(self._members) - len(self._refused) < self._needed:
            return self.fail(QuorumNotReached(_count(self), self.missing, self.refused))
        return False

    def on_complete(self) -> tuple[Hashable, ...]:
        return tuple(self._acknowledged)

    def on_expiration(self) -> None:
        raise QuorumTimedOut(_count(self, f" {limit(self)}"), self.missing, self.refused)


def _note(
    quorum: Quorum, member: Hashable, answers: dict[Hashable, None], others: dict[Hashable, None]
) -> bool:
    if member not in quorum._members:
        raise ValueError(f"{safe_repr(member)} is no member: there are {safe_repr(list(quorum._members))}")
    answers[member] = None
    others.pop(member, None)
    return quorum._state is not NEW and quorum.try_complete()


def _count(quorum: Quorum, limit: str = "") -> str:
    """What is known of the members, in words for an error."""
    count = f"{len(quorum._acknowledged)} of {len(quorum._members)} members acknowledged{limit}"
    needed = f"{quorum._needed} {'is' if quorum._needed == 1 else 'are'} needed"
    words = f"{count}, {needed}; missing: {', '.join(map(safe_repr, quorum.missing))}"
    if quorum._refused:
        words += f"; refused: {', '.join(map(safe_repr, quorum._refused))}"
    return words


def limit(operation: Operation) -> str:
    """Until when an operation that expired has waited, in words for an error."""
    if operation.timed_out:
        return f"within {max(operation.timeout or 0.0, 0.0)} s"
    return "before the purgatory was closed"
