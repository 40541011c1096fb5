"""Incremental fetch sessions (KIP-227): requests and responses have only what changed since the last one."""

from collections.abc import Collection
from typing import Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.fetch import Fetched, Fetches
from examples.broker.replication.follower_request import FollowerRequest
from examples.broker.replication.partition import Partition
from examples.broker.topic_partition import TopicPartition

NO_SESSION: Final = 0
# Session epochs with a meaning of their own: a request for a new session, and one for no session.
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1


def epoch_after(epoch: int) -> int:
    """Return the epoch of the next request of a session. It starts over at 1, since 0 is ``FIRST_EPOCH``."""
    return 1 if epoch == 2**31 - 1 else epoch + 1


class FetchSession:
    """The leader's side of a session: the partitions of one reader, and the last watermarks sent for each.

    ``epoch`` counts the requests. A request has the partitions whose fetch offset changed, and a response
    those with records or changed watermarks. Kafka's broker reads all partitions of the session for each
    response. This one reads those in ``unread``, so a fetch costs as much as there is to tell, however many
    partitions the reader has.

    A partition leaves ``unread`` when its reader knows all of it (``set_aside``), and comes back when it is
    about to change (``partition_changing``) or when the reader asks for something else (``update``). So a
    read of any other partition would return nothing. ``unread`` is in the order in which to read.
    """

    def __init__(self, session_id: int, replica_id: int, partitions: Fetches, now: float) -> None:
        self.session_id = session_id
        self.replica_id = replica_id
        self.epoch = FIRST_EPOCH
        self.partitions = dict(partitions)
        self.unread = dict(partitions)
        self.last_used = now
        self._sent_watermarks: dict[TopicPartition, tuple[int, int]] = {}

    def __repr__(self) -> str:
        return (
            f"<FetchSession {self.session_id} epoch={self.epoch} of {len(self.partitions)} partitions,"
            f" {len(self.unread)} unread>"
        )

    @property
    def from_follower(self) -> bool:
        return self.replica_id >= 0

    def check_epoch(self, epoch: int) -> None:
        """Raise ApiError INVALID_FETCH_SESSION_EPOCH unless this is the epoch of the latest request."""
        if epoch != self.epoch:
            raise ApiError(
                ErrorCode.invalid_fetch_session_epoch, f"{self!r} is past the request of epoch {epoch}"
            )

    def update(self, epoch: int, changed: Fetches, forgotten: Collection[TopicPartition]) -> None:
        """Apply the next request. Raises ApiError INVALID_FETCH_SESSION_EPOCH when its epoch is not next."""
        expected = epoch_after(self.epoch)
        if epoch != expected:
            raise ApiError(
                ErrorCode.invalid_fetch_session_epoch, f"{self!r} expects epoch {expected}, not {epoch}"
            )
        self.epoch = epoch
        for topic_partition in forgotten:
            self.partitions.pop(topic_partition, None)
            self.unread.pop(topic_partition, None)
            self._sent_watermarks.pop(topic_partition, None)
        self.partitions.update(changed)
        self.unread.update(changed)

    def incremental_response(self, response: Fetched) -> Fetched:
        """Return the partitions with records, with an error, or with watermarks that moved.

        A partition with records moves to the end of the session's order (KIP-74). The first partition of a
        fetch always gets one batch; without the move, a busy first partition would keep a large batch of
        another one from ever being sent.
        """
        incremental: Fetched = {}
        for topic_partition, fetched in response.items():
            watermarks = (fetched.high_watermark, fetched.log_start_offset)
            has_news = fetched.batches or fetched.is_error_or_divergence
            if has_news or self._sent_watermarks.get(topic_partition) != watermarks:
                incremental[topic_partition] = fetched
                self._sent_watermarks[topic_partition] = watermarks
            if fetched.batches and topic_partition in self.unread:
                self.unread[topic_partition] = self.unread.pop(topic_partition)
        return incremental

    def set_aside(self, partition: Partition) -> None:
        """Do not read a partition until it changes, if its reader knows all that there is."""
        topic_partition = partition.topic_partition
        known = (partition.high_watermark, partition.log.log_start_offset)
        wanted = self.unread.get(topic_partition)
        if (
            wanted is not None
            and self._sent_watermarks.get(topic_partition) == known
            and partition.has_nothing_new_for(self.replica_id, wanted)
        ):
            del self.unread[topic_partition]

    def partition_changing(self, partition: Partition) -> None:
        """Read a partition of this session again, since it is about to change.

        If it was set aside, the follower's fetches count for it up to the latest one.
        """
        topic_partition = partition.topic_partition
        if topic_partition not in self.unread:
            self.unread[topic_partition] = self.partitions[topic_partition]
            partition.record_idle_fetches(self.replica_id, self.last_used)


class FetchSessionHandler:
    """The follower's side of a session: what its leader knows already (Kafka's FetchSessionHandler)."""

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
