"""The replica fetcher: fetches from a leader in a loop, and appends the records to its own replicas."""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

import anyio
from anyio.lowlevel import checkpoint

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.follower_request import FollowerRequest
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.partition import Partition
from examples.broker.replication.requests import Fetched, FetchParams, PartitionFetch, PartitionFetched
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

    async def fetch(self, params: FetchParams, request: FollowerRequest) -> Fetched: ...

    async def offsets(self, topic_partition: TopicPartition, leader_epoch: int) -> LogOffsets:
        """Return the offsets of the leader's log. Raises ApiError when it does not lead in that epoch."""
        raise NotImplementedError


class ReplicaFetcher:
    """Replicates the partitions of one leader (Kafka's ReplicaFetcherThread, as a task).

    Each fetch starts at the follower's log end offsets, and so acknowledges the records before them to the
    leader. A response is ignored when the leader epoch has changed since the request. A partition for which
    the leader answers an error is left out for ``BACKOFF`` seconds.

    The request changes with the partitions of a response. All partitions are looked at only after a new image
    of the metadata, since nothing else changes a replica of a follower.
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
        self._topic_partitions = list(topic_partitions)
        self._request = FollowerRequest()
        self._images_seen = 0
        # When to fetch the partitions that are left out, in the loop's time.
        self._backing_off: dict[TopicPartition, float] = {}
        self._params = FetchParams(partitions.broker_id, max_wait, min_bytes=1, max_bytes=MAX_BYTES)

    def __repr__(self) -> str:
        followed = len(self._topic_partitions)
        return f"<ReplicaFetcher {self._params.replica_id} of {followed} partitions of {self._leader!r}>"

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
            try:
                await self._process(topic_partition, request[topic_partition], fetched)
            except ApiError:
                self._backing_off[topic_partition] = asyncio.get_running_loop().time() + BACKOFF
            self._look_at(topic_partition)
            if fetched.batches and topic_partition in request:
                # As in ``FetchSession.incremental_response``, since not every leader has sessions.
                request.move_to_end(topic_partition)

    def _next_request(self) -> FollowerRequest:
        now = asyncio.get_running_loop().time()
        for topic_partition in [entry for entry, due in self._backing_off.items() if due <= now]:
            del self._backing_off[topic_partition]
            self._look_at(topic_partition)
        if self._images_seen != self._partitions.images_applied:
            self._images_seen = self._partitions.images_applied
            for topic_partition in self._topic_partitions:
                self._look_at(topic_partition)
        return self._request

    def _look_at(self, topic_partition: TopicPartition) -> None:
        """Fetch a partition from where its replica is by now, or leave it out."""
        partition = self._partitions.get(topic_partition)
        if partition is None or partition.is_leader or topic_partition in self._backing_off:
            self._request.leave_out(topic_partition)
            return
        log = partition.log
        wanted = PartitionFetch(
            log.log_end_offset,
            current_leader_epoch=partition.leader_epoch,
            last_fetched_epoch=log.latest_epoch,
            log_start_offset=log.log_start_offset,
        )
        self._request.want(topic_partition, wanted)

    async def _process(
        self, topic_partition: TopicPartition, requested: PartitionFetch, fetched: PartitionFetched
    ) -> None:
        partition = self._still_following(topic_partition, requested)
        if partition is None:
            return
        if fetched.error is ErrorCode.offset_out_of_range:
            offsets = await self._leader.offsets(topic_partition, requested.current_leader_epoch)
            if self._still_following(topic_partition, requested) is partition:
                partition.local.return_to_range(offsets.start, offsets.end)
        elif fetched.error is not ErrorCode.none:
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
