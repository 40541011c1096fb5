"""The partitions that a broker has replicas of, and the reads from them. Nothing in this module waits."""

import math
from collections.abc import Callable, Iterable, Iterator

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import MetadataImage, TopicImage
from examples.broker.replication.followers import (
    REPLICA_LAG_TIME_MAX,
    AlterPartition,
    accept_any_isr,
)
from examples.broker.replication.partition import Partition
from examples.broker.replication.requests import Fetched, Fetches, FetchParams, PartitionFetched
from examples.broker.storage.leader_epochs import NO_EPOCH
from examples.broker.storage.replica import Disk
from examples.broker.topic_partition import TopicPartition


class HostedPartitions:
    """The state that a broker's delayed operations check.

    These are ReplicaManager.allPartitions and readFromLog in Kafka. ``disk`` outlives a broker: after a
    restart, the partitions continue with the logs they find there. ``is_alive`` says which brokers a deletion
    has to wait for. ``alter_partition`` calls the controller. ``changing`` is called before each change of a
    partition that a fetch can notice.
    """

    def __init__(
        self,
        broker_id: int,
        *,
        disk: Disk | None = None,
        replica_lag_time_max: float = REPLICA_LAG_TIME_MAX,
        alter_partition: AlterPartition = accept_any_isr,
        is_alive: Callable[[int], bool] = lambda broker_id: True,
    ) -> None:
        self.broker_id = broker_id
        self.replica_lag_time_max = replica_lag_time_max
        self._disk = Disk() if disk is None else disk
        self._alter_partition = alter_partition
        self._is_alive = is_alive
        self._partitions: dict[TopicPartition, Partition] = {}
        self.changing: Callable[[Partition], None] = lambda partition: None
        self.images_applied = 0
        self._image = MetadataImage()

    def __repr__(self) -> str:
        led = sum(1 for _ in self.led())
        return (
            f"<HostedPartitions of broker {self.broker_id}: {len(self._partitions)}, of which it leads {led}>"
        )

    def apply(self, image: MetadataImage, changed: Iterable[TopicPartition], now: float) -> None:
        """Lead, follow or delete the ``changed`` partitions, as the image says."""
        if not self._partitions:
            # No change names the topics that were deleted while this broker was down.
            self._disk.retain({topic.topic_id for topic in image.topics.values()})
        self.images_applied += 1
        self._image = image
        for topic_partition in changed:
            state = image.partition(topic_partition)
            if state is None or self.broker_id not in state.replicas:
                self._drop(topic_partition)
                self._disk.delete(topic_partition)
                continue
            partition = self._host(topic_partition, image.topics[topic_partition.topic])
            if state.leader == self.broker_id:
                partition.make_leader(state, now)
            else:
                partition.make_follower(state)

    def hosted(self) -> Iterator[Partition]:
        """Return the partitions that this broker has a replica of."""
        return iter(self._partitions.values())

    def led(self) -> Iterator[Partition]:
        """Return the partitions that this broker leads."""
        return (partition for partition in self._partitions.values() if partition.is_leader)

    def get(self, topic_partition: TopicPartition) -> Partition | None:
        return self._partitions.get(topic_partition)

    def leader(self, topic_partition: TopicPartition, current_leader_epoch: int = NO_EPOCH) -> Partition:
        """Return a partition that this broker leads.

        Raises ApiError NOT_LEADER_OR_FOLLOWER when only other brokers have a replica,
        UNKNOWN_TOPIC_OR_PARTITION when nobody has one, or what ``Partition.check_leader`` raises.
        """
        partition = self._partitions.get(topic_partition)
        if partition is None:
            exists = self._image.partition(topic_partition) is not None
            raise ApiError(
                ErrorCode.not_leader_or_follower if exists else ErrorCode.unknown_topic_or_partition,
                f"broker {self.broker_id} has no replica of {topic_partition}",
            )
        partition.check_leader(current_leader_epoch)
        return partition

    def acknowledged(self, topic_partition: TopicPartition, required_offset: int) -> ErrorCode | None:
        """Return the answer to an append with acks=all up to an offset; None while it must wait."""
        try:
            return self.leader(topic_partition).check_enough_replicas_reach_offset(required_offset)
        except ApiError as lost_leadership:
            return lost_leadership.code

    def readable_bytes(self, params: FetchParams, request: Fetches) -> float:
        """Return how many bytes ``read`` would find; infinite when one of the partitions has an error."""
        found = 0
        for topic_partition, wanted in request.items():
            try:
                partition = self.leader(topic_partition, wanted.current_leader_epoch)
                found += partition.readable_bytes(wanted, from_follower=params.from_follower)
            except ApiError:
                return math.inf
        return found

    def read(self, params: FetchParams, request: Fetches) -> Fetched:
        """Read the partitions in the order of the request.

        An error is the answer of its own partition alone.
        """
        response: Fetched = {}
        bytes_left, min_one_batch = params.max_bytes, True
        for topic_partition, wanted in request.items():
            try:
                fetched = self.leader(topic_partition, wanted.current_leader_epoch).read(
                    wanted,
                    min(wanted.max_bytes, bytes_left),
                    from_follower=params.from_follower,
                    min_one_batch=min_one_batch,
                )
            except ApiError as error:
                fetched = PartitionFetched(error.code)
            if fetched.batches:
                bytes_left = max(0, bytes_left - fetched.size_in_bytes)
                min_one_batch = False
            response[topic_partition] = fetched
        return response

    def _host(self, topic_partition: TopicPartition, topic: TopicImage) -> Partition:
        stored = self._disk.open(topic_partition, topic.topic_id, topic.config.segment_bytes)
        partition = self._partitions.get(topic_partition)
        if partition is None or partition.log is not stored.log:
            self._drop(topic_partition)
            partition = self._partitions[topic_partition] = Partition(
                topic_partition,
                self.broker_id,
                stored,
                topic.config,
                replica_lag_time_max=self.replica_lag_time_max,
                alter_partition=self._alter_partition,
                is_alive=self._is_alive,
                changing=lambda partition: self.changing(partition),
            )
        partition.configure(topic.config)
        return partition

    def _drop(self, topic_partition: TopicPartition) -> None:
        partition = self._partitions.pop(topic_partition, None)
        if partition is not None:
            self.changing(partition)
