"""The partitions a broker hosts: finding their leader here, and reading from them. Nothing here waits."""

from collections.abc import Iterator

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.fetch import (
    FetchParams,
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionFetched,
)
from examples.broker.replication.partition import Partition
from examples.broker.topic_partition import TopicPartition


class HostedPartitions:
    """What a broker's delayed operations look at (ReplicaManager.allPartitions and readFromLog, in Kafka)."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self._partitions: dict[TopicPartition, Partition] = {}

    def led(self) -> Iterator[Partition]:
        """Those led by this broker."""
        return (partition for partition in self._partitions.values() if partition.leader_id == self.broker_id)

    def add(self, partition: Partition) -> None:
        """Host it. ValueError when it is hosted already."""
        if partition.topic_partition in self._partitions:
            raise ValueError(f"{partition.topic_partition} is hosted already")
        self._partitions[partition.topic_partition] = partition

    def remove(self, topic_partition: TopicPartition) -> None:
        del self._partitions[topic_partition]

    def leader(self, topic_partition: TopicPartition) -> Partition:
        """The partition, led by this broker.

        ApiError UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER when there is no such.
        """
        partition = self._partitions.get(topic_partition)
        if partition is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"broker {self.broker_id} has no {topic_partition}"
            )
        if partition.leader_id != self.broker_id:
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition!r} is not led by broker {self.broker_id}"
            )
        return partition

    def read(self, params: FetchParams, request: FetchRequest) -> FetchResponse:
        """Read each partition, in the order of the request; an error is one partition's answer only."""
        response: FetchResponse = {}
        bytes_left, min_one_batch = params.max_bytes, True
        for topic_partition, wanted in request.items():
            fetched = self._read_partition(params, topic_partition, wanted, bytes_left, min_one_batch)
            if fetched.batches:
                bytes_left = max(0, bytes_left - fetched.info.size_in_bytes)
                min_one_batch = False
            response[topic_partition] = fetched
        return response

    def _read_partition(
        self,
        params: FetchParams,
        topic_partition: TopicPartition,
        wanted: PartitionFetch,
        bytes_left: int,
        min_one_batch: bool,
    ) -> PartitionFetched:
        try:
            partition = self.leader(topic_partition)
            info = partition.read(
                wanted.fetch_offset,
                min(wanted.max_bytes, bytes_left),
                from_follower=params.from_follower,
                min_one_batch=min_one_batch,
            )
        except ApiError as error:
            return PartitionFetched(error.code)
        return PartitionFetched(
            ErrorCode.NONE, partition.high_watermark, partition.log.log_start_offset, info
        )
