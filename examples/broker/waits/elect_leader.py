"""An election waits until this broker knows the new leaders."""

from collections.abc import Callable, Mapping

from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.parking import park
from purgatory import DelayedOperation, Purgatory


class DelayedElectLeader(DelayedOperation[frozenset[TopicPartition]]):
    """Completes once this broker knows the leader of every election (kafka.server.DelayedElectLeader).

    ``pending`` has the leader epoch of each election. ``leader_epoch`` tells the epoch that this broker
    knows, and -1 for a partition that it does not know. A later epoch counts, too, since the leader may have
    failed again. The result has the partitions that still wait at the timeout.
    """

    __slots__ = ("_leader_epoch", "pending")

    def __init__(
        self,
        timeout: float,
        pending: Mapping[TopicPartition, int],
        leader_epoch: Callable[[TopicPartition], int],
    ) -> None:
        super().__init__(timeout)
        self.pending = pending
        self._leader_epoch = leader_epoch

    def try_complete(self) -> bool:
        self.pending = {
            entry: epoch for entry, epoch in self.pending.items() if self._leader_epoch(entry) < epoch
        }
        return not self.pending and self.force_complete()

    def on_complete(self) -> frozenset[TopicPartition]:
        return frozenset(self.pending)


def park_election(elections: Purgatory, election: DelayedElectLeader) -> DelayedElectLeader:
    """Have an election wait for each partition that has a new leader."""
    return park(elections, election, list(election.pending))


def check_elections(elections: Purgatory, topic_partition: TopicPartition) -> None:
    """Call it when this broker knows another state of the partition."""
    elections.check_and_complete(topic_partition)
