"""The replica fetcher: fetches from a leader in a loop, and appends the records to its own replicas."""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

import anyio
from anyio.lowlevel import checkpoint

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.fetch import (
    FetchParams,
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionFetched,
)
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.partition import Partition
from examples.broker.topic_partition import TopicPartition

# Kafka's replica.fetch.response.max.bytes.
MAX_BYTES: Final = 10 << 20
# Seconds. A tenth of Kafka's replica.fetch.backoff.ms, since the network between the brokers is fast.
BACKOFF: Final = 0.1


class LogOffsets(NamedTuple):
    """The log start offset and the log end offset."""

    start: int
    end: int


class Leader(Protocol):
    """The requests of a follower to its leader, which is in this process or across the network."""

    async def fetch(self, params: FetchParams, request: FetchRequest) -> FetchResponse: ...

    async def offsets(self, topic_partition: TopicPartition, leader_epoch: int) -> LogOffsets:
        """Return the offsets of the leader's log. Raises ApiError when it does not lead in that epoch."""
        raise NotImplementedError


class Follower:
    """Replicates the partitions of one leader (Kafka's ReplicaFetcherThread, as a task).

    Each fetch starts at the follower's log end offsets, and so acknowledges the records before them to the
    leader. A response is ignored when the leader epoch has changed since the request. A partition for which
    the leader answers an error is left out for ``BACKOFF`` seconds.
    """

    def __init__(
        self,
        leader: Leader,
        partitions: HostedPartitions,
        topic_partitions: Iterable[TopicPartition],
        *,
        max_wait: float = 0.5,
    ) -> None:
        self._leader = leader
        self._partitions = partitions
        # When to fetch each partition next, in the loop's time. Requests name the partitions in this order. A
        # partition with records moves to the end, as in ``FetchSession.incremental_response``, since not
        # every leader has sessions.
        self._due = dict.fromkeys(topic_partitions, 0.0)
        self._params = FetchParams(partitions.broker_id, max_wait, min_bytes=1, max_bytes=MAX_BYTES)

    def __repr__(self) -> str:
        return f"<Follower {self._params.replica_id} of {len(self._due)} partitions of {self._leader!r}>"

    async def run(self) -> None:
        """Fetch until cancelled. Raises what ``Leader.fetch`` raises when the leader cannot be reached."""
        while True:
            await self.fetch_once()
            # A fetch that is answered at once does not suspend, so let other tasks run here.
            await checkpoint()

    async def fetch_once(self) -> None:
        """Send one fetch with the log end offsets, and append the records of its response."""
        request = self._next_request()
        if not request:
            await anyio.sleep(BACKOFF)
            return
        response = await self._leader.fetch(self._params, request)
        for topic_partition, fetched in response.items():
            if fetched.batches:
                self._due[topic_partition] = self._due.pop(topic_partition)
            try:
                await self._process(topic_partition, request[topic_partition], fetched)
            except ApiError:
                self._due[topic_partition] = asyncio.get_running_loop().time() + BACKOFF

    def _next_request(self) -> dict[TopicPartition, PartitionFetch]:
        now = asyncio.get_running_loop().time()
        request: dict[TopicPartition, PartitionFetch] = {}
        for topic_partition, due in self._due.items():
            partition = self._partitions.get(topic_partition)
            if partition is not None and not partition.is_leader and due <= now:
                log = partition.log
                request[topic_partition] = PartitionFetch(
                    log.log_end_offset,
                    current_leader_epoch=partition.leader_epoch,
                    last_fetched_epoch=log.latest_epoch,
                    log_start_offset=log.log_start_offset,
                )
        return request

    async def _process(
        self, topic_partition: TopicPartition, requested: PartitionFetch, fetched: PartitionFetched
    ) -> None:
        partition = self._still_following(topic_partition, requested)
        if partition is None:
            return
        if fetched.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            offsets = await self._leader.offsets(topic_partition, requested.current_leader_epoch)
            if self._still_following(topic_partition, requested) is partition:
                partition.local.return_to_range(offsets.start, offsets.end)
        elif fetched.error is not ErrorCode.NONE:
            raise ApiError(fetched.error, f"following {partition!r}")
        elif fetched.diverging_epoch is not None:
            partition.local.truncate_to_divergence(fetched.diverging_epoch)
        else:
            partition.local.append_as_follower(
                fetched.batches, fetched.high_watermark, fetched.log_start_offset
            )

    def _still_following(
        self, topic_partition: TopicPartition, requested: PartitionFetch
    ) -> Partition | None:
        """Return the partition, or None when its epoch or its log end has changed since the request."""
        partition = self._partitions.get(topic_partition)
        if (
            partition is None
            or not partition.follows(requested.current_leader_epoch)
            or partition.log.log_end_offset != requested.fetch_offset
        ):
            return None
        return partition
