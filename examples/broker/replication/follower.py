"""A follower: it fetches from the leader for ever, and appends what it gets to logs of its own."""

from collections.abc import Iterable

from anyio.lowlevel import checkpoint

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.fetch import FetchParams, PartitionFetch, PartitionFetched
from examples.broker.replication.partition import PartitionConfig
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.storage.log import PartitionLog
from examples.broker.topic_partition import TopicPartition


class Follower:
    """Another broker's replicas of the leader's partitions (Kafka's ReplicaFetcherThread, as a task).

    Each fetch starts at the follower's own log end offsets, which is how the leader learns of them: the fetch
    that asks for the next records is the acknowledgement of the last.
    """

    def __init__(
        self,
        replica_id: int,
        leader: ReplicaManager,
        topic_partitions: Iterable[TopicPartition],
        config: PartitionConfig,
        *,
        max_wait: float = 0.5,
    ) -> None:
        self.logs = {
            topic_partition: PartitionLog(config.segment_bytes) for topic_partition in topic_partitions
        }
        self._leader = leader
        self._params = FetchParams(replica_id=replica_id, max_wait=max_wait, min_bytes=1, max_bytes=10 << 20)

    async def run(self) -> None:
        """Follow until cancelled. ApiError when the leader refuses a partition."""
        while True:
            await self.fetch_once()
            # A fetch answered at once does not suspend; the others must have their turn all the same.
            await checkpoint()

    async def fetch_once(self) -> None:
        """One round trip: tell the leader where the logs end, append what it answers."""
        request = {entry: PartitionFetch(log.log_end_offset) for entry, log in self.logs.items()}
        for topic_partition, fetched in (await self._leader.fetch(self._params, request)).items():
            self._process(topic_partition, fetched)

    def _process(self, topic_partition: TopicPartition, fetched: PartitionFetched) -> None:
        log = self.logs[topic_partition]
        if fetched.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._return_to_the_leaders_range(topic_partition, log)
            return
        if fetched.error is not ErrorCode.NONE:
            raise ApiError(fetched.error, f"following {topic_partition} from {log.log_end_offset}")
        for batch in fetched.batches:
            log.append_as_follower(batch)
        # A replica frees what the leader has given up; the leader may have given up more than is here.
        log.increment_log_start_offset(min(fetched.log_start_offset, log.log_end_offset))

    def _return_to_the_leaders_range(self, topic_partition: TopicPartition, log: PartitionLog) -> None:
        """Cut what the leader does not have; or begin anew where it starts, if it gave up what comes next.

        As Kafka's AbstractFetcherThread.fetchOffsetAndTruncate.
        """
        leader_log = self._leader.partitions.leader(topic_partition).log
        if leader_log.log_end_offset < log.log_end_offset:
            log.truncate_to(leader_log.log_end_offset)
        else:
            log.truncate_fully_and_start_at(leader_log.log_start_offset)
