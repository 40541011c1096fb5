"""Appends, fetches and deletions on one broker, and the three purgatories in which they wait."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Self

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import MetadataImage
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_fetcher import LogOffsets
from examples.broker.replication.requests import (
    ALL_ACKS,
    LEADER_ACK,
    NO_ACKS,
    Batches,
    Deletions,
    Fetched,
    Fetches,
    FetchParams,
    PartitionFetched,
    ProduceParams,
)
from examples.broker.storage.record_batch import NO_TIMESTAMP, wall_time_ms
from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.delete_records import (
    DelayedDeleteRecords,
    Deleted,
    PartitionDeleted,
    check_deletions,
    park_deletion,
)
from examples.broker.waits.fetch import DelayedFetch, check_fetches, park_fetch
from examples.broker.waits.produce import (
    DelayedProduce,
    PartitionProduced,
    PendingAcks,
    Produced,
    check_produces,
    park_produce,
)
from purgatory import Purgatory, PurgatoryStatistics
from purgatory.observer import Observer


class ReplicaManager:
    """One broker's replicas, after kafka.server.ReplicaManager.

    An append moves the log end offset and completes followers' fetches. A follower's next fetch reports its
    own log end offset, which moves the high watermark and completes produces and consumers' fetches. It also
    reports its log start offset, which completes deletions.
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
        self.produce_purgatory = produce
        self.fetch_purgatory = fetch
        self.delete_records_purgatory = delete_records

    def __repr__(self) -> str:
        return f"<ReplicaManager of {self.partitions!r}>"

    @classmethod
    @asynccontextmanager
    async def running(
        cls, partitions: HostedPartitions, *, observers: Collection[Observer] = ()
    ) -> AsyncIterator[Self]:
        """Open the purgatories "produce", "fetch" and "delete records", and close them when the block ends.

        The ``observers`` observe all three.
        """
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
                check_deletions(self.delete_records_purgatory, partition.topic_partition)

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
                first_offset = partition.append_as_leader(batch, acks_all=acks_all)
            except ApiError as error:
                refused[topic_partition] = PartitionProduced(error.code)
                continue
            end, start = first_offset + batch.record_count, partition.log.log_start_offset
            appended.append(PendingAcks(topic_partition, end, first_offset, start, append_time))
            if partition.maybe_increment_high_watermark(now):
                moved.append(topic_partition)
        if not (acks_all and appended):
            self._check_appended(appended, moved)
            return refused | {acks.topic_partition: acks.answer(ErrorCode.none) for acks in appended}
        # Park it before the checks below: they may cause the very change that completes it.
        delayed = DelayedProduce(params.timeout, appended, refused, self.partitions.acknowledged)
        park_produce(self.produce_purgatory, delayed)
        self._check_appended(appended, moved)
        return await delayed

    async def fetch(self, params: FetchParams, request: Fetches) -> Fetched:
        """Read the partitions of the request, and wait up to ``max_wait`` seconds for ``min_bytes``.

        A follower's fetch also reports how far that follower is, which may move the high watermark.
        """
        response = self.read(params, request)
        if not request or params.are_met_by(response):
            return response
        return await park_fetch(self.fetch_purgatory, self.delayed_fetch(params, request), list(request))

    def read(self, params: FetchParams, request: Fetches) -> Fetched:
        """Read the partitions of a fetch without a wait, and take note of how far a follower is."""
        response = self.partitions.read(params, request)
        if params.from_follower:
            self._update_follower_fetch_state(params.replica_id, request, response)
        return response

    def delayed_fetch(self, params: FetchParams, request: Fetches) -> DelayedFetch[Fetched]:
        """Return the operation of a fetch that found too little. Its request may change while it waits."""
        readable = partial(self.partitions.readable_bytes, params, request)
        read = partial(self.partitions.read, params, request)
        return DelayedFetch(params.max_wait, params.min_bytes, readable, read)

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
        delayed = DelayedDeleteRecords(
            timeout, deleted, refused, lambda entry: self.partitions.leader(entry).low_watermark
        )
        return await park_deletion(self.delete_records_purgatory, delayed)

    async def offsets(self, topic_partition: TopicPartition, leader_epoch: int) -> LogOffsets:
        """Return the log offsets of a partition that this broker leads.

        Raises ApiError as ``HostedPartitions.leader`` does.
        """
        log = self.partitions.leader(topic_partition, leader_epoch).log
        return LogOffsets(log.log_start_offset, log.log_end_offset)

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
                wanted = request[topic_partition]
                moved = partition.update_follower_fetch_state(
                    replica_id, wanted.fetch_offset, now, wanted.log_start_offset
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
            check_deletions(self.delete_records_purgatory, topic_partition)

    def _check_appended(self, appended: Iterable[PendingAcks], moved: Sequence[TopicPartition]) -> None:
        self._check_all(moved)
        for acks in appended:
            if acks.topic_partition not in moved:
                check_fetches(self.fetch_purgatory, acks.topic_partition)

    def _check_all(self, topic_partitions: Iterable[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            check_produces(self.produce_purgatory, topic_partition)
            check_fetches(self.fetch_purgatory, topic_partition)
            check_deletions(self.delete_records_purgatory, topic_partition)


def _now() -> float:
    return asyncio.get_running_loop().time()
