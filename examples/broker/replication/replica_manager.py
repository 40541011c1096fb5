"""Appends and fetches, and the two purgatories in which they wait for each other."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Self

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.delayed_fetch import DelayedFetch
from examples.broker.replication.delayed_produce import DelayedProduce, PendingAcks
from examples.broker.replication.fetch import FetchParams, FetchRequest, FetchResponse, PartitionFetched
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.partition import Partition, PartitionConfig
from examples.broker.replication.produce import (
    ALL_ACKS,
    LEADER_ACK,
    NO_ACKS,
    PartitionProduced,
    ProduceParams,
    ProduceRequest,
    ProduceResponse,
)
from examples.broker.topic_partition import TopicPartition
from purgatory import Purgatory

DEFAULT_CONFIG: Final = PartitionConfig()


class ReplicaManager:
    """One broker's partitions, after kafka.server.ReplicaManager.

    What wakes whom: an append moves the end of the log and wakes fetches; a follower's next fetch tells its
    own end, which moves the high watermark and wakes produces and consumers' fetches.
    """

    def __init__(
        self,
        broker_id: int,
        *,
        produce: Purgatory,
        fetch: Purgatory,
        config: PartitionConfig = DEFAULT_CONFIG,
    ) -> None:
        self.partitions = HostedPartitions(broker_id)
        self.produce_purgatory = produce
        self.fetch_purgatory = fetch
        self.config = config

    @classmethod
    @asynccontextmanager
    async def running(cls, broker_id: int, config: PartitionConfig = DEFAULT_CONFIG) -> AsyncIterator[Self]:
        """With its two purgatories, "produce" and "fetch", which close when the block ends."""
        async with Purgatory("produce") as produce, Purgatory("fetch") as fetch:
            yield cls(broker_id, produce=produce, fetch=fetch, config=config)

    def create_partition(self, topic_partition: TopicPartition, replica_ids: Sequence[int]) -> Partition:
        """Host a new partition, led by this broker."""
        partition = Partition(topic_partition, self.partitions.broker_id, replica_ids, self.config, _now())
        self.partitions.add(partition)
        return partition

    def delete_partition(self, topic_partition: TopicPartition) -> None:
        """Stop hosting it: whatever waits on it learns so now."""
        self.partitions.remove(topic_partition)
        self._check_all([topic_partition])

    def make_follower(self, topic_partition: TopicPartition, leader_id: int) -> None:
        """Another broker leads it from now on: whatever waits on it learns so now."""
        self.partitions.leader(topic_partition).leader_id = leader_id
        self._check_all([topic_partition])

    async def append(self, params: ProduceParams, request: ProduceRequest) -> ProduceResponse:
        """Append one batch to each partition, and answer once the acknowledgements asked for are there.

        With acks=all that is when the high watermark has passed every batch, or at the timeout; 0 and 1 ask
        for nothing beyond this broker's own log. An error is the answer of its own partition only.
        """
        if params.required_acks not in (ALL_ACKS, LEADER_ACK, NO_ACKS):
            return {entry: PartitionProduced(ErrorCode.INVALID_REQUIRED_ACKS) for entry in request}
        acks_all = params.required_acks == ALL_ACKS
        refused: ProduceResponse = {}
        appended: list[PendingAcks] = []
        moved: list[TopicPartition] = []
        now = _now()
        for topic_partition, batch in request.items():
            try:
                partition = self.partitions.leader(topic_partition)
                info = partition.append_as_leader(batch, now, acks_all=acks_all)
            except ApiError as error:
                refused[topic_partition] = PartitionProduced(error.code)
                continue
            start = partition.log.log_start_offset
            appended.append(PendingAcks(topic_partition, info.next_offset, info.first_offset, start))
            if info.high_watermark_increased:
                moved.append(topic_partition)
        if not (acks_all and appended):
            self._check_appended(appended, moved)
            return refused | {acks.topic_partition: acks.answer(ErrorCode.NONE) for acks in appended}
        delayed = DelayedProduce(params.timeout, self.partitions, appended, refused)
        # Parked before the checks, which may set off what completes it.
        self.produce_purgatory.try_complete_else_watch(delayed, [acks.topic_partition for acks in appended])
        self._check_appended(appended, moved)
        return await delayed

    async def fetch(self, params: FetchParams, request: FetchRequest) -> FetchResponse:
        """Read the partitions of the request, waiting up to ``max_wait`` seconds for ``min_bytes``.

        A follower's fetch first tells how far that follower has got, which may move the high watermark.
        """
        response = self.partitions.read(params, request)
        if params.from_follower:
            self._update_follower_fetch_state(params.replica_id, response)
        readable = sum(fetched.info.size_in_bytes for fetched in response.values())
        if (
            params.max_wait <= 0
            or not request
            or readable >= params.min_bytes
            or any(fetched.error is not ErrorCode.NONE for fetched in response.values())
        ):
            return response
        fetch_offsets = {entry: fetched.fetch_offset_metadata for entry, fetched in response.items()}
        delayed = DelayedFetch(params, request, fetch_offsets, self.partitions)
        return await self.fetch_purgatory.try_complete_else_watch(delayed, list(request))

    def maybe_shrink_isr(self) -> None:
        """Drop lagging followers from the in-sync replicas; due every half ``replica_lag_time_max``."""
        now = _now()
        self._check_all([p.topic_partition for p in self.partitions.led() if p.maybe_shrink_isr(now)])

    def _update_follower_fetch_state(self, replica_id: int, response: FetchResponse) -> None:
        now = _now()
        moved: list[TopicPartition] = []
        for topic_partition, fetched in response.items():
            if fetched.error is not ErrorCode.NONE:
                continue
            partition = self.partitions.leader(topic_partition)
            try:
                increased = partition.update_follower_fetch_state(
                    replica_id, fetched.fetch_offset_metadata, now
                )
            except ApiError as error:
                response[topic_partition] = PartitionFetched(error.code)
                continue
            if increased:
                moved.append(topic_partition)
        self._check_all(moved)

    def _check_appended(self, appended: Iterable[PendingAcks], moved: Sequence[TopicPartition]) -> None:
        self._check_all(moved)
        for acks in appended:
            if acks.topic_partition not in moved:
                self.fetch_purgatory.check_and_complete(acks.topic_partition)

    def _check_all(self, topic_partitions: Iterable[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            self.produce_purgatory.check_and_complete(topic_partition)
            self.fetch_purgatory.check_and_complete(topic_partition)


def _now() -> float:
    return asyncio.get_running_loop().time()
