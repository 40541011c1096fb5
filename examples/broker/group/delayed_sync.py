"""The wait for a generation's members to ask for their assignments."""

from collections.abc import Callable

from examples.broker.group.group import Group, GroupState
from purgatory import DelayedOperation


class DelayedSync(DelayedOperation[None]):
    """Complete once every member of the generation has sent SyncGroup (kafka's DelayedSync).

    Also when the generation is over. At the rebalance timeout those that have not are ``late``. Keyed by
    group id.
    """

    __slots__ = ("_generation_id", "_group", "_late")

    def __init__(self, timeout: float, group: Group, late: Callable[[Group], None]) -> None:
        super().__init__(timeout)
        self._group = group
        self._generation_id = group.generation_id
        self._late = late

    def try_complete(self) -> bool:
        return self._is_satisfied() and self.force_complete()

    def on_expiration(self) -> None:
        # What expired in the same tick may have satisfied it since.
        if not self._is_satisfied():
            self._late(self._group)

    def _is_satisfied(self) -> bool:
        group = self._group
        return (
            group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
            or group.generation_id != self._generation_id
            or not group.pending_sync
        )
