"""The delayed operations of a rebalance, which wait for the members to join."""

from collections.abc import Callable

from examples.broker.group.group import Group
from purgatory import DelayedOperation


class DelayedJoin(DelayedOperation[None]):
    """Completes once all members have rejoined, or at the rebalance timeout (Kafka's DelayedJoin).

    It waits for pending members, too, which so far have only a member id. The key is the group id.
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
    """The initial rebalance delay of an empty group, so that members do not join one by one (KIP-134).

    It always waits for its whole timeout. Then ``joined`` decides whether to wait once more.
    """

    __slots__ = ()

    def try_complete(self) -> bool:
        return self._group.is_dead and self.force_complete()
