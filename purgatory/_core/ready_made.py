"""Operations that need no class of the user's own. Compiled, they run no interpreted code."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import final

from purgatory._core.operation import Operation
from purgatory._core.outcome import NEW
from purgatory._mypyc import mypyc_attr
from purgatory.errors import safe_repr


@mypyc_attr(allow_interpreted_subclasses=True)
class Unconditional(Operation):
    """An operation that its own methods end. A check does nothing to it, so it needs no key."""

    __slots__ = ()


@mypyc_attr(allow_interpreted_subclasses=True)
class Value(Unconditional):
    """A `DelayedValue` without its type parameter and without `await`."""

    __slots__ = ()

    def try_complete(self) -> bool:
        return False

    def on_expiration(self) -> None:
        keys = ", ".join(map(safe_repr, self.keys))
        awaited = f" for {keys}" if keys else ""
        raise TimeoutError(f"no value came{awaited} {_limit(self)}")


@mypyc_attr(allow_interpreted_subclasses=True)
class Quorum(Unconditional):
    """A `DelayedQuorum` without its type parameter and without `await`."""

    __slots__ = ("_acknowledged", "_members", "_needed")

    def __init__(self, needed: int, members: Iterable[Hashable], timeout: float | None) -> None:
        super().__init__(timeout)
        # Sets that keep an order.
        self._members: dict[Hashable, None] = dict.fromkeys(members)
        self._acknowledged: dict[Hashable, None] = {}
        self._needed = needed
        if not 1 <= needed <= len(self._members):
            raise ValueError(f"needed must be from 1 to the {len(self._members)} members, not {needed}")

    @final
    def acknowledge(self, member: Hashable) -> bool:
        """Note that `member` has acknowledged. True for the one call that completes the operation.

        A member counts once. Acknowledgements before the offer count, too: when there are enough of them, the
        offer completes the operation. Those after the end are noted, and change no result. Raises ValueError
        for an object that is no member.
        """
        if member not in self._members:
            raise ValueError(f"{safe_repr(member)} is no member: there are {safe_repr(list(self._members))}")
        self._acknowledged[member] = None
        return self._state is not NEW and self.try_complete()

    @property
    def acknowledged(self) -> tuple[Hashable, ...]:
        """The members that have acknowledged, in the order in which they did."""
        return tuple(self._acknowledged)

    @property
    def missing(self) -> tuple[Hashable, ...]:
        """The members that have not acknowledged, in the order given."""
        return tuple([member for member in self._members if member not in self._acknowledged])

    def try_complete(self) -> bool:
        return len(self._acknowledged) >= self._needed and self.force_complete()

    def on_complete(self) -> tuple[Hashable, ...]:
        return tuple(self._acknowledged)

    def on_expiration(self) -> None:
        count, missing = len(self._acknowledged), ", ".join(map(safe_repr, self.missing))
        raise TimeoutError(
            f"{count} of the {self._needed} members needed acknowledged {_limit(self)}; missing: {missing}"
        )


def _limit(operation: Operation) -> str:
    return f"within {operation.timeout} seconds" if operation.timed_out else "before the purgatory was closed"
