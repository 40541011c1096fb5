"""What a follower asks of its leader, and what of it the leader knows already."""

from collections.abc import Iterable
from typing import Final

from examples.broker.replication.requests import Fetches, PartitionFetch
from examples.broker.topic_partition import TopicPartition

NO_SESSION: Final = 0
# Session epochs with a meaning of their own: a request for a new session, and one for no session.
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1


def epoch_after(epoch: int) -> int:
    """Return the epoch of the next request of a session. It starts over at 1, since 0 is ``FIRST_EPOCH``."""
    return 1 if epoch == 2**31 - 1 else epoch + 1


class FollowerRequest(dict[TopicPartition, PartitionFetch]):
    """A fetch request that changes from one fetch of a follower to the next.

    It notes which partitions changed, so that a fetch in a session costs nothing for the others. A leader
    without sessions takes it for the whole request, which it is.
    """

    def __init__(self, wanted: Fetches | None = None) -> None:
        super().__init__(wanted or {})
        # In the order of the changes.
        self._changed: dict[TopicPartition, None] = dict.fromkeys(self)

    def want(self, topic_partition: TopicPartition, wanted: PartitionFetch) -> None:
        if self.get(topic_partition) != wanted:
            self[topic_partition] = wanted
            self._changed[topic_partition] = None

    def leave_out(self, topic_partition: TopicPartition) -> None:
        if self.pop(topic_partition, None) is not None:
            self._changed[topic_partition] = None

    def move_to_end(self, topic_partition: TopicPartition) -> None:
        """Let the leader read a partition after all others."""
        self[topic_partition] = self.pop(topic_partition)

    def take_changes(self) -> tuple[Fetches, list[TopicPartition]]:
        """Return the partitions that changed since the last call, and those that were left out."""
        taken: Iterable[TopicPartition] = self._changed
        self._changed = {}
        changed = {entry: self[entry] for entry in taken if entry in self}
        return changed, [entry for entry in taken if entry not in self]


class FetchSessionHandler:
    """The follower's side of a fetch session (Kafka's FetchSessionHandler)."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH

    def next_request(self, wanted: FollowerRequest) -> tuple[Fetches, list[TopicPartition]]:
        """Return the partitions of ``wanted`` that changed, and those that the leader has to forget."""
        changed, forgotten = wanted.take_changes()
        return (dict(wanted), []) if self.epoch == FIRST_EPOCH else (changed, forgotten)

    def handle_response(self, session_id: int) -> None:
        """Record the session id of a response. After ``NO_SESSION`` the next request has all partitions."""
        self.session_id = session_id
        self.epoch = FIRST_EPOCH if session_id == NO_SESSION else epoch_after(self.epoch)
