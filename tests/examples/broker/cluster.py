"""A broker under test, and what its clients do in one line each."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TypeVar

from examples.broker.replication.fetch import FetchParams, FetchResponse, PartitionFetch
from examples.broker.replication.partition import Partition, PartitionConfig
from examples.broker.replication.produce import ALL_ACKS, ProduceParams, ProduceResponse
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.storage.segment import RecordBatch
from examples.broker.topic_partition import TopicPartition

R = TypeVar("R")

BATCH_RECORDS, BATCH_BYTES, SEGMENT_BYTES = 10, 40, 400
CONFIG = PartitionConfig(SEGMENT_BYTES, min_insync_replicas=2, replica_lag_time_max=10)


class Cluster:
    """Broker 0 leads; the tests play the followers 1 and 2. A batch is 10 records, 40 bytes."""

    def __init__(self, broker: ReplicaManager) -> None:
        self.broker = broker

    def partition(self, topic_partition: TopicPartition) -> Partition:
        return self.broker.partitions.leader(topic_partition)

    def create(self, *partitions: int, replicas: int = 3) -> tuple[TopicPartition, ...]:
        created = tuple(TopicPartition("events", partition) for partition in partitions)
        for topic_partition in created:
            self.broker.create_partition(topic_partition, range(replicas))
        return created

    async def produce(
        self, *topic_partitions: TopicPartition, acks: int = ALL_ACKS, within: float = 30
    ) -> ProduceResponse:
        batch = RecordBatch(BATCH_RECORDS, b"x" * BATCH_BYTES)
        return await self.broker.append(ProduceParams(acks, within), dict.fromkeys(topic_partitions, batch))

    async def consume(
        self,
        offsets: Mapping[TopicPartition, int],
        *,
        min_bytes: int = 1,
        max_wait: float = 30,
        most: int = 10_000,
    ) -> FetchResponse:
        params = FetchParams(min_bytes=min_bytes, max_wait=max_wait)
        return await self.broker.fetch(
            params, {entry: PartitionFetch(at, most) for entry, at in offsets.items()}
        )

    async def follow(
        self,
        replica_id: int,
        offsets: Mapping[TopicPartition, int],
        *,
        max_wait: float = 0,
        most: int = 10_000,
    ) -> FetchResponse:
        params = FetchParams(replica_id=replica_id, max_wait=max_wait)
        return await self.broker.fetch(
            params, {entry: PartitionFetch(at, most) for entry, at in offsets.items()}
        )

    async def replicate(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Both followers tell that they have everything below these offsets."""
        for replica_id in (1, 2):
            await self.follow(replica_id, offsets)

    @staticmethod
    async def start(request: Coroutine[None, None, R]) -> asyncio.Task[R]:
        """Send a request, and return when it has been answered or waits."""
        task = asyncio.create_task(request)
        await asyncio.sleep(0)
        return task
