"""A new generation of a group waits until all its members have asked for their assignment."""

from collections.abc import Callable

from examples.broker.waits.parking import park
from purgatory import DelayedOperation, Purgatory


class DelayedSync(DelayedOperation[None]):
    """Completes once all members have sent SyncGroup, or the generation is over (Kafka's DelayedSync).

    At the rebalance timeout it calls ``expired``, which removes the members that have sent none.
    """

    __slots__ = ("_expired", "_is_complete", "group_id")

    def __init__(
        self, timeout: float, group_id: str, is_complete: Callable[[], bool], expired: Callable[[], None]
    ) -> None:
        super().__init__(timeout)
        self.group_id = group_id
        self._is_complete = is_complete
        self._expired = expired

    def try_complete(self) -> bool:
        return self._is_complete() and self.force_complete()

    def on_expiration(self) -> None:
        self._expired()


def park_sync(syncs: Purgatory, sync: DelayedSync) -> None:
    """Have a generation wait for its members."""
    park(syncs, sync, [sync.group_id])


def check_sync(syncs: Purgatory, group_id: str) -> None:
    """Call it when a member has sent SyncGroup, and when the generation is over."""
    syncs.check_and_complete(group_id)
