"""The fetch sessions of a broker's readers, and which of them a change of a partition concerns."""

import secrets
from collections.abc import Collection, Iterable
from typing import Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.fetch import Fetches
from examples.broker.replication.fetch_session import FetchSession
from examples.broker.replication.partition import Partition
from examples.broker.topic_partition import TopicPartition

# Kafka's max.incremental.fetch.session.cache.slots, and min.incremental.fetch.session.eviction.ms in seconds.
MAX_SESSIONS: Final = 1000
EVICTION: Final = 120.0


class FetchSessions:
    """One session for each follower, and the sessions of consumers (Kafka's FetchSessionCache).

    There are at most ``MAX_SESSIONS``. When there are as many, a follower takes the place of the session that
    was not used for the longest time. A consumer does so only when that was not used for ``EVICTION``
    seconds; otherwise it gets none.
    """

    def __init__(self) -> None:
        # The least recently used one comes first.
        self._by_id: dict[int, FetchSession] = {}
        self._of_follower: dict[int, FetchSession] = {}
        self._readers: dict[TopicPartition, dict[FetchSession, None]] = {}

    def __repr__(self) -> str:
        return f"<FetchSessions: {len(self._by_id)}, {len(self._of_follower)} of them of followers>"

    def open(self, replica_id: int, partitions: Fetches, now: float) -> FetchSession | None:
        """Return a new session; None without a place for it. A follower's replaces its previous one."""
        session = FetchSession(self._new_id(), replica_id, partitions, now)
        if replica_id in self._of_follower:
            self._close(self._of_follower[replica_id])
        if len(self._by_id) == MAX_SESSIONS:
            oldest = next(iter(self._by_id.values()))
            if not session.from_follower and now - oldest.last_used < EVICTION:
                return None
            self._close(oldest)
        self._by_id[session.session_id] = session
        if session.from_follower:
            self._of_follower[replica_id] = session
        self._add_reader(session, partitions)
        return session

    def resume(
        self,
        replica_id: int,
        session_id: int,
        epoch: int,
        changed: Fetches,
        forgotten: Collection[TopicPartition],
        now: float,
    ) -> FetchSession:
        """Return a session, updated by its next request.

        Raises ApiError FETCH_SESSION_ID_NOT_FOUND when the reader has no such session, and
        INVALID_FETCH_SESSION_EPOCH as ``FetchSession.update`` does.
        """
        session = self._find(replica_id, session_id)
        if session is None:
            raise ApiError(
                ErrorCode.fetch_session_id_not_found,
                f"reader {replica_id} has no session {session_id} on this broker; open a new one",
            )
        session.update(epoch, changed, forgotten)
        session.last_used = now
        self._by_id[session_id] = self._by_id.pop(session_id)
        self._add_reader(session, changed)
        self._remove_reader(session, forgotten)
        return session

    def close(self, replica_id: int, session_id: int) -> None:
        """Close a session, if the reader has it."""
        session = self._find(replica_id, session_id)
        if session is not None:
            self._close(session)

    def of(self, topic_partition: TopicPartition) -> list[FetchSession]:
        """Return the sessions with that partition."""
        return list(self._readers.get(topic_partition, ()))

    def partition_changing(self, partition: Partition) -> None:
        """Let the sessions with that partition read it again."""
        for session in self._readers.get(partition.topic_partition, ()):
            session.partition_changing(partition)

    def _find(self, replica_id: int, session_id: int) -> FetchSession | None:
        session = self._by_id.get(session_id)
        return session if session is not None and session.replica_id == replica_id else None

    def _new_id(self) -> int:
        while True:
            # It is random, so that no reader takes the session of another one for its own after a restart.
            session_id = secrets.randbelow(2**31 - 1) + 1
            if session_id not in self._by_id:
                return session_id

    def _close(self, session: FetchSession) -> None:
        del self._by_id[session.session_id]
        if session.from_follower:
            del self._of_follower[session.replica_id]
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
