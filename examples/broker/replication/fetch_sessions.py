"""Fetch sessions (KIP-227), a layer over ``fetch``: a fetch costs as much as there is to tell.

In a session, a request has the partitions whose fetch offset changed, and a response those with something
new. Kafka's broker reads all partitions of the session for each response. This one reads those that may have
something to tell, so that idle partitions cost nothing.
"""

import asyncio
import secrets
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.follower_request import FIRST_EPOCH, epoch_after
from examples.broker.replication.partition import Partition
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import Fetched, Fetches, FetchParams
from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.fetch import park_fetch

# Kafka's max.incremental.fetch.session.cache.slots.
MAX_SESSIONS: Final = 1000


class FetchSession:
    """The partitions of one reader, and the last watermarks sent for each. ``epoch`` counts the requests.

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


class FetchSessions:
    """One session for each follower of a broker, and the sessions of consumers (Kafka's FetchSessionCache).

    There are at most ``MAX_SESSIONS``. When there are as many, a new one takes the place of the session that
    was not used for the longest time, whose reader then opens another one.
    """

    def __init__(self, replicas: ReplicaManager) -> None:
        self.replicas = replicas
        replicas.partitions.changing = self.partition_changing
        # The least recently used one comes first.
        self._by_id: dict[int, FetchSession] = {}
        self._readers: dict[TopicPartition, dict[FetchSession, None]] = {}

    def __repr__(self) -> str:
        return f"<FetchSessions: {len(self._by_id)}>"

    async def fetch(self, params: FetchParams, session: FetchSession) -> Fetched:
        """As ``ReplicaManager.fetch``, for all partitions of a session; return those with something new.

        Raises ApiError INVALID_FETCH_SESSION_EPOCH when the session's next request came meanwhile.
        """
        epoch = session.epoch
        response = self.replicas.read(params, session.unread)
        if session.partitions and not params.are_met_by(response):
            delayed = self.replicas.delayed_fetch(params, session.unread)
            response = await park_fetch(self.replicas.fetch_purgatory, delayed, [session])
        session.check_epoch(epoch)
        incremental = session.incremental_response(response)
        for topic_partition, fetched in response.items():
            if not (fetched.batches or fetched.is_error_or_divergence):
                # What the partition is by now, and not what was read, decides whether to read it again.
                with suppress(ApiError):
                    session.set_aside(self.replicas.partitions.leader(topic_partition))
        return incremental

    def open(self, replica_id: int, partitions: Fetches) -> FetchSession:
        """Return a new session. A follower's replaces its previous one."""
        session = FetchSession(self._new_id(), replica_id, partitions, _now())
        if session.from_follower:
            for earlier in [entry for entry in self._by_id.values() if entry.replica_id == replica_id]:
                self._close(earlier)
        if len(self._by_id) == MAX_SESSIONS:
            self._close(next(iter(self._by_id.values())))
        self._by_id[session.session_id] = session
        self._add_reader(session, partitions)
        return session

    def resume(
        self,
        replica_id: int,
        session_id: int,
        epoch: int,
        changed: Fetches,
        forgotten: Collection[TopicPartition],
    ) -> FetchSession:
        """Return a session, updated by its next request.

        Raises ApiError FETCH_SESSION_ID_NOT_FOUND when the reader has no such session, and
        INVALID_FETCH_SESSION_EPOCH as ``FetchSession.update`` does.
        """
        session = self._find(replica_id, session_id)
        session.update(epoch, changed, forgotten)
        session.last_used = _now()
        self._by_id[session_id] = self._by_id.pop(session_id)
        self._add_reader(session, changed)
        self._remove_reader(session, forgotten)
        return session

    def close(self, replica_id: int, session_id: int) -> None:
        """Close a session, if the reader has it."""
        with suppress(ApiError):
            self._close(self._find(replica_id, session_id))

    def of(self, topic_partition: TopicPartition) -> list[FetchSession]:
        """Return the sessions with that partition."""
        return list(self._readers.get(topic_partition, ()))

    def partition_changing(self, partition: Partition) -> None:
        """Let the sessions with that partition read it again.

        The change comes next. So the fetches that wait are checked in the event loop's next turn, once for
        all the changes of this turn.
        """
        for session in self.of(partition.topic_partition):
            session.partition_changing(partition)
            self.replicas.fetch_purgatory.check_and_complete_threadsafe(session)

    def _find(self, replica_id: int, session_id: int) -> FetchSession:
        session = self._by_id.get(session_id)
        if session is None or session.replica_id != replica_id:
            raise ApiError(
                ErrorCode.fetch_session_id_not_found,
                f"reader {replica_id} has no session {session_id} on this broker; open a new one",
            )
        return session

    def _new_id(self) -> int:
        while True:
            # It is random, so that no reader takes the session of another one for its own after a restart.
            session_id = secrets.randbelow(2**31 - 1) + 1
            if session_id not in self._by_id:
                return session_id

    def _close(self, session: FetchSession) -> None:
        del self._by_id[session.session_id]
        self._remove_reader(session, session.partitions)

    def _add_reader(self, session: FetchSession, topic_partitions: Iterable[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            self._readers.setdefault(topic_partition, {})[session] = None

    def _remove_reader(self, session: FetchSession, topic_partitions: Iterable[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            readers = self._readers.get(topic_partition, {})
            readers.pop(session, None)
            if not readers:
                self._readers.pop(topic_partition, None)


def _now() -> float:
    return asyncio.get_running_loop().time()
