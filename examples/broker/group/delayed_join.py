"""The waits of a rebalance for the members to join."""

from collections.abc import Callable

from examples.broker.group.group import Group
from purgatory import DelayedOperation


class DelayedJoin(DelayedOperation[None]):
    """Complete once all members have rejoined, or at the rebalance timeout (kafka's DelayedJoin).

    Newcomers that have only been given an id so far are waited for as well. Keyed by group id.
    """

    __slots__ = ("_group", "_joined")

    def __init__(self, timeout: float, group: Group, joined: Callable[[Group], None]) -> None:
        super().__init__(timeout)
        self._group = group
        self._joined = joined

    def try_complete(self) -> bool:
        return (self._group.is_dead or self._group.has_all_members_joined) and self.force_complete()

    def on_complete(self) -> None:
        if not self._group.is_dead:
            self._joined(self._group)


class InitialDelayedJoin(DelayedJoin):
    """The wait of an empty group for more members, so that they do not rebalance one by one (KIP-134).

    It goes on to its end whoever has joined. ``joined`` decides whether to wait once more.
    """

    __slots__ = ()

    def try_complete(self) -> bool:
        return self._group.is_dead and self.force_complete()
