"""A broker under test, which leads its partitions, and the requests of its clients."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from examples.broker.metadata import MetadataImage, PartitionState, TopicConfig, TopicImage
from examples.broker.replication.fetch_sessions import FetchSessions
from examples.broker.replication.partition import Partition
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import ALL_ACKS, Fetched, FetchParams, PartitionFetch, ProduceParams
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.produce import Produced

R = TypeVar("R")

BATCH_RECORDS, BATCH_BYTES, SEGMENT_BYTES = 10, 40, 400
REPLICA_LAG_TIME_MAX = 10
CONFIG = TopicConfig(min_insync_replicas=2, segment_bytes=SEGMENT_BYTES)
TOPIC_ID = UUID(int=1)


def image_of(
    states: Iterable[PartitionState],
    config: TopicConfig = CONFIG,
    topic_id: UUID = TOPIC_ID,
    name: str = "events",
) -> MetadataImage:
    """Return an image with one topic."""
    return MetadataImage(topics={name: TopicImage(name, topic_id, tuple(states), config)})


def events(partition: int = 0) -> TopicPartition:
    return TopicPartition("events", partition)


async def soon(answer: asyncio.Task[R]) -> R:
    """The answer to a request, which comes before the request's timeout."""
    async with asyncio.timeout(1):
        return await answer


class Cluster:
    """Broker 0 leads; the tests act as the followers 1 and 2. A batch has 10 records and 40 bytes."""

    def __init__(self, broker: ReplicaManager) -> None:
        self.broker = broker
        self.sessions = FetchSessions(broker)
        self.states: list[PartitionState] = []

    def partition(self, topic_partition: TopicPartition) -> Partition:
        return self.broker.partitions.leader(topic_partition)

    @property
    def pending(self) -> int:
        """The number of requests that wait at the broker."""
        return sum(figures.pending for figures in self.broker.statistics().values())

    def create(self, *partitions: int, replicas: int = 3) -> tuple[TopicPartition, ...]:
        """Create the partitions 0, 1, ... in that order, led by broker 0."""
        assert partitions == tuple(range(len(partitions)))
        replica_ids = tuple(range(replicas))
        self.states = [PartitionState(replica_ids, replica_ids, leader=0) for _ in partitions]
        created = tuple(events(partition) for partition in partitions)
        self.broker.apply(self.image, created)
        return created

    @property
    def image(self) -> MetadataImage:
        return image_of(self.states)

    def lead_by(self, topic_partition: TopicPartition, leader: int) -> None:
        """Let another broker lead the partition, or the same one in a new leader epoch."""
        known = self.broker.partitions.get(topic_partition)
        assert known is not None
        self.states[topic_partition.partition] = known.state.led_by(leader)
        self.broker.apply(self.image, [topic_partition])

    def delete(self, topic_partition: TopicPartition) -> None:
        """Remove this broker's replica of the partition."""
        index = topic_partition.partition
        self.states[index] = replace(self.states[index], replicas=(1, 2), in_sync=(1, 2), leader=1)
        self.broker.apply(self.image, [topic_partition])

    async def produce(
        self, *topic_partitions: TopicPartition, acks: int = ALL_ACKS, within: float = 30
    ) -> Produced:
        batch = RecordBatch(BATCH_RECORDS, b"x" * BATCH_BYTES)
        return await self.broker.append(ProduceParams(acks, within), dict.fromkeys(topic_partitions, batch))

    async def consume(
        self,
        offsets: Mapping[TopicPartition, int],
        *,
        min_bytes: int = 1,
        max_wait: float = 30,
        most: int = 10_000,
    ) -> Fetched:
        return await self._fetch(FetchParams(min_bytes=min_bytes, max_wait=max_wait), offsets, most)

    async def follow(
        self, replica_id: int, offsets: Mapping[TopicPartition, int], *, max_wait: float = 0
    ) -> Fetched:
        return await self._fetch(FetchParams(replica_id, max_wait=max_wait), offsets)

    async def _fetch(
        self, params: FetchParams, offsets: Mapping[TopicPartition, int], most: int = 10_000
    ) -> Fetched:
        wanted = {entry: PartitionFetch(at, most) for entry, at in offsets.items()}
        return await self.broker.fetch(params, wanted)

    async def replicate(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Let both followers fetch from these offsets, which acknowledges the records below."""
        for replica_id in (1, 2):
            await self.follow(replica_id, offsets)

    @staticmethod
    async def start(request: Coroutine[None, None, R]) -> asyncio.Task[R]:
        """Start a request, and return when it is answered or waits."""
        task = asyncio.create_task(request)
        await asyncio.sleep(0)
        return task
