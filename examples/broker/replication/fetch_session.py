"""What a leader remembers of its followers' fetches, so that nobody repeats what has not changed."""

from collections.abc import Collection
from typing import Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.fetch import FetchRequest, FetchResponse, PartitionFetch
from examples.broker.topic_partition import TopicPartition

NO_SESSION: Final = 0
# In place of an epoch: a request of a new session, and one that wants none.
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
# Kafka's max.incremental.fetch.session.cache.slots.
MAX_SESSIONS: Final = 1000


def epoch_after(epoch: int) -> int:
    """Of the next request of a session; never 0 again."""
    return 1 if epoch == 2**31 - 1 else epoch + 1


class FetchSession:
    """The partitions one follower fetches, and what it was last told of each (KIP-227).

    ``epoch`` counts its requests. A follower of fifty partitions names the one that has moved, and is
    answered about the one that has news: a fetch costs what happens, not what could.
    """

    def __init__(self, session_id: int, partitions: FetchRequest) -> None:
        self.session_id = session_id
        self.epoch = FIRST_EPOCH
        self.partitions = dict(partitions)
        self._told: dict[TopicPartition, tuple[int, int]] = {}

    def __repr__(self) -> str:
        return f"<FetchSession {self.session_id} epoch={self.epoch} of {len(self.partitions)} partitions>"

    def proceed(self, epoch: int, changed: FetchRequest, forgotten: Collection[TopicPartition]) -> None:
        """Take in the next request. ApiError INVALID_FETCH_SESSION_EPOCH unless it is the next."""
        expected = epoch_after(self.epoch)
        if epoch != expected:
            raise ApiError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH, f"{self!r} expects epoch {expected}, not {epoch}"
            )
        self.epoch = epoch
        for topic_partition in forgotten:
            self.partitions.pop(topic_partition, None)
            self._told.pop(topic_partition, None)
        self.partitions.update(changed)

    def news(self, response: FetchResponse) -> FetchResponse:
        """What of it the follower has not been told: records, errors, and watermarks that have moved.

        A partition with records goes behind the others (KIP-74): whoever is first always gets one batch, so
        that a busy partition would keep a large batch behind it from ever being sent.
        """
        news: FetchResponse = {}
        for topic_partition, fetched in response.items():
            watermarks = (fetched.high_watermark, fetched.log_start_offset)
            if fetched.batches or fetched.must_be_told or self._told.get(topic_partition) != watermarks:
                news[topic_partition] = fetched
                self._told[topic_partition] = watermarks
            if fetched.batches and topic_partition in self.partitions:
                self.partitions[topic_partition] = self.partitions.pop(topic_partition)
        return news


class FetchSessions:
    """The sessions of a broker's followers: one each, the latest; the oldest goes when there are too many."""

    def __init__(self) -> None:
        self._by_replica: dict[int, FetchSession] = {}
        self._opened = 0

    def __repr__(self) -> str:
        return f"<FetchSessions of {list(self._by_replica)}>"

    def open(self, replica_id: int, partitions: FetchRequest) -> FetchSession:
        """A new session, in place of the one the follower had."""
        self._by_replica.pop(replica_id, None)
        if len(self._by_replica) == MAX_SESSIONS:
            del self._by_replica[next(iter(self._by_replica))]
        self._opened += 1
        session = self._by_replica[replica_id] = FetchSession(self._opened, partitions)
        return session

    def resume(self, replica_id: int, session_id: int) -> FetchSession:
        """The follower's session. ApiError FETCH_SESSION_ID_NOT_FOUND when that is another, or none."""
        session = self._by_replica.get(replica_id)
        if session is None or session.session_id != session_id:
            raise ApiError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"replica {replica_id} has no session {session_id} here"
            )
        return session


class FollowedSession:
    """The follower's side: what the leader knows already, and so need not be sent."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self._sent: dict[TopicPartition, PartitionFetch] = {}

    def next_request(self, wanted: FetchRequest) -> tuple[FetchRequest, list[TopicPartition]]:
        """What of ``wanted`` is new to the leader, and which partitions it is to forget."""
        changed = {entry: fetch for entry, fetch in wanted.items() if self._sent.get(entry) != fetch}
        forgotten = [entry for entry in self._sent if entry not in wanted]
        self._sent = dict(wanted)
        return changed, forgotten

    def answered(self, session_id: int) -> None:
        """The leader keeps the session under this id; or none, and then everything is to be sent anew."""
        self.session_id = session_id
        if session_id == NO_SESSION:
            self._sent = {}
            self.epoch = FIRST_EPOCH
        else:
            self.epoch = epoch_after(self.epoch)
