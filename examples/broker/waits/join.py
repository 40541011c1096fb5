"""A rebalance waits until all members of the group have joined."""

from collections.abc import Callable

from examples.broker.waits.parking import park
from purgatory import DelayedOperation, Purgatory


class DelayedJoin(DelayedOperation[None]):
    """Completes once all members have joined, or at the rebalance timeout (Kafka's DelayedJoin).

    Then it calls ``joined``, which answers the members that have. The first rebalance of a group waits for
    its whole timeout, so that members do not join one by one (KIP-134, Kafka's InitialDelayedJoin): its
    ``is_complete`` is False until the group is dead.
    """

    __slots__ = ("_is_complete", "_joined", "group_id")

    def __init__(
        self, timeout: float, group_id: str, is_complete: Callable[[], bool], joined: Callable[[], None]
    ) -> None:
        super().__init__(timeout)
        self.group_id = group_id
        self._is_complete = is_complete
        self._joined = joined

    def try_complete(self) -> bool:
        return self._is_complete() and self.force_complete()

    def on_complete(self) -> None:
        self._joined()


def park_join(joins: Purgatory, join: DelayedJoin) -> None:
    """Have a rebalance wait for the members."""
    park(joins, join, [join.group_id])


def check_join(joins: Purgatory, group_id: str) -> None:
    """Call it when a member has joined or left, and when the broker no longer coordinates the group."""
    joins.check_and_complete(group_id)
