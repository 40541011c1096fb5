"""Incremental fetch sessions (KIP-227): requests and responses have only what changed since the last one."""

from collections.abc import Collection
from typing import Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.fetch import FetchRequest, FetchResponse, PartitionFetch
from examples.broker.topic_partition import TopicPartition

NO_SESSION: Final = 0
# Session epochs with a meaning of their own: a request for a new session, and one for no session.
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
# Kafka's max.incremental.fetch.session.cache.slots.
MAX_SESSIONS: Final = 1000


def epoch_after(epoch: int) -> int:
    """Return the epoch of the next request of a session. It starts over at 1, since 0 is ``FIRST_EPOCH``."""
    return 1 if epoch == 2**31 - 1 else epoch + 1


class FetchSession:
    """The leader's side of a session: the partitions of one follower, and the last watermarks sent for each.

    ``epoch`` counts the requests. A request has the partitions whose fetch offset changed, and a response
    those with records or changed watermarks. So a fetch costs as much as there is to tell, however many
    partitions the follower has.
    """

    def __init__(self, session_id: int, partitions: FetchRequest) -> None:
        self.session_id = session_id
        self.epoch = FIRST_EPOCH
        self.partitions = dict(partitions)
        self._sent_watermarks: dict[TopicPartition, tuple[int, int]] = {}

    def __repr__(self) -> str:
        return f"<FetchSession {self.session_id} epoch={self.epoch} of {len(self.partitions)} partitions>"

    def update(self, epoch: int, changed: FetchRequest, forgotten: Collection[TopicPartition]) -> None:
        """Apply the next request. Raises ApiError INVALID_FETCH_SESSION_EPOCH when its epoch is not next."""
        expected = epoch_after(self.epoch)
        if epoch != expected:
            raise ApiError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH, f"{self!r} expects epoch {expected}, not {epoch}"
            )
        self.epoch = epoch
        for topic_partition in forgotten:
            self.partitions.pop(topic_partition, None)
            self._sent_watermarks.pop(topic_partition, None)
        self.partitions.update(changed)

    def incremental_response(self, response: FetchResponse) -> FetchResponse:
        """Return the partitions with records, with an error, or with watermarks that moved.

        A partition with records moves to the end of the session's order (KIP-74). The first partition of a
        fetch always gets one batch; without the move, a busy first partition would keep a large batch of
        another one from ever being sent.
        """
        incremental: FetchResponse = {}
        for topic_partition, fetched in response.items():
            watermarks = (fetched.high_watermark, fetched.log_start_offset)
            has_news = fetched.batches or fetched.is_error_or_divergence
            if has_news or self._sent_watermarks.get(topic_partition) != watermarks:
                incremental[topic_partition] = fetched
                self._sent_watermarks[topic_partition] = watermarks
            if fetched.batches and topic_partition in self.partitions:
                self.partitions[topic_partition] = self.partitions.pop(topic_partition)
        return incremental


class FetchSessions:
    """The sessions of a broker's followers, one for each follower.

    Above ``MAX_SESSIONS`` the oldest session is dropped.
    """

    def __init__(self) -> None:
        self._by_replica: dict[int, FetchSession] = {}
        self._opened = 0

    def __repr__(self) -> str:
        return f"<FetchSessions of {list(self._by_replica)}>"

    def open(self, replica_id: int, partitions: FetchRequest) -> FetchSession:
        """Return a new session, which replaces the follower's previous one."""
        self._by_replica.pop(replica_id, None)
        if len(self._by_replica) == MAX_SESSIONS:
            del self._by_replica[next(iter(self._by_replica))]
        self._opened += 1
        session = self._by_replica[replica_id] = FetchSession(self._opened, partitions)
        return session

    def resume(self, replica_id: int, session_id: int) -> FetchSession:
        """Return the follower's session.

        Raises ApiError FETCH_SESSION_ID_NOT_FOUND when it has another id.
        """
        session = self._by_replica.get(replica_id)
        if session is None or session.session_id != session_id:
            raise ApiError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                f"replica {replica_id} has no session {session_id} on this broker; open a new one",
            )
        return session


class FetchSessionHandler:
    """The follower's side of a session: what it has sent to the leader (Kafka's FetchSessionHandler)."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self._sent: dict[TopicPartition, PartitionFetch] = {}

    def next_request(self, wanted: FetchRequest) -> tuple[FetchRequest, list[TopicPartition]]:
        """Return the partitions of ``wanted`` that changed, and those that the leader has to forget."""
        changed = {entry: fetch for entry, fetch in wanted.items() if self._sent.get(entry) != fetch}
        forgotten = [entry for entry in self._sent if entry not in wanted]
        self._sent = dict(wanted)
        return changed, forgotten

    def handle_response(self, session_id: int) -> None:
        """Record the session id of a response. After ``NO_SESSION`` the next request has all partitions."""
        self.session_id = session_id
        if session_id == NO_SESSION:
            self._sent = {}
            self.epoch = FIRST_EPOCH
        else:
            self.epoch = epoch_after(self.epoch)
