"""The delayed operation that waits for the SyncGroup request of every member of a generation."""

from collections.abc import Callable

from examples.broker.group.group import Group, GroupState
from purgatory import DelayedOperation


class DelayedSync(DelayedOperation[None]):
    """Completes once every member of the generation has sent SyncGroup (Kafka's DelayedSync).

    It also completes when the generation ends. At the rebalance timeout it calls ``expired``. The key is the
    group id.
    """

    __slots__ = ("_expired", "_generation_id", "_group")

    def __init__(self, timeout: float, group: Group, expired: Callable[[Group], None]) -> None:
        super().__init__(timeout)
        self._group = group
        self._generation_id = group.generation_id
        self._expired = expired

    def try_complete(self) -> bool:
        return self._is_satisfied() and self.force_complete()

    def on_expiration(self) -> None:
        # An operation that expired in the same tick may have satisfied this one since.
        if not self._is_satisfied():
            self._expired(self._group)

    def _is_satisfied(self) -> bool:
        group = self._group
        return (
            group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
            or group.generation_id != self._generation_id
            or not group.pending_sync
        )
