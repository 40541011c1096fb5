"""Appends, fetches and deletions on one broker, and the three purgatories in which they wait."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Self

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import MetadataImage
from examples.broker.replication.alter_partition import AlterPartition, accept_any_isr
from examples.broker.replication.delayed_delete_records import DelayedDeleteRecords
from examples.broker.replication.delayed_fetch import DelayedFetch
from examples.broker.replication.delayed_produce import DelayedProduce, PendingAcks
from examples.broker.replication.delete_records import (
    Deleted,
    Deletions,
    PartitionDeleted,
)
from examples.broker.replication.fetch import (
    CONSUMER,
    Fetched,
    Fetches,
    FetchParams,
    PartitionFetched,
)
from examples.broker.replication.fetch_session import FetchSession
from examples.broker.replication.followers import REPLICA_LAG_TIME_MAX
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.produce import (
    ALL_ACKS,
    LEADER_ACK,
    NO_ACKS,
    Batches,
    PartitionProduced,
    Produced,
    ProduceParams,
)
from examples.broker.replication.replica_fetcher import LogOffsets
from examples.broker.storage.leader_epochs import NO_EPOCH, EpochEndOffset
from examples.broker.storage.replica import Disk
from examples.broker.storage.timestamps import NO_TIMESTAMP, TimestampAndOffset, wall_time_ms
from examples.broker.topic_partition import TopicPartition
from purgatory import Purgatory, PurgatoryError, PurgatoryStatistics
from purgatory.observer import Observer


class ReplicaManager:
    """One broker's replicas, after kafka.server.ReplicaManager.

    An append moves the log end offset and completes followers' fetches. A follower's next fetch reports its
    own log end offset, which moves the high watermark and completes produces and consumers' fetches. It also
    reports its log start offset, which completes deletions. An operation that a purgatory refuses, because
    it is full or closed, is answered as if it had timed out.
    """

    def __init__(
        self,
        partitions: HostedPartitions,
        *,
        produce: Purgatory,
        fetch: Purgatory,
        delete_records: Purgatory,
    ) -> None:
        self.partitions = partitions
        self.fetch_sessions = partitions.fetch_sessions
        self.produce_purgatory = produce
        self.fetch_purgatory = fetch
        self.delete_records_purgatory = delete_records

    def __repr__(self) -> str:
        return f"<ReplicaManager of {self.partitions!r}>"

    @classmethod
    @asynccontextmanager
    async def running(
        cls,
        broker_id: int,
        *,
        disk: Disk | None = None,
        replica_lag_time_max: float = REPLICA_LAG_TIME_MAX,
        alter_partition: AlterPartition = accept_any_isr,
        is_alive: Callable[[int], bool] = lambda broker_id: True,
        observers: Collection[Observer] = (),
    ) -> AsyncIterator[Self]:
        """Open the purgatories "produce", "fetch" and "delete records", and close them when the block ends.

        The ``observers`` observe all three.
        """
        partitions = HostedPartitions(
            broker_id,
            disk=disk,
            replica_lag_time_max=replica_lag_time_max,
            alter_partition=alter_partition,
            is_alive=is_alive,
        )
        async with (
            Purgatory("produce", observers=observers) as produce,
            Purgatory("fetch", observers=observers) as fetch,
            Purgatory("delete records", observers=observers) as delete_records,
        ):
            yield cls(partitions, produce=produce, fetch=fetch, delete_records=delete_records)

    def statistics(self) -> dict[str, PurgatoryStatistics]:
        """Return the statistics of each purgatory by its name."""
        purgatories = (self.produce_purgatory, self.fetch_purgatory, self.delete_records_purgatory)
        return {purgatory.name: purgatory.statistics() for purgatory in purgatories}

    def apply(self, image: MetadataImage, changed: Collection[TopicPartition]) -> None:
        """Lead, follow or delete the ``changed`` partitions, as the image says.

        Operations that wait for a partition that moved to another leader or was deleted complete at once.
        Nothing waits any longer for a broker that is not live.
        """
        now = _now()
        self.partitions.apply(image, changed, now)
        self._check_all(changed)
        for partition in self.partitions.led():
            if partition.maybe_increment_high_watermark(now):
                self._check_all([partition.topic_partition])
            else:
                self.delete_records_purgatory.check_and_complete(partition.topic_partition)

    async def append(self, params: ProduceParams, request: Batches) -> Produced:
        """Append one batch to each partition, and return once the required acknowledgements are there.

        With acks=all that is when the high watermark has reached the end of every batch, or at the timeout.
        With acks 0 and 1 the append to this broker's own log is enough. An error is the answer of its own
        partition alone.
        """
        if params.required_acks not in (ALL_ACKS, LEADER_ACK, NO_ACKS):
            return {entry: PartitionProduced(ErrorCode.invalid_required_acks) for entry in request}
        acks_all = params.required_acks == ALL_ACKS
        refused: Produced = {}
        appended: list[PendingAcks] = []
        moved: list[TopicPartition] = []
        now = _now()
        for topic_partition, batch in request.items():
            try:
                partition = self.partitions.leader(topic_partition)
                append_time = NO_TIMESTAMP
                if partition.has_log_append_time:
                    append_time = wall_time_ms()
                    batch = batch.appended_at(append_time)
                info = partition.append_as_leader(batch, now, acks_all=acks_all)
            except ApiError as error:
                refused[topic_partition] = PartitionProduced(error.code)
                continue
            start = partition.log.log_start_offset
            appended.append(
                PendingAcks(topic_partition, info.next_offset, info.first_offset, start, append_time)
            )
            if info.high_watermark_increased:
                moved.append(topic_partition)
        if not (acks_all and appended):
            self._check_appended(appended, moved)
            return refused | {acks.topic_partition: acks.answer(ErrorCode.none) for acks in appended}
        delayed = DelayedProduce(params.timeout, self.partitions, appended, refused)
        try:
            # Watch before the checks below: they may cause the very change that completes this operation.
            self.produce_purgatory.try_complete_else_watch(
                delayed, [acks.topic_partition for acks in appended]
            )
        except PurgatoryError:
            self._check_appended(appended, moved)
            return delayed.on_complete()
        self._check_appended(appended, moved)
        return await delayed

    async def fetch(self, params: FetchParams, request: Fetches) -> Fetched:
        """Read the partitions of the request, and wait up to ``max_wait`` seconds for ``min_bytes``.

        A follower's fetch also reports how far that follower is, which may move the high watermark.
        """
        return await self._fetch(params, request, list(request))

    async def fetch_in_session(self, params: FetchParams, session: FetchSession) -> Fetched:
        """As ``fetch``, for all partitions of the session; return those with something new.

        It costs as much as there is new. Raises ApiError INVALID_FETCH_SESSION_EPOCH when the session's next
        request came meanwhile.
        """
        epoch = session.epoch
        response = await self._fetch(params, session.unread, [session] if session.partitions else [])
        session.check_epoch(epoch)
        incremental = session.incremental_response(response)
        for topic_partition, fetched in response.items():
            if not (fetched.batches or fetched.is_error_or_divergence):
                # What the partition is by now, and not what was read, decides whether to read it again.
                with suppress(ApiError):
                    session.set_aside(self.partitions.leader(topic_partition))
        return incremental

    async def _fetch(self, params: FetchParams, request: Fetches, keys: Collection[Hashable]) -> Fetched:
        """Return the answer to the request, and watch the ``keys`` while it waits."""
        response = self.partitions.read(params, request)
        if params.from_follower:
            self._update_follower_fetch_state(params.replica_id, request, response)
        readable = sum(fetched.info.size_in_bytes for fetched in response.values())
        if (
            params.max_wait <= 0
            or not keys
            or readable >= params.min_bytes
            or any(fetched.is_error_or_divergence for fetched in response.values())
        ):
            return response
        delayed = DelayedFetch(params, request, self.partitions)
        try:
            return await self.fetch_purgatory.try_complete_else_watch(delayed, keys)
        except PurgatoryError:
            return response

    async def delete_records(self, timeout: float, request: Deletions) -> Deleted:
        """Delete the records below an offset, or all committed ones.

        Waits up to ``timeout`` seconds until no live replica has them.
        """
        refused: Deleted = {}
        deleted: dict[TopicPartition, int] = {}
        for topic_partition, before_offset in request.items():
            try:
                deleted[topic_partition] = self.partitions.leader(topic_partition).delete_records(
                    before_offset
                )
            except ApiError as error:
                refused[topic_partition] = PartitionDeleted(error.code)
        if not deleted:
            return refused
        delayed = DelayedDeleteRecords(timeout, self.partitions, dict(deleted), refused)
        try:
            return await self.delete_records_purgatory.try_complete_else_watch(delayed, list(deleted))
        except PurgatoryError:
            return delayed.on_complete()

    async def offsets(self, topic_partition: TopicPartition, leader_epoch: int) -> LogOffsets:
        """Return the log offsets of a partition that this broker leads.

        Raises ApiError as ``HostedPartitions.leader`` does.
        """
        log = self.partitions.leader(topic_partition, leader_epoch).log
        return LogOffsets(log.log_start_offset, log.log_end_offset)

    def offset_for_timestamp(
        self,
        topic_partition: TopicPartition,
        timestamp: int,
        *,
        current_leader_epoch: int = NO_EPOCH,
        replica_id: int = CONSUMER,
    ) -> TimestampAndOffset | None:
        """See ``Partition.offset_for_timestamp``.

        Raises ApiError as ``HostedPartitions.leader`` does, too.
        """
        partition = self.partitions.leader(topic_partition, current_leader_epoch)
        return partition.offset_for_timestamp(timestamp, from_follower=replica_id >= 0)

    def end_offset_for_epoch(
        self, topic_partition: TopicPartition, leader_epoch: int, *, current_leader_epoch: int = NO_EPOCH
    ) -> EpochEndOffset:
        """See ``LeaderEpochs.end_offset_for``. Raises ApiError as ``HostedPartitions.leader`` does."""
        log = self.partitions.leader(topic_partition, current_leader_epoch).log
        return log.end_offset_for_epoch(leader_epoch)

    def maybe_shrink_isr(self) -> None:
        """Remove lagging followers from the in-sync replicas. Call it every half ``replica_lag_time_max``."""
        now = _now()
        self._check_all([p.topic_partition for p in self.partitions.led() if p.maybe_shrink_isr(now)])

    def delete_old_segments(self) -> None:
        """Delete what the topics' retention does not cover. Call it every few minutes."""
        now, wall_time = _now(), wall_time_ms()
        for partition in self.partitions.led():
            if partition.delete_old_segments(wall_time):
                partition.maybe_increment_high_watermark(now)
                self._check_all([partition.topic_partition])

    def _update_follower_fetch_state(self, replica_id: int, request: Fetches, response: Fetched) -> None:
        now = _now()
        high: list[TopicPartition] = []
        low: list[TopicPartition] = []
        for topic_partition, fetched in response.items():
            # A follower that fetched in another epoch, or whose log diverges, has acknowledged nothing.
            if fetched.is_error_or_divergence:
                continue
            partition = self.partitions.leader(topic_partition)
            try:
                moved = partition.update_follower_fetch_state(
                    replica_id,
                    fetched.fetch_offset_metadata,
                    now,
                    request[topic_partition].log_start_offset,
                )
            except ApiError as error:
                response[topic_partition] = PartitionFetched(error.code)
                continue
            if moved.high:
                high.append(topic_partition)
            if moved.low:
                low.append(topic_partition)
        self._check_all(high)
        # Check the deletions alone. A follower's first fetch reports the start of every log; to try a pending
        # fetch of all those partitions once for each partition would cost quadratic time.
        for topic_partition in low:
            self.delete_records_purgatory.check_and_complete(topic_partition)

    def _check_appended(self, appended: Iterable[PendingAcks], moved: Sequence[TopicPartition]) -> None:
        self._check_all(moved)
        for acks in appended:
            if acks.topic_partition not in moved:
                self._check_fetches(acks.topic_partition)

    def _check_all(self, topic_partitions: Iterable[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            self.produce_purgatory.check_and_complete(topic_partition)
            self._check_fetches(topic_partition)
            self.delete_records_purgatory.check_and_complete(topic_partition)

    def _check_fetches(self, topic_partition: TopicPartition) -> None:
        self.fetch_purgatory.check_and_complete(topic_partition)
        for session in self.fetch_sessions.of(topic_partition):
            self.fetch_purgatory.check_and_complete(session)


def _now() -> float:
    return asyncio.get_running_loop().time()
